package plan

import (
	"cmp"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/manifest/order"
	"podd/runtime"
)

// facts contains the data of an Input in the form that the rules use.
type facts struct {
	in *Input
	// desired is the desired version with the sizes in its manifest. in.Desired is the same
	// version with the allocated sizes.
	desired *manifest.Pod
	// desiredIncarnations contains the incarnations of the desired version, newest first.
	desiredIncarnations []runtime.Incarnation
	// incarnationsToStop contains the incarnations of this podd that must be stopped: those of
	// another version, those that are being stopped, and live incarnations of the desired version
	// other than the newest.
	incarnationsToStop []runtime.Incarnation
	// foreignIncarnations contains the incarnations that this podd did not create.
	foreignIncarnations []runtime.Incarnation
	// current is the newest incarnation in desiredIncarnations; nil if there is none.
	current *runtime.Incarnation
	// podRestarts is the number of times that all containers of the desired version were restarted
	// together; see countPodRestarts.
	podRestarts uint32
	containers  []containerFacts
	// ephemeralContainers contains the ephemeral containers. They do not affect decisions about the
	// whole pod.
	ephemeralContainers []containerFacts
}

// containerFacts contains a container of the desired version, with the observed state and the
// history of the container.
type containerFacts struct {
	spec *v1.Container
	kind Kind
	// last is the newest container with this name in the current incarnation; nil if there is none.
	// If this container was created before the last restart of all containers, lastBeforeRestart is
	// set instead of last, and another container must be started.
	last, lastBeforeRestart *runtime.Container
	// podRestarts is the value of facts.podRestarts.
	podRestarts uint32
	history     ContainerHistory
	// restartDue reports whether last was stopped to be restarted.
	restartDue bool
	// hasFailedProbe reports whether last was stopped because its startup or liveness probe failed.
	hasFailedProbe bool
	// hasRun reports whether a container with this name ran in the current incarnation.
	hasRun bool
	// attempt is the attempt number of the next start, and restarts is its restart count.
	attempt, restarts uint32
	// isEphemeralCreated reports whether an ephemeral container was created. target is the name of
	// the container whose process namespace the ephemeral container joins; "" if there is none.
	isEphemeralCreated bool
	target             string
}

// Kind is the kind of a container, which determines what its exit means for the pod.
type Kind string

// The kinds. The annotation podd/kind contains the kind of a container, followed by ":<index>".
const (
	KindInit    Kind = "init"
	KindSidecar Kind = "sidecar"
	KindRegular Kind = "container"
	// KindEphemeral containers are not part of a manifest and do not affect the pod's state.
	KindEphemeral Kind = "ephemeral"
)

// ContainerKind returns the kind of a container. init reports whether it is an init container.
func ContainerKind(c *v1.Container, init bool) Kind {
	switch {
	case !init:
		return KindRegular
	case manifest.IsSidecar(c):
		return KindSidecar
	}
	return KindInit
}

// newFacts computes the facts from in.
func newFacts(in *Input) *facts {
	f := &facts{in: in}
	for _, inc := range in.Observed {
		switch {
		case inc.Foreign:
			f.foreignIncarnations = append(f.foreignIncarnations, inc)
		case IsCreatedFrom(&inc, in.Desired) && !in.isSandboxStopping(inc.ID):
			f.desiredIncarnations = append(f.desiredIncarnations, inc)
		default:
			f.incarnationsToStop = append(f.incarnationsToStop, inc)
		}
	}
	order.Stable(f.desiredIncarnations, newestFirst)
	f.markSuperseded()
	if len(f.desiredIncarnations) > 0 {
		f.current = &f.desiredIncarnations[0]
	}
	f.addMembers()
	return f
}

// newestFirst compares incarnations by attempt number, descending. An incarnation without a sandbox
// is older than an incarnation with a sandbox.
func newestFirst(a, b runtime.Incarnation) int {
	if (a.ID == "") != (b.ID == "") {
		if a.ID == "" {
			return 1
		}
		return -1
	}
	return cmp.Compare(b.Attempt, a.Attempt)
}

// markSuperseded moves live incarnations other than the newest from desiredIncarnations to
// incarnationsToStop. Two sandboxes can exist if the result of a RunSandbox call was lost.
func (f *facts) markSuperseded() {
	var incarnations []runtime.Incarnation
	for i, inc := range f.desiredIncarnations {
		if i > 0 && IsLive(&inc) {
			f.incarnationsToStop = append(f.incarnationsToStop, inc)
			continue
		}
		incarnations = append(incarnations, inc)
	}
	f.desiredIncarnations = incarnations
}

// IsCreatedFrom reports whether podd created incarnation inc from version p. p may be nil.
func IsCreatedFrom(inc *runtime.Incarnation, p *manifest.Pod) bool {
	if p == nil || inc.Foreign || inc.UID != p.UID {
		return false
	}
	// An incarnation without a sandbox has no hash. If HasFixedUID is false, the UID was computed
	// from the manifest, so that equal UIDs mean equal versions.
	if inc.ID == "" {
		return !p.HasFixedUID
	}
	return inc.Annotations[runtime.AnnotationPodHash] == p.Hash
}

