package stats

import (
	"maps"
	"slices"
)

// byAge returns pods in the order of their last measurement: those that were never measured
// first.
func (d *Disk) byAge(pods []Pod) []Pod {
	if d == nil {
		return pods
	}
	return slices.SortedStableFunc(slices.Values(pods), func(a, b Pod) int {
		return d.Pods[a.UID].At.Compare(d.Pods[b.UID].At)
	})
}

// lacks reports whether a pod, its layers, or one of its containers was never measured. A
// container that restarts is not one of these: its earlier values are used for longer.
func (d *Disk) lacks(pods []Pod) bool {
	return slices.ContainsFunc(pods, func(p Pod) bool {
		measured := d.Pods[p.UID]
		return measured.Layers == nil || slices.ContainsFunc(p.Containers, func(c Container) bool {
			_, hasLog := measured.Logs[c.Name]
			return !hasLog && c.Started.After(measured.At)
		})
	})
}

// withPrevious adds the previous values of pods that this measurement did not reach. last
// is nil for the first one.
func (d *Disk) withPrevious(last *Disk, pods []Pod) *Disk {
	out := *d
	out.Pods = maps.Clone(d.Pods)
	if last == nil {
		last = &Disk{}
	}
	if out.Images == nil {
		out.Images, out.Layers = last.Images, last.Layers
	}
	for i := range pods {
		before, was := last.Pods[pods[i].UID]
		now, is := d.Pods[pods[i].UID]
		switch {
		case is:
			if now.Cut {
				// In the next round it precedes the pods measured in this one and follows all others.
				now.At = d.At
			}
			out.Pods[pods[i].UID] = now.withPrevious(before, &pods[i])
		case was:
			out.Pods[pods[i].UID] = before
		}
	}
	return &out
}

// withPrevious adds the previous values of one pod.
func (d PodDisk) withPrevious(last PodDisk, of *Pod) PodDisk {
	if d.Layers == nil {
		d.Layers = last.Layers
	}
	if !d.Cut {
		return d
	}
	logs := map[string]Filesystem{}
	for _, c := range of.Containers {
		if f, was := last.Logs[c.Name]; was {
			logs[c.Name] = f
		}
	}
	maps.Copy(logs, d.Logs)
	d.Logs = logs
	d.Volumes = slices.Clip(d.Volumes)
	for _, v := range last.Volumes {
		if !slices.ContainsFunc(d.Volumes, func(now Volume) bool { return now.Name == v.Name }) {
			d.Volumes = append(d.Volumes, v)
		}
	}
	if d.Files == nil {
		d.Files = last.Files
	}
	return d
}
