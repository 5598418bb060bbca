package stats

import (
	"maps"
	"slices"
)

// byTurn has first the pods that were looked at longest ago, or never.
func (d *Disk) byTurn(pods []Pod) []Pod {
	if d == nil {
		return pods
	}
	return slices.SortedStableFunc(slices.Values(pods), func(a, b Pod) int {
		return d.Pods[a.UID].At.Compare(d.Pods[b.UID].At)
	})
}

// upon is a measuring of pods with what it did not get to as it was measured
// before; last is nil for the first one.
func (d *Disk) upon(last *Disk, pods []Pod) *Disk {
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
				now.At = d.At // before those that were measured in this round, after all others
			}
			out.Pods[pods[i].UID] = now.upon(before, &pods[i])
		case was:
			out.Pods[pods[i].UID] = before
		}
		out.lacks = out.lacks || out.Pods[pods[i].UID].Layers == nil
	}
	return &out
}

// upon is likewise that of one pod.
func (d PodDisk) upon(last PodDisk, of *Pod) PodDisk {
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
	if d.Hosts == nil {
		d.Hosts = last.Hosts
	}
	return d
}
