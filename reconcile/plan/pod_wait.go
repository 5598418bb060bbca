package plan

import (
	"maps"
	"slices"
)

func (f *facts) hold(d *Decision) { f.keepHooks(d) }

// keepHooks goes on with what cannot be made half: whoever gives a hook up has it
// made again.
func (f *facts) keepHooks(d *Decision) {
	for _, subject := range slices.Sorted(maps.Keys(f.in.InFlight)) {
		if a, ok := f.in.InFlight[subject].(PreStop); ok {
			d.do(a)
		}
	}
}

// waitRuntime begins nothing, and gives nothing up that may yet come right: a
// list that took too long is no reason to pull an image anew.
func (f *facts) waitRuntime(d *Decision) {
	d.Why = f.in.Node.Message
	if f.in.Desired == nil {
		f.keepHooks(d)
		return
	}
	for _, subject := range slices.Sorted(maps.Keys(f.in.InFlight)) {
		d.do(f.in.InFlight[subject])
	}
}

// notAdmitted: the verdict is on the newest version; an earlier one in force was
// admitted before.
func (f *facts) notAdmitted() bool {
	return f.in.Successor == nil && f.in.Verdict.Answer != Admit && (f.cur == nil || !f.cur.Ready) && !f.keepsSize() &&
		!(ofCluster(f.in.Desired) && f.begun())
}

// begun: the version was admitted once, and is a cluster's: it is not asked again. A
// directory tells no such thing, after a reboot it may be all that is left.
func (f *facts) begun() bool { return f.cur != nil || f.in.Verdict.Resize }

func (f *facts) waitAdmission(d *Decision) {
	d.Why, d.Reason = f.in.Verdict.Message, f.in.Verdict.Reason
	d.Problem = f.in.Verdict.Answer == Reject
	d.Failure = Failure{Reason: d.Reason, Message: d.Why, Final: d.Problem}
}

func (f *facts) runtimeNotReady() bool {
	return !f.in.Node.Ready && (f.cur == nil || !f.cur.Ready)
}

func (f *facts) waitReady(d *Decision) {
	d.Why, d.Problem = f.in.Node.Message, true
	f.prefetch(d)
}

func (f *facts) networkNotReady() bool {
	return !f.in.Node.NetworkReady && !f.in.Desired.Spec.Spec.HostNetwork && (f.cur == nil || !f.cur.Ready)
}

func (f *facts) waitNetwork(d *Decision) {
	d.Why, d.Problem, d.Reason = f.in.Node.NetworkMessage, true, "NetworkNotReady"
	f.prefetch(d)
}
