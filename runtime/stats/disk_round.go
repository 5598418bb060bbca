package stats

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest/order"
)

// sortedByAge returns pods sorted by the time of their last measurement in d. Pods that were
// never measured come first. d may be nil.
func (d *Disk) sortedByAge(pods []Pod) []Pod {
	if d == nil {
		return pods
	}
	sorted := slices.Clone(pods)
	order.Stable(sorted, func(a, b Pod) int { return d.Pods[a.UID].At.Compare(d.Pods[b.UID].At) })
	return sorted
}

// isIncomplete reports whether a pod in the list pods was not measured completely: its writable
// layers, or the logs of one of its containers, were never measured. A restarted container is not
// regarded as unmeasured, because its earlier values are still used.
func (d *Disk) isIncomplete(pods []Pod) bool {
	return slices.ContainsFunc(pods, func(p Pod) bool {
		measured := d.Pods[p.UID]
		return measured.Layers == nil || slices.ContainsFunc(p.Containers, func(c Container) bool {
			_, hasLog := measured.Logs[c.Name]
			return !hasLog && c.Started.After(measured.At)
		})
	})
}

// withPrevious returns a copy of d. For pods that this measurement did not reach, the copy contains
// the values of the previous measurement, if there are any. pods are the pods to measure. The
// parameter last is the previous measurement; it is nil in the first measurement.
func (d *Disk) withPrevious(last *Disk, pods []Pod) *Disk {
	out := *d
	out.Pods, out.Unreached = maps.Clone(d.Pods), map[types.UID]bool{}
	if last == nil {
		last = &Disk{}
	}
	if out.Images == nil {
		out.Images, out.Layers = last.Images, last.Layers
	}
	for i := range pods {
		previous, hasPrevious := last.Pods[pods[i].UID]
		measured, isMeasured := d.Pods[pods[i].UID]
		switch {
		case isMeasured:
			if measured.Incomplete {
				// The next measurement begins with the pods that were not reached, because
				// sortedByAge sorts by At. This pod, whose measurement was
				// interrupted, is measured after these pods and before the pods
				// that were measured completely.
				measured.At = d.At
			}
			out.Pods[pods[i].UID] = measured.withPrevious(previous, &pods[i])
		case hasPrevious:
			out.Pods[pods[i].UID] = previous
		default:
			out.Unreached[pods[i].UID] = true
		}
	}
	return &out
}

// withPrevious returns d, the measurement of pod. It contains values from last in place of
// everything that was not measured. Logs of containers that the pod no longer contains are omitted.
func (d PodDisk) withPrevious(last PodDisk, pod *Pod) PodDisk {
	if d.Layers == nil {
		d.Layers = last.Layers
	}
	if !d.Incomplete {
		return d
	}
	logs := map[string]Filesystem{}
	for _, c := range pod.Containers {
		if f, hasUsage := last.Logs[c.Name]; hasUsage {
			logs[c.Name] = f
		}
	}
	maps.Copy(logs, d.Logs)
	d.Logs = logs
	d.Volumes = slices.Clip(d.Volumes)
	for _, v := range last.Volumes {
		if !slices.ContainsFunc(d.Volumes, func(volume Volume) bool { return volume.Name == v.Name }) {
			d.Volumes = append(d.Volumes, v)
		}
	}
	if d.ManagedFiles == nil {
		d.ManagedFiles = last.ManagedFiles
	}
	return d
}
