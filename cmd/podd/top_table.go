package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// columned is lines as kubectl prints them.
func columned(lines [][]string) string {
	var b strings.Builder
	t := table{kubectl: true}
	t.fit(lines)
	for _, line := range lines {
		b.WriteString(t.line(line))
	}
	return b.String()
}

// pods are the lines of kubectl top pods.
func (c *TopCmd) pods(all []usage) [][]string {
	heads := []string{"NAME", "CPU(cores)", "MEMORY(bytes)"}
	if c.Containers {
		heads = append([]string{"POD"}, heads...)
	}
	if c.AllNamespaces {
		heads = append([]string{"NAMESPACE"}, heads...)
	}
	lines := [][]string{heads}
	if c.NoHeaders {
		lines = nil
	}
	together := v1.ResourceList{}
	for i := range all {
		u := &all[i]
		u.Usage = v1.ResourceList{}
		for _, one := range u.Containers {
			addAmounts(u.Usage, one.Usage)
		}
		addAmounts(together, u.Usage)
	}
	slices.SortStableFunc(all, func(a, b usage) int {
		return cmp.Or(c.order(a.Usage, b.Usage), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, u := range all {
		var begin []string
		if c.AllNamespaces {
			begin = []string{plain(u.Namespace)}
		}
		begin = append(begin, plain(u.Name))
		if !c.Containers {
			lines = append(lines, append(begin, cores(u.Usage), mebibytes(u.Usage)))
			continue
		}
		slices.SortStableFunc(u.Containers, func(a, b containerUsage) int {
			return cmp.Or(c.order(a.Usage, b.Usage), cmp.Compare(a.Name, b.Name))
		})
		for _, one := range u.Containers {
			lines = append(lines, slices.Concat(begin, []string{plain(one.Name), cores(one.Usage), mebibytes(one.Usage)}))
		}
	}
	if c.Sum {
		rest := make([]string, len(heads)-2)
		lines = append(lines, append(slices.Clone(rest), "________", "________"), append(rest, cores(together), mebibytes(together)))
	}
	return lines
}

// nodes are the lines of kubectl top nodes.
func (c *TopCmd) nodes(all []usage, nodes []v1.Node) [][]string {
	lines := [][]string{{"NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"}}
	if c.NoHeaders {
		lines = nil
	}
	slices.SortStableFunc(all, func(a, b usage) int { return cmp.Or(c.order(a.Usage, b.Usage), cmp.Compare(a.Name, b.Name)) })
	for _, u := range all {
		var whole v1.ResourceList
		if at := slices.IndexFunc(nodes, func(n v1.Node) bool { return n.Name == u.Name }); at >= 0 {
			whole = nodes[at].Status.Allocatable
			if c.ShowCapacity {
				whole = nodes[at].Status.Capacity
			}
		}
		lines = append(lines, []string{plain(u.Name), cores(u.Usage), percent(u.Usage.Cpu().MilliValue(), whole.Cpu().MilliValue()),
			mebibytes(u.Usage), percent(u.Usage.Memory().Value(), whole.Memory().Value())})
	}
	return lines
}

// order has more before less of what is sorted by; 0 where nothing is.
func (c *TopCmd) order(a, b v1.ResourceList) int {
	switch c.SortBy {
	case "cpu":
		return b.Cpu().Cmp(*a.Cpu())
	case "memory":
		return b.Memory().Cmp(*a.Memory())
	}
	return 0
}

func cores(u v1.ResourceList) string     { return fmt.Sprintf("%dm", u.Cpu().MilliValue()) }
func mebibytes(u v1.ResourceList) string { return fmt.Sprintf("%dMi", u.Memory().Value()>>20) }

func percent(part, whole int64) string {
	if whole == 0 {
		return "<unknown>"
	}
	return fmt.Sprintf("%d%%", int64(float64(part)/float64(whole)*100))
}
