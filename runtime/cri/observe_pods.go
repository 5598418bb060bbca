package cri

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest/order"
	"podd/runtime"
)

// buildPods returns the observed pods. If nothing changed in a pod, its pointer is that of the
// previous pass.
func (d *draft) buildPods() map[types.NamespacedName]*runtime.Pod {
	drafts := make(map[types.NamespacedName][]*sandboxDraft, len(d.allSandboxes))
	for _, sd := range d.allSandboxes {
		if sd.result != queryNotFound {
			drafts[sd.key] = append(drafts[sd.key], sd)
		}
	}
	pods := make(map[types.NamespacedName]*runtime.Pod, len(drafts))
	for key, sandboxes := range drafts {
		previous := d.previousPods[key]
		if previous != nil && isUnchanged(sandboxes, previous) {
			pods[key] = previous
			continue
		}
		pod := d.buildPod(key, sandboxes)
		if isSamePod(previous, pod) {
			pod = previous
		}
		pods[key] = pod
	}
	return pods
}

// isUnchanged reports whether the drafts of a pod are copies of its previous sandboxes and
// containers. It is cheap, so a relist of thousands of pods builds and compares only pods
// that may have changed.
func isUnchanged(sandboxes []*sandboxDraft, previous *runtime.Pod) bool {
	if len(sandboxes) != len(previous.Incarnations) {
		return false
	}
	for _, sd := range sandboxes {
		if sd.previous == nil || len(sd.containers) != len(sd.previous.Containers) {
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

// buildPod builds a pod from the drafts of its sandboxes and records the pod's failed queries.
func (d *draft) buildPod(key types.NamespacedName, sandboxes []*sandboxDraft) *runtime.Pod {
	pod := &runtime.Pod{Key: key}
	for _, sd := range sandboxes {
		if sd.result == queryFailed || sd.result == retryPending {
			d.newFailedQueries[sd.sandbox.ID] = sd.key
		}
		pod.Incarnations = append(pod.Incarnations, runtime.Incarnation{Sandbox: sd.sandbox, Containers: d.sortedContainers(sd.containers)})
	}
	sortNewestFirst(pod.Incarnations)
	return pod
}

// sortedContainers returns the containers of one sandbox in the order of creation.
func (d *draft) sortedContainers(drafts []*containerDraft) []runtime.Container {
	if len(drafts) == 0 {
		return nil
	}
	containers := make([]runtime.Container, 0, len(drafts))
	for _, cd := range drafts {
		switch cd.result {
		case queryNotFound:
			continue
		case queryFailed, retryPending:
			d.newFailedQueries[cd.container.ID] = cd.key
			cd.setUnknown()
		}
		containers = append(containers, cd.container)
	}
	order.Slice(containers, func(a, b runtime.Container) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Attempt, b.Attempt),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return containers
}

// setUnknown sets the state of a container after its status query has failed. An exited container
// gets the state ExitCodeUnknown, because an exit without its code would look like a success. In
// other states the container keeps its previous state.
func (c *containerDraft) setUnknown() {
	reason := c.container.Message
	c.container.Message = ""
	if c.container.State != runtime.Exited {
		return
	}
	if c.previous != nil {
		c.container = *c.previous
	}
	if c.container.State == runtime.Exited && c.previous != nil {
		return
	}
	if reason == "" && c.container.State == runtime.ExitCodeUnknown {
		reason = c.container.Message
	}
	c.container.State, c.container.Message = runtime.ExitCodeUnknown, cmp.Or(reason, errLate.Error())
}

// sortNewestFirst sorts incarnations. Incarnations with the same UID are sorted by attempt,
// which does not depend on a clock. Groups with different UIDs are sorted by the creation
// time of their newest sandbox. Containers without a sandbox come last.
func sortNewestFirst(incarnations []runtime.Incarnation) {
	if len(incarnations) < 2 {
		return
	}
	newest := map[types.UID]time.Time{}
	for i := range incarnations {
		if at := incarnations[i].CreatedAt; at.After(newest[incarnations[i].UID]) {
			newest[incarnations[i].UID] = at
		}
	}
	order.Slice(incarnations, func(a, b runtime.Incarnation) int {
		return cmp.Or(
			compareHasSandbox(a, b),
			newest[b.UID].Compare(newest[a.UID]),
			cmp.Compare(a.UID, b.UID),
			cmp.Compare(b.Attempt, a.Attempt),
			b.CreatedAt.Compare(a.CreatedAt),
			cmp.Compare(a.ID, b.ID),
		)
	})
}

// compareHasSandbox compares two incarnations so that those without a sandbox come last.
func compareHasSandbox(a, b runtime.Incarnation) int {
	switch {
	case (a.ID == "") == (b.ID == ""):
		return 0
	case a.ID == "":
		return 1
	}
	return -1
}
