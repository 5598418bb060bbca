package cri

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/runtime"
)

// finish returns the pods of the draft. A pod in which nothing changed keeps its pointer.
func (d *draft) finish() map[types.NamespacedName]*runtime.Pod {
	drafts := make(map[types.NamespacedName][]*sandboxDraft, len(d.all))
	for _, sd := range d.all {
		if sd.result != queryNotFound {
			drafts[sd.key] = append(drafts[sd.key], sd)
		}
	}
	pods := make(map[types.NamespacedName]*runtime.Pod, len(drafts))
	for key, sandboxes := range drafts {
		before := d.prior[key]
		if before != nil && isCopy(sandboxes, before) {
			pods[key] = before
			continue
		}
		pod := d.pod(key, sandboxes)
		if samePod(before, pod) {
			pod = before
		}
		pods[key] = pod
	}
	return pods
}

// isCopy reports whether the drafts of a pod are copies of all that it had before. It is
// cheap, so that a relist of thousands of pods builds and compares only those that may have
// changed.
func isCopy(sandboxes []*sandboxDraft, before *runtime.Pod) bool {
	if len(sandboxes) != len(before.Incarnations) {
		return false
	}
	for _, sd := range sandboxes {
		if sd.before == nil || len(sd.containers) != len(sd.before.Containers) {
			return false
		}
		for _, cd := range sd.containers {
			if !cd.isCopy {
				return false
			}
		}
	}
	return true
}

func (d *draft) pod(key types.NamespacedName, sandboxes []*sandboxDraft) *runtime.Pod {
	pod := &runtime.Pod{Key: key}
	for _, sd := range sandboxes {
		if sd.result == queryFailed || sd.result == notYet {
			d.newDoubts[sd.sandbox.ID] = sd.key
		}
		pod.Incarnations = append(pod.Incarnations, runtime.Incarnation{Sandbox: sd.sandbox, Containers: d.sortedContainers(sd.containers)})
	}
	newestFirst(pod.Incarnations)
	return pod
}

// sortedContainers returns the containers of one sandbox in the order of creation.
func (d *draft) sortedContainers(drafts []*containerDraft) []runtime.Container {
	if len(drafts) == 0 {
		return nil
	}
	all := make([]runtime.Container, 0, len(drafts))
	for _, cd := range drafts {
		switch cd.result {
		case queryNotFound:
			continue
		case queryFailed, notYet:
			d.newDoubts[cd.container.ID] = cd.key
			cd.setUnknown()
		}
		all = append(all, cd.container)
	}
	slices.SortFunc(all, func(a, b runtime.Container) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Attempt, b.Attempt),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// setUnknown sets the state of a container after its status query failed. An exit without
// its code would look like a success, so an exited container becomes ExitUnknown. Others
// keep their previous state.
func (c *containerDraft) setUnknown() {
	why := c.container.Message
	c.container.Message = ""
	if c.container.State != runtime.Exited {
		return
	}
	if c.before != nil {
		c.container = *c.before
	}
	if c.container.State == runtime.Exited && c.before != nil {
		return
	}
	if why == "" && c.container.State == runtime.ExitUnknown {
		why = c.container.Message
	}
	c.container.State, c.container.Message = runtime.ExitUnknown, cmp.Or(why, errLate.Error())
}

// newestFirst sorts incarnations. Within one UID the attempt decides, because it does not
// depend on a clock; between UIDs the newest sandbox of each. Containers without a sandbox
// come last.
func newestFirst(all []runtime.Incarnation) {
	if len(all) < 2 {
		return
	}
	newest := map[types.UID]time.Time{}
	for i := range all {
		if at := all[i].CreatedAt; at.After(newest[all[i].UID]) {
			newest[all[i].UID] = at
		}
	}
	slices.SortFunc(all, func(a, b runtime.Incarnation) int {
		return cmp.Or(
			orphansLast(a, b),
			newest[b.UID].Compare(newest[a.UID]),
			cmp.Compare(a.UID, b.UID),
			cmp.Compare(b.Attempt, a.Attempt),
			b.CreatedAt.Compare(a.CreatedAt),
			cmp.Compare(a.ID, b.ID),
		)
	})
}

func orphansLast(a, b runtime.Incarnation) int {
	switch {
	case (a.ID == "") == (b.ID == ""):
		return 0
	case a.ID == "":
		return 1
	}
	return -1
}
