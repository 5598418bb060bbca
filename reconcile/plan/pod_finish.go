package plan

import (
	"cmp"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"podd/runtime"
)

func (f *facts) finished() bool {
	if f.in.History.Finished.Of(f.wanted) {
		return true
	}
	return f.outcome() != nil
}

// outcome is how the pod ended, nil while it has not.
func (f *facts) outcome() *Finished {
	if f.in.Desired.Over() {
		return f.recorded()
	}
	e := f.in.Evict
	evicted := e != nil && e.UID == f.in.Desired.UID
	if evicted && e.Reason != Terminated {
		return f.failed(cmp.Or(e.Reason, Evicted), e.Message)
	}
	if f.rejected() {
		return f.failed(f.in.Verdict.Reason, Rejected+f.in.Verdict.Message)
	}
	if fin := f.ended(); fin != nil {
		return fin
	}
	if evicted {
		return f.terminated(e)
	}
	if at := f.deadline(); !at.IsZero() && !f.in.Now.Before(at) {
		return f.failed(DeadlineExceeded, "Pod was active on the node longer than the specified deadline")
	}
	return nil
}

// Rejected is before the message of a pod that its node did not admit for good.
const Rejected = "Pod was rejected: "

// rejected: a pod of a cluster is to run elsewhere then, and waits for nothing.
func (f *facts) rejected() bool {
	return ofCluster(f.in.Desired) && f.in.Successor == nil && f.in.Verdict.Answer == Reject && !f.begun() && f.in.Node.Reachable
}

// recorded is the end that the cluster has of the pod.
func (f *facts) recorded() *Finished {
	s := &f.in.Desired.Spec.Status
	fin := f.failed(s.Reason, s.Message)
	fin.Failed = s.Phase == v1.PodFailed
	return fin
}

// failed is an end that no container is to blame for.
func (f *facts) failed(reason, message string) *Finished {
	return &Finished{
		UID: f.in.Desired.UID, Hash: f.in.Desired.Hash, Size: f.wanted.PodSize(), At: f.in.Now,
		Failed: true, Reason: reason, Message: message,
	}
}

// ended is how the pod ended by itself, nil while it has not.
func (f *facts) ended() *Finished {
	fin := &Finished{UID: f.in.Desired.UID, Hash: f.in.Desired.Hash, Size: f.wanted.PodSize(), At: f.in.Now}
	if m := f.failedInit(); m != nil {
		fin.Failed = true
		fin.Message = fmt.Sprintf("init container %s exited with %d", m.spec.Name, m.last.ExitCode)
		return fin
	}
	lost := f.lostForGood()
	for i := range f.members {
		m := &f.members[i]
		if m.kind != Regular {
			continue
		}
		if !f.completed(m) {
			if !lost {
				return nil
			}
			fin.Failed = true
			fin.Message = "the sandbox was lost before " + m.spec.Name + " ended"
			continue
		}
		fin.Failed = fin.Failed || m.exit().Code != 0
	}
	return fin
}

// failedInit is the init container that failed for good, which ends the pod.
func (f *facts) failedInit() *member {
	if f.regularMade() {
		return nil
	}
	for i := range f.members {
		m := &f.members[i]
		if m.kind == Init && m.is(runtime.Exited) && m.last.ExitCode != 0 && !f.restartsAfter(m, m.last.ExitCode) && !m.restartAsked() {
			return m
		}
	}
	return nil
}

// lostForGood: a pod whose containers ran once is not run again in a new sandbox
// when none of them may be started again.
func (f *facts) lostForGood() bool {
	if f.cur == nil || f.cur.Ready || !f.in.History.Released[f.cur.ID] {
		return false
	}
	ran := false
	for i := range f.members {
		m := &f.members[i]
		if m.kind != Regular {
			continue
		}
		if f.mayRunAgain(m) {
			return false
		}
		ran = ran || m.started
	}
	return ran
}

// mayRunAgain: by how it ended, else by its policy alone: without an exit code
// there is nothing to hold rules against.
func (f *facts) mayRunAgain(m *member) bool {
	if e := m.exit(); e != nil && !m.restartAsked() {
		return f.restartsAfter(m, e.Code)
	}
	return f.policy(m) != v1.RestartPolicyNever
}
