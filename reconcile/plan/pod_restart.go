package plan

import (
	"fmt"

	"podd/manifest"
	"podd/runtime"
)

// restartingReason is the waiting reason of a container that is restarted with all other containers
// of its pod.
const restartingReason = "RestartingAllContainers"

// restartRules apply to each container of a pod while all its containers are stopped to be restarted
// (restart rule RestartAllContainers, KEP-5532).
var restartRules = []containerRule{
	{RuleStoppedWithAll, "stop", "another container exited with an exit code that restarts all containers, so the container is stopped",
		func(_ *facts, m *containerFacts) bool { return m.mustStopForRestartAll() }, stopWithAll},
	{RuleRestartsWithAll, "wait", "all containers of the pod are restarted, and the running ones are stopped first",
		func(*facts, *containerFacts) bool { return true }, func(_ *facts, _ *containerFacts, _ *Decision, s *Step) { s.Reason = restartingReason }},
}

// countPodRestarts returns the number of times that all containers of the desired version were
// restarted together. Each container records this number at its creation. If the exit of a
// container matches a rule RestartAllContainers, the result is at least the recorded number plus
// one. So several such exits of containers with the same recorded number count as one restart.
//
// The result depends only on the containers that the runtime lists and on the last exits in the
// journal. Therefore it does not change if podd or the node is restarted.
func (f *facts) countPodRestarts() (n uint32) {
	for _, c := range containersOf(&f.in.Desired.Object.Spec) {
		count := func(code int32, podRestarts uint32) {
			if manifest.RestartsAllAfter(c, code) {
				n = max(n, podRestarts+1)
			}
		}
		if e := f.in.History.Containers[c.Name].LastExit; e != nil {
			count(e.Code, e.PodRestarts)
		}
		for i := range f.desiredIncarnations {
			for j := range f.desiredIncarnations[i].Containers {
				rec := &f.desiredIncarnations[i].Containers[j]
				if rec.Name != c.Name {
					continue
				}
				n = max(n, rec.PodRestarts())
				if rec.State == runtime.Exited && !rec.WasStartInterrupted() {
					count(rec.ExitCode, rec.PodRestarts())
				}
			}
		}
	}
	return n
}

// mustStopForRestartAll reports whether m runs and must be stopped for the restart of all
// containers.
func (m *containerFacts) mustStopForRestartAll() bool {
	return m.last == nil && m.lastBeforeRestart != nil && (m.lastBeforeRestart.State == runtime.Running || m.lastBeforeRestart.State == runtime.Unknown)
}

// causedRestartAll reports whether the exit of m has caused the restart of all containers, and m
// was not started again yet.
func (m *containerFacts) causedRestartAll() bool {
	c := m.lastBeforeRestart
	return m.last == nil && c != nil && c.State == runtime.Exited && c.PodRestarts()+1 == m.podRestarts && manifest.RestartsAllAfter(m.spec, c.ExitCode)
}

// isRestartingAll reports whether containers must be stopped before all containers of the pod are
// started again. It also returns true if a start is in progress that began before the restart.
func (f *facts) isRestartingAll() bool {
	for i := range f.containers {
		if f.containers[i].mustStopForRestartAll() {
			return true
		}
	}
	for _, a := range f.in.InFlight {
		if s, ok := a.(StartContainer); ok && s.PodRestarts < f.podRestarts && f.hasContainer(s.Container) {
			return true
		}
	}
	return false
}

// hasContainer reports whether the pod has an init container or a regular container with this name.
func (f *facts) hasContainer(name string) bool {
	_, kind, _ := FindContainer(f.in.Desired.Object, name)
	return kind != "" && kind != KindEphemeral
}

// restartAll stops all running containers without a grace period, as the kubelet does. Init
// containers run again when the last container has stopped.
func (f *facts) restartAll(d *Decision) {
	f.cancelStarts(d)
	f.applyContainerRules(restartRules, f.containers, d)
	f.applyContainerRules(ephemeralRules, f.ephemeralContainers, d)
	for i := range f.containers {
		if m := &f.containers[i]; m.causedRestartAll() {
			d.Why = fmt.Sprintf("container %s exited with %s", m.spec.Name, exitText(m.lastBeforeRestart))
		}
	}
}

func stopWithAll(f *facts, m *containerFacts, d *Decision, s *Step) {
	s.Why = "all containers are restarted"
	f.addCleanup(d, StopContainer{Container: m.spec.Name, ID: m.lastBeforeRestart.ID, Why: s.Why, WillRestart: true})
}

// ContainersRestartedWithAll returns the names of the containers that are being restarted, or will
// be restarted, together with all containers of the pod; nil if there are none. The last exit of
// such a container is not final.
func ContainersRestartedWithAll(in *Input) map[string]bool {
	if in.Desired == nil || !manifest.HasRestartAll(&in.Desired.Object.Spec) {
		return nil
	}
	f := newFacts(in)
	names := map[string]bool{}
	for i := range f.containers {
		m := &f.containers[i]
		if e := m.history.LastExit; m.last == nil && (m.lastBeforeRestart != nil || e != nil && e.PodRestarts < f.podRestarts) {
			names[m.spec.Name] = true
		}
	}
	return names
}
