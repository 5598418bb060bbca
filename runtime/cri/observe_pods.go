package cri

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/runtime"
)

// finish makes pods of the draft. A pod in which nothing changed is the one of
// before.
func (d *draft) finish() map[types.NamespacedName]*runtime.Pod {
	pods := make(map[types.NamespacedName]*runtime.Pod, len(d.all))
	for _, sd := range d.all {
		if sd.answer == isGone {
			continue
		}
		if sd.answer == noAnswer || sd.answer == notYet {
			d.unsure[sd.sandbox.ID] = struct{}{}
		}
		pod := pods[sd.key]
		if pod == nil {
			pod = &runtime.Pod{Key: sd.key}
			pods[sd.key] = pod
		}
		pod.Incarnations = append(pod.Incarnations, runtime.Incarnation{Sandbox: sd.sandbox, Containers: d.settle(sd.containers)})
	}
	for key, pod := range pods {
		newestFirst(pod.Incarnations)
		if before := d.prior[key]; samePod(before, pod) {
			pods[key] = before
		}
	}
	return pods
}

// settle returns the containers of one sandbox in order of creation.
func (d *draft) settle(drafts []*containerDraft) []runtime.Container {
	if len(drafts) == 0 {
		return nil
	}
	all := make([]runtime.Container, 0, len(drafts))
	for _, cd := range drafts {
		switch cd.answer {
		case isGone:
			continue
		case noAnswer, notYet:
			d.unsure[cd.container.ID] = struct{}{}
			cd.withoutAnswer()
		}
		all = append(all, cd.container)
	}
	slices.SortFunc(all, func(a, b runtime.Container) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Attempt, b.Attempt),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// withoutAnswer settles on what can be said of a container whose status could
// not be had. An exit without its code would read as a success, so the container
// is what it was before, and Unknown when it was nothing; the observer asks again.
func (c *containerDraft) withoutAnswer() {
	if c.container.State != runtime.Exited {
		c.container.Message = ""
		return
	}
	if c.before != nil {
		c.container = *c.before
		return
	}
	c.container.State = runtime.Unknown
}

// newestFirst sorts incarnations. Within one UID the attempt decides, which no
// clock can turn back; between UIDs the newest sandbox of each. Containers
// without a sandbox come last.
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
