package plan

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/runtime"
)

// facts are an Input sorted for the rules.
type facts struct {
	in *Input
	// wanted is Desired as it is written; in.Desired is what is allocated of it.
	wanted *manifest.Pod
	// mine are the incarnations of Desired's version, newest first.
	mine []runtime.Incarnation
	// stale are ours and to end: of another version, asked to end, or live
	// beside the newest one of this version.
	stale   []runtime.Incarnation
	foreign []runtime.Incarnation
	// cur is the newest of mine; nil when there is none.
	cur     *runtime.Incarnation
	members []member
	// ephemeral are the containers that were added to the wanted pod; nothing that
	// is decided on the pod as a whole looks at them.
	ephemeral []member
}

// member is one container of the wanted pod with what is known of it.
type member struct {
	spec *v1.Container
	kind Kind
	// last is its newest record in cur; nil when there is none.
	last *runtime.Container
	hist ContainerHistory
	// again says that last was ended to be started anew.
	again bool
	// started says that it ran at least once in cur.
	started bool
	// attempt is the number of its next start.
	attempt uint32
	// made says of an ephemeral one that it was created, target whose processes it
	// is to see; "" for nobody's.
	made   bool
	target string
}

// Kind of a container: what it means for the pod that it ends.
type Kind string

// The kinds, values of the annotation podd/kind before ":<index>".
const (
	Init    Kind = "init"
	Sidecar Kind = "sidecar"
	Regular Kind = "container"
	// Ephemeral containers are in no manifest, and mean nothing for the pod.
	Ephemeral Kind = "ephemeral"
)

// KindOf tells an init container from a sidecar.
func KindOf(c *v1.Container, init bool) Kind {
	switch {
	case !init:
		return Regular
	case manifest.IsSidecar(c):
		return Sidecar
	}
	return Init
}

func sortFacts(in *Input) *facts {
	f := &facts{in: in}
	for _, inc := range in.Observed {
		switch {
		case inc.Foreign:
			f.foreign = append(f.foreign, inc)
		case Runs(in.Desired, &inc) && !in.ending(inc.ID):
			f.mine = append(f.mine, inc)
		default:
			f.stale = append(f.stale, inc)
		}
	}
	slices.SortStableFunc(f.mine, newestFirst)
	f.supersede()
	if len(f.mine) > 0 {
		f.cur = &f.mine[0]
	}
	f.addMembers()
	return f
}

// newestFirst puts containers whose sandbox is gone last: what has a sandbox
// is newer.
func newestFirst(a, b runtime.Incarnation) int {
	if (a.ID == "") != (b.ID == "") {
		if a.ID == "" {
			return 1
		}
		return -1
	}
	return cmp.Compare(b.Attempt, a.Attempt)
}

// supersede makes stale what is live of this version beside its newest sandbox:
// when the answer to the call that made one is lost, two can be made.
func (f *facts) supersede() {
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

// Runs tells whether an incarnation of ours is of exactly this version.
func Runs(p *manifest.Pod, inc *runtime.Incarnation) bool {
	if p == nil || inc.Foreign || inc.UID != p.UID {
		return false
	}
	// Containers whose sandbox is gone tell no hash; a made UID tells as much.
	if inc.ID == "" {
		return !p.FixedUID
	}
	return inc.Annotations[runtime.AnnotationHash] == p.Hash
}

// VersionOf is what an incarnation was made from, nil when podd does not have its
// manifest.
func VersionOf(inc *runtime.Incarnation, known ...*manifest.Pod) *manifest.Pod {
	for _, p := range known {
		if Runs(p, inc) {
			return p
		}
	}
	return nil
}

func (in *Input) ending(id string) bool {
	return in.History.Stopping != nil && in.History.Stopping.SandboxID == id && id != ""
}

func (f *facts) addMembers() {
	if f.in.Desired == nil {
		return
	}
	spec := &f.in.Desired.Spec.Spec
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		f.members = append(f.members, f.member(c, KindOf(c, true)))
	}
	for i := range spec.Containers {
		f.members = append(f.members, f.member(&spec.Containers[i], Regular))
	}
	for i := range spec.EphemeralContainers {
		c := &spec.EphemeralContainers[i]
		m := f.member((*v1.Container)(&c.EphemeralContainerCommon), Ephemeral)
		m.target = c.TargetContainerName
		f.ephemeral = append(f.ephemeral, m)
	}
}

