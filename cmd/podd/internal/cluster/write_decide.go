package cluster

import (
	"cmp"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
)

// facts are the inputs of a decision about one pod name.
type facts struct {
	local  *server.PodView // the pod in the View; nil if it is neither on this node nor desired
	last   *v1.Pod         // the last version of remote in the View; nil if the View never contained remote
	remote *v1.Pod         // the pod in the API server; nil if it does not exist
	node   *v1.Node        // the Node in the API server; nil if it does not exist
	// isViewComplete is set if the View contains every pod that runs on this node. areSourcesRead
	// is set if all sources of static pods were read.
	isViewComplete, areSourcesRead bool
	// isRemoved is set if remote is being deleted, was removed from this node and will not start
	// again.
	isRemoved bool
	// isAddressConfigured is set if the user has configured the node's address. Only then may a
	// status contain a loopback address.
	isAddressConfigured bool
	now                 metav1.Time // current time, truncated to seconds
}

// A verb is the kind of a request to the API server.
type verb string

const (
	verbNone   verb = ""
	verbCreate verb = "create"
	verbPatch  verb = "patch"
	verbDelete verb = "delete"
)

// A step is the next request for a pod. The zero step means that no request is needed.
type step struct {
	verb verb
	pod  *v1.Pod // the mirror pod to create, or the pod to patch or delete
	body []byte  // the patch, for verbPatch
	// problem is the reason why the pod cannot be written, for users, or "".
	problem string
}

// A rule is a row of the decision table. If when returns true, do returns the step.
type rule struct {
	name string
	when func(*facts) bool
	do   func(*facts) (step, error)
}

func skip(*facts) (step, error)          { return step{}, nil }
func deletePod(f *facts) (step, error)   { return step{verb: verbDelete, pod: f.remote}, nil }
func patchStatus(f *facts) (step, error) { return f.statusPatchStep(f.local.Pod) }

func createMirror(f *facts) (step, error) {
	return step{verb: verbCreate, pod: newMirror(f.local.Pod, f.node)}, nil
}

func reportNameTaken(*facts) (step, error) { return step{problem: nameTaken}, nil }

func patchFinalStatus(f *facts) (step, error) {
	return f.statusPatchStep(finalPod(f.lastVersion(), f.now))
}

// nameTaken is the problem of a static pod if its mirror pod cannot be created.
const nameTaken = "the cluster has another pod with this name; rename one of them"

// rules are tried in order; the first match decides.
var rules = []rule{
	// The View is incomplete for some time after the start of podd. The view of a new pod is
	// incomplete until its worker has made its first decision.
	{"view incomplete", func(f *facts) bool { return !f.isViewComplete || f.local != nil && !isDecided(f.local) }, skip},

	{"not in the cluster", func(f *facts) bool { return f.remote == nil && !f.isStatic() }, skip},
	// A mirror pod is not created for a pod that has terminated or is being deleted.
	{"terminated without a mirror pod", func(f *facts) bool {
		return f.remote == nil && (isTerminal(f.local.Pod.Status.Phase) || f.local.Pod.DeletionTimestamp != nil)
	}, skip},
	// The Node is the owner of a mirror pod. If the Node is being deleted, the garbage collector
	// would delete the mirror pod, too.
	{"no node", func(f *facts) bool { return f.remote == nil && (f.node == nil || f.node.DeletionTimestamp != nil) }, skip},
	{"no mirror pod", func(f *facts) bool { return f.remote == nil }, createMirror},

	{"mirror pod with finalizers", func(f *facts) bool { return isMirror(f.remote) && isHeldByFinalizers(f.remote) }, skip},
	{"orphaned mirror pod", func(f *facts) bool {
		return isMirror(f.remote) && !f.isStatic() && (f.areSourcesRead || f.last != nil)
	}, deletePod},
	{"mirror pod of an unread source", func(f *facts) bool { return isMirror(f.remote) && !f.isStatic() }, skip},
	{"outdated mirror pod", func(f *facts) bool { return isMirror(f.remote) && !isMirrorOf(f.remote, f.local.Pod, f.node) }, deletePod},
	// A mirror pod with the final status of an earlier run is deleted and created again, because
	// the final status must not be reverted.
	{"mirror pod of an earlier run", func(f *facts) bool { return isMirror(f.remote) && isRegression(f.remote, &f.local.Pod.Status) }, deletePod},
	{"mirror pod", func(f *facts) bool { return isMirror(f.remote) }, patchStatus},

	// A removed pod is deleted even if a static pod has the same name.
	{"name taken", func(f *facts) bool { return f.isStatic() && !f.isRemoved }, reportNameTaken},
	{"status regression", func(f *facts) bool { return f.isInView() && isRegression(f.remote, &f.local.Pod.Status) }, skip},
	{"on this node", func(f *facts) bool { return f.isInView() }, patchStatus},
	// The final phase is written before the deletion, because clients may be waiting for the final
	// phase.
	{"removed", func(f *facts) bool { return f.isRemoved && !isTerminal(f.remote.Status.Phase) }, patchFinalStatus},
	{"removed, with finalizers", func(f *facts) bool { return f.isRemoved && isHeldByFinalizers(f.remote) }, skip},
	{"removed and reported", func(f *facts) bool { return f.isRemoved }, deletePod},
	{"not on this node yet", func(*facts) bool { return true }, skip},
}

// decide returns the next step for a pod, and the name of the first rule that matches.
func decide(f *facts) (s step, ruleName string, err error) {
	for _, r := range rules {
		if r.when(f) {
			s, err := r.do(f)
			return s, r.name, err
		}
	}
	return step{}, "", nil
}

// isDecided reports whether the worker of a pod has received a manifest and has made a decision
// about the manifest.
func isDecided(p *server.PodView) bool { return p.Rule != "" && p.Pod.UID != "" }

// isStatic reports whether the local pod exists and is static.
func (f *facts) isStatic() bool { return f.local != nil && isStatic(f.local.Pod) }

// isInView reports whether the View contains the pod of the API server.
func (f *facts) isInView() bool { return f.local != nil && f.local.Pod.UID == f.remote.UID }

// isHeldByFinalizers reports whether a pod exists only because of its finalizers. Such a pod is
// being deleted with grace period 0.
func isHeldByFinalizers(p *v1.Pod) bool {
	return p.DeletionTimestamp != nil && p.DeletionGracePeriodSeconds != nil && *p.DeletionGracePeriodSeconds == 0
}

// lastVersion returns the last version of the pod in the View. If the View never contained the pod,
// lastVersion returns the pod in the API server.
func (f *facts) lastVersion() *v1.Pod {
	return cmp.Or(f.last, f.remote)
}

// statusPatchStep returns a step that patches the status to the status of local, or the zero step
// if the status is up to date.
func (f *facts) statusPatchStep(local *v1.Pod) (step, error) {
	body, err := statusPatch(f.remote, mergeStatus(f.remote, local, f.isAddressConfigured))
	if err != nil || body == nil {
		return step{}, err
	}
	return step{verb: verbPatch, pod: f.remote, body: body}, nil
}