// FindVersion returns the version in versions from which inc was created; nil if there is none.
func FindVersion(inc *runtime.Incarnation, versions ...*manifest.Pod) *manifest.Pod {
	for _, p := range versions {
		if IsCreatedFrom(inc, p) {
			return p
		}
	}
	return nil
}

// isSandboxStopping reports whether the sandbox with ID id is being stopped.
func (in *Input) isSandboxStopping(id string) bool {
	return in.History.Stopping != nil && in.History.Stopping.SandboxID == id && id != ""
}

// addMembers sets containers and ephemeralContainers from the containers of the desired version.
func (f *facts) addMembers() {
	if f.in.Desired == nil {
		return
	}
	spec := &f.in.Desired.Object.Spec
	f.podRestarts = f.countPodRestarts()
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		f.containers = append(f.containers, f.newMember(c, ContainerKind(c, true)))
	}
	for i := range spec.Containers {
		f.containers = append(f.containers, f.newMember(&spec.Containers[i], KindRegular))
	}
	for i := range spec.EphemeralContainers {
		c := &spec.EphemeralContainers[i]
		m := f.newMember((*v1.Container)(&c.EphemeralContainerCommon), KindEphemeral)
		m.target = c.TargetContainerName
		f.ephemeralContainers = append(f.ephemeralContainers, m)
	}
}

// newMember returns the containerFacts of container c.
func (f *facts) newMember(c *v1.Container, kind Kind) containerFacts {
	m := containerFacts{spec: c, kind: kind, history: f.in.History.Containers[c.Name], podRestarts: f.podRestarts}
	m.attempt, m.restarts, m.isEphemeralCreated = m.history.Attempt, m.history.Restarts, m.history.EphemeralCreated
	for i := range f.desiredIncarnations {
		for j := range f.desiredIncarnations[i].Containers {
			rec := &f.desiredIncarnations[i].Containers[j]
			if rec.Name != c.Name {
				continue
			}
			m.attempt = max(m.attempt, rec.Attempt+1)
			if rec.State != runtime.Created {
				m.restarts = max(m.restarts, rec.Restarts()+1)
			}
			m.isEphemeralCreated = true
			if rec.WasStartInterrupted() && kind != KindEphemeral {
				continue // an interrupted start affects only the numbers above
			}
			if i > 0 {
				continue
			}
			if kind != KindEphemeral && rec.PodRestarts() < f.podRestarts {
				m.lastBeforeRestart = newerAttempt(m.lastBeforeRestart, rec)
				continue
			}
			m.hasRun = m.hasRun || rec.State != runtime.Created
			m.last = newerAttempt(m.last, rec)
		}
	}
	if m.last != nil {
		t := f.in.History.Terminations[m.last.ID]
		m.restartDue, m.hasFailedProbe = t.WillRestart, t.HasFailedProbe
	}
	return m
}

// newerAttempt returns the container with the higher attempt number. a may be nil.
func newerAttempt(a, b *runtime.Container) *runtime.Container {
	if a != nil && a.Attempt > b.Attempt {
		return a
	}
	return b
}

// hasExited reports whether the container has exited, with a known or an unknown exit code.
func (m *containerFacts) hasExited() bool {
	return m.hasState(runtime.Exited) || m.hasState(runtime.ExitCodeUnknown)
}

// exitText returns the exit code of an exited container for messages.
func exitText(c *runtime.Container) string {
	if c.State == runtime.ExitCodeUnknown {
		return "unknown"
	}
	return strconv.Itoa(int(c.ExitCode))
}

// hasState reports whether the container exists and has state s.
func (m *containerFacts) hasState(s runtime.ContainerState) bool {
	return m.last != nil && m.last.State == s
}

// restartsAfter reports whether the restart policy and the restart rules of m require a restart
// after an exit with this code. As in a kubelet, a container that failed a startup or liveness probe
// is restarted after any exit, unless its restart policy is Never.
func (f *facts) restartsAfter(m *containerFacts, code int32) bool {
	if m.hasFailedProbe && f.restartPolicy(m) != v1.RestartPolicyNever {
		return true
	}
	return manifest.RestartsAfter(&f.in.Desired.Object.Spec, m.spec, code)
}

// restartPolicy returns the restart policy of a container.
func (f *facts) restartPolicy(m *containerFacts) v1.RestartPolicy {
	return manifest.EffectiveRestartPolicy(&f.in.Desired.Object.Spec, m.spec)
}

// lastExit returns the last exit of the container; nil if it has not exited or its exit code is
// unknown. If the runtime has no container, lastExit reads the exit from the history. Exits before
// the last restart of all containers are omitted.
func (m *containerFacts) lastExit() *Exit {
	if m.hasState(runtime.Exited) {
		return NewExit(m.last)
	}
	if e := m.history.LastExit; m.last == nil && e != nil && e.PodRestarts >= m.podRestarts {
		return e
	}
	return nil
}

