package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/runtime"
)

// minGrace is the least time a container gets when its pod's grace is used up
// by others, or by a restart of podd; the kubelet's floor.
const minGrace = 2 * time.Second

// stop ends one incarnation in order and remembers since when.
func (f *facts) stop(d *Decision, inc *runtime.Incarnation, why string) {
	d.Why = why
	s := f.in.History.Stopping
	if s == nil || s.SandboxID != inc.ID {
		s = &Stopping{SandboxID: inc.ID, Since: f.in.Now, Grace: graceAt(inc, f.in.History.Finished), Why: why}
		d.Stopping = s
	}
	s = f.hasten(d, inc, s)
	// A start under way may still make a container; it must end first.
	if f.startsInFlight() {
		f.keepHooks(d)
		return
	}
	t := term{since: s.Since, grace: s.Grace, why: why}
	if f.overdue(d, inc, s) {
		t.grace = 0
	}
	f.stopMembers(d, inc, t)
}

// Delete is that somebody asked for the end of a pod, with a grace of their own.
type Delete struct {
	UID   types.UID
	Grace time.Duration
	At    time.Time
}

// deleted is the asking that an incarnation ends by; nil for none.
func (f *facts) deleted(inc *runtime.Incarnation) *Delete {
	if del := f.in.Delete; del != nil && del.UID == inc.UID && !inc.Foreign {
		return del
	}
	return nil
}

// hasten gives what is being ended the grace that was asked for, when that is over
// before its own.
func (f *facts) hasten(d *Decision, inc *runtime.Incarnation, s *Stopping) *Stopping {
	del := f.deleted(inc)
	if del == nil {
		return s
	}
	grace := max(del.At.Sub(s.Since), 0) + del.Grace
	if d.Stopping == nil && grace >= s.Grace {
		return s
	}
	hastened := *s
	hastened.Grace = grace
	d.Stopping = &hastened
	return d.Stopping
}

// overdue: the grace that was asked for is over, and the runtime was perhaps told
// of a longer one.
func (f *facts) overdue(d *Decision, inc *runtime.Incarnation, s *Stopping) bool {
	if f.deleted(inc) == nil {
		return false
	}
	end := s.Since.Add(s.Grace + minGrace)
	if f.in.Now.Before(end) {
		d.wakeAt(end)
		return false
	}
	return true
}

// stopMembers ends regular and init containers side by side, then sidecars in
// reverse order, then the sandbox. The preStop hooks of all are made at once, a
// sidecar's too, as the kubelet does. Without grace the sandbox's end is enough:
// the runtime kills what is in it.
func (f *facts) stopMembers(d *Decision, inc *runtime.Incarnation, t term) {
	runs := running(inc)
	if inc.ID == "" {
		f.removeRecords(d, inc)
		return
	}
	if len(runs) == 0 || t.grace == 0 || f.in.Hurry {
		f.clean(d, StopSandbox{ID: inc.ID, Why: t.why})
		return
	}
	slices.SortFunc(runs, byStopOrder)
	var hooking []string
	first, _ := kindOfRecord(&runs[0])
	for i := range runs {
		c := &runs[i]
		if f.overstays(d, c, t) {
			f.clean(d, StopSandbox{ID: inc.ID, Why: t.why})
			return
		}
		f.askLeaving(d, inc, c)
		kind, _ := kindOfRecord(c)
		if i > 0 && (first == Sidecar || kind == Sidecar) {
			if f.hooks(d, c, f.joined(c, t)) { // its turn to stop comes later
				hooking = append(hooking, c.Name)
			}
			continue
		}
		if !f.endContainer(d, c, f.joined(c, t)) {
			hooking = append(hooking, c.Name)
		}
	}
	if len(hooking) > 0 && !d.Problem {
		d.Why = t.why + "; waits for the preStop hook of " + strings.Join(hooking, ", ")
	}
}

