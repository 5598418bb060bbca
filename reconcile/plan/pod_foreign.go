package plan

import "podd/runtime"

func (f *facts) liveForeign() *runtime.Incarnation {
	for i := range f.foreign {
		if Live(&f.foreign[i]) {
			return &f.foreign[i]
		}
	}
	return nil
}

// adoptable is what another agent left in the place of a wanted pod: what runs, and
// what is dead of the same UID, whose names at the runtime the pod is to have. What
// another podd made is that podd's.
func (f *facts) adoptable() *runtime.Incarnation {
	if f.in.Desired == nil || !f.in.Node.Adopt {
		return nil
	}
	for i := range f.foreign {
		inc := &f.foreign[i]
		if inc.Labels[runtime.LabelInstance] == "" && (Live(inc) || inc.UID == f.in.Desired.UID && !f.in.Desired.Over()) {
			return inc
		}
	}
	return nil
}

func (f *facts) adopts() bool { return f.adoptable() != nil }

func (f *facts) endForeign(d *Decision) {
	d.Why = "adopted"
	f.clean(d, EndForeign{ID: f.adoptable().ID})
}

func (f *facts) foreignHolds() bool {
	return f.in.Desired != nil && f.liveForeign() != nil && (f.cur == nil || !Live(f.cur))
}

func (f *facts) waitForeign(d *Decision) {
	d.Why = "a pod of this name that podd did not make runs on this runtime; remove it, or start podd with --adopt"
	d.Problem = true
	d.Reason = "NameInUse"
}