// isCompleted reports whether m is a regular container that has exited and is not restarted.
func (f *facts) isCompleted(m *containerFacts) bool {
	e := m.lastExit()
	if m.kind != KindRegular || e == nil || m.isRestartRequested() {
		return false
	}
	return !f.restartsAfter(m, e.Code)
}

// isRestartRequested reports whether a user requested the restart of the newest container of m, or
// the container was stopped to be restarted.
func (m *containerFacts) isRestartRequested() bool {
	return m.last != nil && m.history.RestartRequestedID == m.last.ID || m.restartDue && m.hasExited()
}

// allowsFollowing reports whether the containers after m may start. If m is an init container or a
// sidecar, it must have completed or started. Otherwise the result is true.
func (f *facts) allowsFollowing(m *containerFacts) bool {
	switch m.kind {
	case KindInit:
		// If a regular container was created in this sandbox, all init containers have completed,
		// even if the runtime no longer lists them (kubernetes/kubernetes#86531). An init container
		// that was stopped to be restarted has not completed. If a later init container or sidecar
		// was created, an init container that the runtime does not list has completed.
		return m.hasState(runtime.Exited) && m.last.ExitCode == 0 && !m.isRestartRequested() || f.wasRegularCreated() ||
			m.last == nil && f.wasLaterCreated(m)
	case KindSidecar:
		return m.hasRun && !f.isHookPending(m) && (m.spec.StartupProbe == nil || f.hasPassed(m, StartupProbe)) || f.wasRegularCreated()
	}
	return true
}

// wasRegularCreated reports whether a regular container was created in the current sandbox.
func (f *facts) wasRegularCreated() bool {
	for i := range f.containers {
		if m := &f.containers[i]; m.kind == KindRegular && m.last != nil {
			return true
		}
	}
	return false
}

// wasLaterCreated reports whether a container after m was created in the current sandbox.
func (f *facts) wasLaterCreated(m *containerFacts) bool {
	isLater := false
	for i := range f.containers {
		c := &f.containers[i]
		if isLater && c.last != nil {
			return true
		}
		isLater = isLater || c.spec == m.spec
	}
	return false
}

// isItsTurn reports whether all containers before m have completed or started as required for the
// start of m.
func (f *facts) isItsTurn(m *containerFacts) bool {
	for i := range f.containers {
		earlierContainer := &f.containers[i]
		if earlierContainer.spec == m.spec {
			return true
		}
		if earlierContainer.kind != KindRegular && !f.allowsFollowing(earlierContainer) {
			return false
		}
		if earlierContainer.kind == KindRegular && f.blocksNext(earlierContainer) {
			return false
		}
	}
	return true
}

// IsLive reports whether a process of incarnation inc may still run.
func IsLive(inc *runtime.Incarnation) bool {
	return inc.Ready || len(runningContainers(inc)) > 0
}

// runningContainers returns the containers of inc that may still run.
func runningContainers(inc *runtime.Incarnation) []runtime.Container {
	var containers []runtime.Container
	for _, c := range inc.Containers {
		if c.State == runtime.Running || c.State == runtime.Unknown {
			containers = append(containers, c)
		}
	}
	return containers
}

// recordedKind returns the kind and the index in the annotations of a container. Without such
// annotations, it returns KindRegular and 0.
func recordedKind(c *runtime.Container) (Kind, int) {
	kind, index := c.Kind()
	if kind == "" {
		return KindRegular, 0
	}
	return Kind(kind), index
}

// hasStartsInFlight reports whether a start of a container is in progress.
func (f *facts) hasStartsInFlight() bool {
	for _, a := range f.in.InFlight {
		if _, ok := a.(StartContainer); ok {
			return true
		}
	}
	return false
}

// cancelStarts sets d.CancelStarts if a start of a container is in progress. anyInFlight reports
// whether this is the case. Such a start may still create a container.
func (f *facts) cancelStarts(d *Decision) (anyInFlight bool) {
	d.CancelStarts = f.hasStartsInFlight()
	return d.CancelStarts
}

// mayHaveUnknownObject reports whether there may be a sandbox or container that was not observed,
// or an action in progress may still create one.
func (f *facts) mayHaveUnknownObject() bool {
	for _, a := range f.in.InFlight {
		if _, ok := a.(RunSandbox); ok {
			return true
		}
	}
	return f.in.MayHaveUnobserved || f.hasStartsInFlight()
}

// MaxGrace is the maximum grace period. It is a hundred years, because a much longer period could
// overflow a time.Duration.
const MaxGrace = 100 * 365 * 24 * time.Hour

// GraceDuration returns a number of seconds as a time.Duration, at most MaxGrace.
func GraceDuration(seconds int64) time.Duration {
	return time.Duration(min(seconds, int64(MaxGrace/time.Second))) * time.Second
}

// graceOf returns the grace period in the annotations of a sandbox; the default of Kubernetes if
// there is no valid annotation.
func graceOf(inc *runtime.Incarnation) time.Duration {
	n, err := strconv.ParseInt(inc.Annotations[runtime.AnnotationGracePeriod], 10, 64)
	if err != nil || n < 0 {
		n = v1.DefaultTerminationGracePeriodSeconds
	}
	return GraceDuration(n)
}
