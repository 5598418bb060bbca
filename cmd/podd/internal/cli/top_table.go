package cli

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/printer"
	"podd/manifest/order"
)

// podRows returns the lines of podd top pods, in the format of kubectl top pods.
func (c *TopCmd) podRows(usages []resourceUsage) [][]string {
	header := []string{"NAME", "CPU(cores)", "MEMORY(bytes)"}
	if c.Containers {
		header = append([]string{"POD"}, header...)
	}
	if c.AllNamespaces {
		header = append([]string{"NAMESPACE"}, header...)
	}
	lines := [][]string{header}
	if c.NoHeaders {
		lines = nil
	}
	total := v1.ResourceList{}
	for i := range usages {
		u := &usages[i]
		u.Usage = v1.ResourceList{}
		for _, container := range u.Containers {
			addResources(u.Usage, container.Usage)
		}
		addResources(total, u.Usage)
	}
	order.Stable(usages, func(a, b resourceUsage) int {
		return cmp.Or(c.compareUsage(a.Usage, b.Usage), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, u := range usages {
		var row []string
		if c.AllNamespaces {
			row = []string{printer.Escape(u.Namespace)}
		}
		row = append(row, printer.Escape(u.Name))
		if !c.Containers {
			lines = append(lines, append(row, formatMillicores(u.Usage), formatMebibytes(u.Usage)))
			continue
		}
		order.Stable(u.Containers, func(a, b containerUsage) int {
			return cmp.Or(c.compareUsage(a.Usage, b.Usage), cmp.Compare(a.Name, b.Name))
		})
		for _, container := range u.Containers {
			lines = append(lines, slices.Concat(row, []string{printer.Escape(container.Name), formatMillicores(container.Usage), formatMebibytes(container.Usage)}))
		}
	}
	if c.Sum {
		blank := make([]string, len(header)-2)
		lines = append(lines, append(slices.Clone(blank), "________", "________"), append(blank, formatMillicores(total), formatMebibytes(total)))
	}
	return lines
}

// nodeRows returns the lines of podd top nodes, in the format of kubectl top nodes.
func (c *TopCmd) nodeRows(usages []resourceUsage, nodes []v1.Node) [][]string {
	lines := [][]string{{"NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"}}
	if c.NoHeaders {
		lines = nil
	}
	order.Stable(usages, func(a, b resourceUsage) int {
		return cmp.Or(c.compareUsage(a.Usage, b.Usage), cmp.Compare(a.Name, b.Name))
	})
	for _, u := range usages {
		var available v1.ResourceList
		if at := slices.IndexFunc(nodes, func(n v1.Node) bool { return n.Name == u.Name }); at >= 0 {
			available = nodes[at].Status.Allocatable
			if c.ShowCapacity {
				available = nodes[at].Status.Capacity
			}
		}
		lines = append(lines, []string{printer.Escape(u.Name), formatMillicores(u.Usage), formatPercent(u.Usage.Cpu().MilliValue(), available.Cpu().MilliValue()),
			formatMebibytes(u.Usage), formatPercent(u.Usage.Memory().Value(), available.Memory().Value())})
	}
	return lines
}

// compareUsage compares usages for the flag --sort-by, the highest first. It returns 0 without
// the flag.
func (c *TopCmd) compareUsage(a, b v1.ResourceList) int {
	switch c.SortBy {
	case "cpu":
		return b.Cpu().Cmp(*a.Cpu())
	case "memory":
		return b.Memory().Cmp(*a.Memory())
	}
	return 0
}

// formatMillicores formats CPU usage in millicores.
func formatMillicores(u v1.ResourceList) string { return fmt.Sprintf("%dm", u.Cpu().MilliValue()) }

// formatMebibytes formats memory usage in MiB.
func formatMebibytes(u v1.ResourceList) string { return fmt.Sprintf("%dMi", u.Memory().Value()>>20) }

// formatPercent formats part as a percentage of whole.
func formatPercent(part, whole int64) string {
	if whole == 0 {
		return "<unknown>"
	}
	return fmt.Sprintf("%d%%", int64(float64(part)/float64(whole)*100))
}
