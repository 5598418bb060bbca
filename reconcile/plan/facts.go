package plan

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/runtime"
)

// facts are the data of an Input in the form that the rules use.
type facts struct {
	in *Input
	// desired is Desired with the sizes in the manifest; in.Desired has the allocated sizes.
	desired *manifest.Pod
	// mine contains the incarnations of Desired's version, newest first.
	mine []runtime.Incarnation
	// stale contains incarnations of this podd that must stop: those of another version,
	// those that are being stopped, and older live ones of this version.
	stale []runtime.Incarnation
	// foreign contains the incarnations that this podd did not create.
	foreign []runtime.Incarnation
	// cur is the newest of mine; nil if there is none.
	cur     *runtime.Incarnation
	members []member
	// ephemeral contains the ephemeral containers. They do not affect decisions about the
	// whole pod.
	ephemeral []member
}

// member is one container of the desired pod with its observed state and history.
type member struct {
	spec *v1.Container
	kind Kind
	// last is its newest record in cur; nil if there is none.
	last *runtime.Container
	hist ContainerHistory
	// again reports that last was stopped to be restarted.
	again bool
	// started reports that it ran at least once in cur.
	started bool
	// attempt is the number of its next start, restarts the restart count.
	attempt, restarts uint32
	// created reports that an ephemeral container was created; target is the container
	// that shares its process namespace with it, "" for none.
	created bool
	target  string
}

// Kind is the kind of a container, which determines what its exit means for the pod.
type Kind string

// The kinds, which are values of the annotation podd/kind before ":<index>".
const (
	Init    Kind = "init"
	Sidecar Kind = "sidecar"
	Regular Kind = "container"
	// Ephemeral containers are not part of a manifest and do not affect the pod's state.
	Ephemeral Kind = "ephemeral"
)

// KindOf returns the kind of a regular or init container.
func KindOf(c *v1.Container, init bool) Kind {
	switch {
	case !init:
		return Regular
	case manifest.IsSidecar(c):
		return Sidecar
	}
	return Init
}

func newFacts(in *Input) *facts {
	f := &facts{in: in}
	for _, inc := range in.Observed {
		switch {
		case inc.Foreign:
			f.foreign = append(f.foreign, inc)
		case Runs(in.Desired, &inc) && !in.isStopping(inc.ID):
			f.mine = append(f.mine, inc)
		default:
			f.stale = append(f.stale, inc)
		}
	}
	slices.SortStableFunc(f.mine, newestFirst)
	f.markSuperseded()
	if len(f.mine) > 0 {
		f.cur = &f.mine[0]
	}
	f.addMembers()
	return f
}

// newestFirst sorts records without a sandbox last, because those with a
// sandbox are newer.
func newestFirst(a, b runtime.Incarnation) int {
	if (a.ID == "") != (b.ID == "") {
		if a.ID == "" {
			return 1
		}
		return -1
	}
	return cmp.Compare(b.Attempt, a.Attempt)
}

// markSuperseded marks live incarnations of this version other than the newest as stale. If the
// result of a RunSandbox call is lost, two sandboxes can exist.
func (f *facts) markSuperseded() {
	var kept []runtime.Incarnation
	for i, inc := range f.mine {
		if i > 0 && Live(&inc) {
			f.stale = append(f.stale, inc)
			continue
		}
		kept = append(kept, inc)
	}
	f.mine = kept
}

// Runs reports whether an incarnation was created by podd from exactly this version.
func Runs(p *manifest.Pod, inc *runtime.Incarnation) bool {
	if p == nil || inc.Foreign || inc.UID != p.UID {
		return false
	}
	// Records without a sandbox have no hash, but a generated UID is specific to a version.
	if inc.ID == "" {
		return !p.FixedUID
	}
	return inc.Annotations[runtime.AnnotationHash] == p.Hash
}

// VersionOf returns the version from which an incarnation was created, or nil if podd does
// not have its manifest.
func VersionOf(inc *runtime.Incarnation, known ...*manifest.Pod) *manifest.Pod {
	for _, p := range known {
		if Runs(p, inc) {
			return p
		}
	}
	return nil
}

func (in *Input) isStopping(id string) bool {
	return in.History.Stopping != nil && in.History.Stopping.SandboxID == id && id != ""
}

func (f *facts) addMembers() {
	if f.in.Desired == nil {
		return
	}
	spec := &f.in.Desired.Spec.Spec
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		f.members = append(f.members, f.newMember(c, KindOf(c, true)))
	}
	for i := range spec.Containers {
		f.members = append(f.members, f.newMember(&spec.Containers[i], Regular))
	}
	for i := range spec.EphemeralContainers {
		c := &spec.EphemeralContainers[i]
		m := f.newMember((*v1.Container)(&c.EphemeralContainerCommon), Ephemeral)
		m.target = c.TargetContainerName
		f.ephemeral = append(f.ephemeral, m)
	}
}

func (f *facts) newMember(c *v1.Container, kind Kind) member {
	m := member{spec: c, kind: kind, hist: f.in.History.Containers[c.Name]}
	m.attempt, m.restarts, m.created = m.hist.Attempt, m.hist.Restarts, m.hist.Created
	for i := range f.mine {
		for j := range f.mine[i].Containers {
			rec := &f.mine[i].Containers[j]
			if rec.Name != c.Name {
				continue
			}
			m.attempt = max(m.attempt, rec.Attempt+1)
			if rec.State != runtime.Created {
				m.restarts = max(m.restarts, rec.Restarts()+1)
			}
			m.created = true
			if rec.StartInterrupted() && kind != Ephemeral {
				continue // counts only for the attempt number
			}
			m.started = m.started || i == 0 && rec.State != runtime.Created
			if i == 0 && (m.last == nil || rec.Attempt >= m.last.Attempt) {
				m.last = rec
			}
		}
	}
	if m.last != nil {
		m.again = f.in.History.Terminations[m.last.ID].Again
	}
	return m
}