// byStopOrder puts sidecars last, the one started last first.
func byStopOrder(a, b runtime.Container) int {
	ka, ia := kindOfRecord(&a)
	kb, ib := kindOfRecord(&b)
	if (ka == Sidecar) != (kb == Sidecar) {
		if ka == Sidecar {
			return 1
		}
		return -1
	}
	if ka == Sidecar {
		return cmp.Compare(ib, ia)
	}
	return cmp.Compare(a.Name, b.Name)
}

// clean adds an action that ends or removes something, unless it failed a
// moment ago.
func (f *facts) clean(d *Decision, a Action) {
	fail := f.in.History.Cleanup[a.Subject()]
	if f.in.Now.Before(fail.Until) {
		d.wakeAt(fail.Until)
		if d.Why == "" || fail.Count > 1 {
			d.Why, d.Problem = fail.Message, true
		}
		return
	}
	d.do(a)
}

func (f *facts) removeRecords(d *Decision, inc *runtime.Incarnation) {
	for _, c := range inc.Containers {
		f.clean(d, RemoveContainer{Container: c.Name, ID: c.ID})
	}
}

// tidy removes what nothing needs any more: superseded sandboxes, dead
// containers beyond the last of a name, directories of gone versions.
func (f *facts) tidy(d *Decision) {
	if d.Phase == PhaseHold || d.Succeed || !f.in.Node.Reachable {
		return
	}
	for i := range f.stale {
		f.removeDead(d, &f.stale[i])
	}
	for i := range f.mine {
		if i > 0 && f.cur.Ready {
			f.removeDead(d, &f.mine[i])
		}
	}
	if f.cur != nil {
		f.removeOlderDead(d)
	}
	for _, dir := range f.in.Dirs {
		switch {
		case !f.staleDir(dir) || f.mayAppear():
		case f.in.Now.Before(dir.Keep):
			d.wakeAt(dir.Keep)
		default:
			f.clean(d, RemoveDir{UID: dir.UID})
		}
	}
}

func (f *facts) removeDead(d *Decision, inc *runtime.Incarnation) {
	if Live(inc) || inc.ID != "" && f.in.ending(inc.ID) && !f.in.History.Released[inc.ID] {
		return
	}
	if inc.ID == "" {
		f.removeRecords(d, inc)
		return
	}
	f.clean(d, RemoveSandbox{ID: inc.ID, Released: f.in.History.Released[inc.ID]})
}

// removeOlderDead keeps one dead container a name, for --previous.
func (f *facts) removeOlderDead(d *Decision) {
	newest := map[string]*runtime.Container{}
	dead := func(c *runtime.Container) bool {
		return c.State == runtime.Exited || c.State == runtime.Created && c.Attempt+1 < f.attemptOf(c.Name)
	}
	for i := range f.cur.Containers {
		c := &f.cur.Containers[i]
		if kept := newest[c.Name]; dead(c) && (kept == nil || c.Attempt > kept.Attempt) {
			newest[c.Name] = c
		}
	}
	for i := range f.cur.Containers {
		if c := &f.cur.Containers[i]; dead(c) && newest[c.Name] != c {
			f.clean(d, RemoveContainer{Container: c.Name, ID: c.ID})
		}
	}
}

func (f *facts) attemptOf(name string) uint32 {
	for i := range f.members {
		if f.members[i].spec.Name == name {
			return f.members[i].attempt
		}
	}
	return 0
}

// staleDir: no version that is wanted or still listed uses it.
func (f *facts) staleDir(dir Dir) bool {
	if dir.of(f.in.Desired) || dir.of(f.in.Successor) {
		return false
	}
	for _, inc := range f.in.Observed {
		if inc.UID == dir.UID {
			return false
		}
	}
	return true
}

// of tells whether a directory may be that of a version; p may be nil.
func (d Dir) of(p *manifest.Pod) bool {
	return p != nil && d.UID == p.UID && (d.Hash == p.Hash || d.Hash == "")
}

func containersOf(spec *v1.PodSpec) []*v1.Container {
	var out []*v1.Container
	for i := range spec.InitContainers {
		out = append(out, &spec.InitContainers[i])
	}
	for i := range spec.Containers {
		out = append(out, &spec.Containers[i])
	}
	return out
}