func (f *facts) member(c *v1.Container, kind Kind) member {
	m := member{spec: c, kind: kind, hist: f.in.History.Containers[c.Name]}
	m.attempt, m.made = m.hist.Attempt, m.hist.Made
	for i := range f.mine {
		for j := range f.mine[i].Containers {
			rec := &f.mine[i].Containers[j]
			if rec.Name != c.Name {
				continue
			}
			m.attempt = max(m.attempt, rec.Attempt+1)
			m.made = true
			if rec.CutShort() && kind != Ephemeral {
				continue // as if it had never been made, but for its number
			}
			m.started = m.started || i == 0 && rec.State != runtime.Created
			if i == 0 && (m.last == nil || rec.Attempt >= m.last.Attempt) {
				m.last = rec
			}
		}
	}
	if m.last != nil {
		m.again = f.in.History.Endings[m.last.ID].Again
	}
	return m
}

func (m *member) is(s runtime.ContainerState) bool { return m.last != nil && m.last.State == s }

// restartsAfter says that policy and rules have m started again after an exit.
func (f *facts) restartsAfter(m *member, code int32) bool {
	return manifest.RestartsAfter(&f.in.Desired.Spec.Spec, m.spec, code)
}

func (f *facts) policy(m *member) v1.RestartPolicy {
	return manifest.RestartPolicyOf(&f.in.Desired.Spec.Spec, m.spec)
}

// exit is the container's last end: from the runtime, else from memory.
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
		StartedAt: c.StartedAt, FinishedAt: c.FinishedAt, Attempt: c.Attempt,
	}
}

// completed tells whether a regular container ended for good.
func (f *facts) completed(m *member) bool {
	e := m.exit()
	if m.kind != Regular || e == nil || m.restartAsked() {
		return false
	}
	return !f.restartsAfter(m, e.Code)
}

func (m *member) restartAsked() bool {
	return m.last != nil && m.hist.RestartID == m.last.ID || m.again && m.is(runtime.Exited)
}

// initSatisfied tells whether the ones after m may start as far as m goes.
func (f *facts) initSatisfied(m *member) bool {
	switch m.kind {
	case Init:
		// A regular container made in this sandbox proves that init is over,
		// though its record may be gone (k/k#86531).
		// One that was stopped to be started again has not done its work.
		return m.is(runtime.Exited) && m.last.ExitCode == 0 && !m.restartAsked() || f.regularMade()
	case Sidecar:
		return m.started && !f.hookPending(m) && (m.spec.StartupProbe == nil || f.passed(m, Startup)) || f.regularMade()
	}
	return true
}

func (f *facts) regularMade() bool {
	for i := range f.members {
		if m := &f.members[i]; m.kind == Regular && m.last != nil {
			return true
		}
	}
	return false
}

// turn tells whether m may run as far as those before it go.
func (f *facts) turn(m *member) bool {
	for i := range f.members {
		before := &f.members[i]
		if before.spec == m.spec {
			return true
		}
		if before.kind != Regular && !f.initSatisfied(before) {
			return false
		}
		if before.kind == Regular && f.holdsUp(before) {
			return false
		}
	}
	return true
}

// Live tells whether anything of an incarnation may still run.
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

// kindOfRecord reads podd/kind ("sidecar:2") from a container.
func kindOfRecord(c *runtime.Container) (Kind, int) {
	kind, index, _ := strings.Cut(c.Annotations[runtime.AnnotationKind], ":")
	n, err := strconv.Atoi(index)
	if err != nil {
		n = 0
	}
	if kind == "" {
		return Regular, 0
	}
	return Kind(kind), n
}

func (f *facts) startsInFlight() bool {
	for _, a := range f.in.InFlight {
		if _, ok := a.(StartContainer); ok {
			return true
		}
	}
	return false
}

// mayAppear: a sandbox or container that is not seen yet may come to be.
func (f *facts) mayAppear() bool {
	for _, a := range f.in.InFlight {
		if _, ok := a.(RunSandbox); ok {
			return true
		}
	}
	return f.in.Unseen || f.startsInFlight()
}

// MaxGrace is the longest grace a pod gets, a hundred years: as good as what a
// manifest may ask for beyond, and no overflow of a Duration.
const MaxGrace = 100 * 365 * 24 * time.Hour

// Grace of so many seconds, at most MaxGrace.
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