// hasEnded reports whether the container has exited, with a known or unknown code.
func (m *member) hasEnded() bool { return m.is(runtime.Exited) || m.is(runtime.ExitUnknown) }

// exitText returns the exit code for messages.
func (m *member) exitText() string {
	if m.is(runtime.ExitUnknown) {
		return "unknown"
	}
	return strconv.Itoa(int(m.last.ExitCode))
}

func (m *member) is(s runtime.ContainerState) bool { return m.last != nil && m.last.State == s }

// restartsAfter reports whether policy and rules restart m after an exit with this code.
func (f *facts) restartsAfter(m *member, code int32) bool {
	return manifest.RestartsAfter(&f.in.Desired.Spec.Spec, m.spec, code)
}

func (f *facts) policy(m *member) v1.RestartPolicy {
	return manifest.RestartPolicyOf(&f.in.Desired.Spec.Spec, m.spec)
}

// exit returns the container's last exit: from the runtime, or else from the history.
func (m *member) exit() *Exit {
	if m.is(runtime.Exited) {
		return exitOf(m.last)
	}
	if m.last == nil {
		return m.hist.LastExit
	}
	return nil
}

func exitOf(c *runtime.Container) *Exit {
	return &Exit{
		ID: c.ID, Code: c.ExitCode, Reason: c.Reason, Message: c.Message,
		StartedAt: c.StartedAt, FinishedAt: c.FinishedAt, Attempt: c.Attempt, Skipped: c.Attempt - c.Restarts(),
	}
}

// completed reports whether a regular container has exited and is not restarted.
func (f *facts) completed(m *member) bool {
	e := m.exit()
	if m.kind != Regular || e == nil || m.restartRequested() {
		return false
	}
	return !f.restartsAfter(m, e.Code)
}

func (m *member) restartRequested() bool {
	return m.last != nil && m.hist.RestartID == m.last.ID || m.again && m.hasEnded()
}

// initSatisfied reports whether m lets later containers start.
func (f *facts) initSatisfied(m *member) bool {
	switch m.kind {
	case Init:
		// If a regular container was created in this sandbox, init is complete, even if its
		// record no longer exists (k/k#86531). An init container that was stopped to be
		// restarted has not completed.
		return m.is(runtime.Exited) && m.last.ExitCode == 0 && !m.restartRequested() || f.regularCreated()
	case Sidecar:
		return m.started && !f.hookPending(m) && (m.spec.StartupProbe == nil || f.passed(m, Startup)) || f.regularCreated()
	}
	return true
}

func (f *facts) regularCreated() bool {
	for i := range f.members {
		if m := &f.members[i]; m.kind == Regular && m.last != nil {
			return true
		}
	}
	return false
}

// turn reports whether the containers before m let it start.
func (f *facts) turn(m *member) bool {
	for i := range f.members {
		before := &f.members[i]
		if before.spec == m.spec {
			return true
		}
		if before.kind != Regular && !f.initSatisfied(before) {
			return false
		}
		if before.kind == Regular && f.blocksNext(before) {
			return false
		}
	}
	return true
}

// Live reports whether a process of an incarnation may still run.
func Live(inc *runtime.Incarnation) bool {
	return inc.Ready || len(running(inc)) > 0
}

func running(inc *runtime.Incarnation) []runtime.Container {
	var out []runtime.Container
	for _, c := range inc.Containers {
		if c.State == runtime.Running || c.State == runtime.Unknown {
			out = append(out, c)
		}
	}
	return out
}

// kindOfRecord returns the recorded kind and index of a container. A container without
// them is a regular one.
func kindOfRecord(c *runtime.Container) (Kind, int) {
	kind, index := c.Kind()
	if kind == "" {
		return Regular, 0
	}
	return Kind(kind), index
}

func (f *facts) startsInFlight() bool {
	for _, a := range f.in.InFlight {
		if _, ok := a.(StartContainer); ok {
			return true
		}
	}
	return false
}

// cancelStarts cancels the starts of containers in progress and reports whether there are
// any. They may still create a container, and return soon: see Decision.CancelStarts.
func (f *facts) cancelStarts(d *Decision) bool {
	d.CancelStarts = f.startsInFlight()
	return d.CancelStarts
}

// mayAppear reports whether a sandbox or container that is not observed yet may come into
// existence.
func (f *facts) mayAppear() bool {
	for _, a := range f.in.InFlight {
		if _, ok := a.(RunSandbox); ok {
			return true
		}
	}
	return f.in.Unobserved || f.startsInFlight()
}

// MaxGrace is the longest grace period, a hundred years: it does not overflow a Duration,
// and is as good as any longer one.
const MaxGrace = 100 * 365 * 24 * time.Hour

// Grace returns a grace period in seconds as a Duration, at most MaxGrace.
func Grace(seconds int64) time.Duration {
	return time.Duration(min(seconds, int64(MaxGrace/time.Second))) * time.Second
}

func graceOf(inc *runtime.Incarnation) time.Duration {
	n, err := strconv.ParseInt(inc.Annotations[runtime.AnnotationGrace], 10, 64)
	if err != nil || n < 0 {
		n = v1.DefaultTerminationGracePeriodSeconds
	}
	return Grace(n)
}
