package cluster

import (
	"cmp"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
)

// facts are the inputs of a decision on one pod name.
type facts struct {
	local  *server.PodView // the pod as podd shows it; nil: not on this node and not desired
	last   *v1.Pod         // the pod of remote as podd has last shown it; nil: never
	remote *v1.Pod         // the pod in the API server; nil: does not exist
	node   *v1.Node        // the Node in the API server; nil: does not exist
	// viewComplete is set if podd shows everything that runs on this node, and sourcesComplete if
	// all sources were read.
	viewComplete, sourcesComplete bool
	// ended is set if remote is being deleted, and nothing of it runs on this node or will.
	ended bool
	// addressGiven is set if the user set the node's address, which may be loopback then.
	addressGiven bool
	now          metav1.Time // time of transitions, in whole seconds
}

// A verb is a request to the API server.
type verb string

const (
	verbNone   verb = ""
	verbCreate verb = "create"
	verbPatch  verb = "patch"
	verbDelete verb = "delete"
)

// A step is the next request for a pod.
type step struct {
	verb verb
	pod  *v1.Pod // the mirror pod to create, or the pod to patch or delete
	body []byte  // of a patch
	// problem is the reason for users for which the pod cannot be written; "" for none.
	problem string
}

// A rule is a row of the decision table.
type rule struct {
	name string
	when func(*facts) bool
	do   func(*facts) (step, error)
}

func skip(*facts) (step, error)          { return step{}, nil }
func deletePod(f *facts) (step, error)   { return step{verb: verbDelete, pod: f.remote}, nil }
func patchStatus(f *facts) (step, error) { return f.patch(f.local.Pod) }

func createMirror(f *facts) (step, error) {
	return step{verb: verbCreate, pod: newMirror(f.local.Pod, f.node)}, nil
}

func rejectName(*facts) (step, error) { return step{problem: nameTaken}, nil }

func patchFinalStatus(f *facts) (step, error) { return f.patch(finalPod(f.lastShown(), f.now)) }

// nameTaken is the problem of a static pod that cannot have a mirror pod.
const nameTaken = "the cluster has another pod with this name; rename one of them"

// rules are tried in order; the first match decides.
var rules = []rule{
	// When podd starts, and before the first decision on a new pod, it does not show everything.
	{"not complete yet", func(f *facts) bool { return !f.viewComplete || f.local != nil && !isDecided(f.local) }, skip},

	{"not of the cluster", func(f *facts) bool { return f.remote == nil && !f.isStatic() }, skip},
	// A new mirror pod of a pod that has ended is not useful.
	{"ended without a mirror pod", func(f *facts) bool {
		return f.remote == nil && (isTerminal(f.local.Pod.Status.Phase) || f.local.Pod.DeletionTimestamp != nil)
	}, skip},
	// The Node is the owner of a mirror pod. If it is being deleted, the mirror pod would be
	// deleted, too.
	{"no node", func(f *facts) bool { return f.remote == nil && (f.node == nil || f.node.DeletionTimestamp != nil) }, skip},
	{"no mirror pod", func(f *facts) bool { return f.remote == nil }, createMirror},

	{"mirror pod with finalizers", func(f *facts) bool { return isMirror(f.remote) && isReleased(f.remote) }, skip},
	{"orphaned mirror pod", func(f *facts) bool {
		return isMirror(f.remote) && !f.isStatic() && (f.sourcesComplete || f.last != nil)
	}, deletePod},
	{"mirror pod of an unread source", func(f *facts) bool { return isMirror(f.remote) && !f.isStatic() }, skip},
	{"outdated mirror pod", func(f *facts) bool { return isMirror(f.remote) && !isMirrorOf(f.remote, f.local.Pod, f.node) }, deletePod},
	// The final status of an earlier run must not be reverted.
	{"mirror pod of an earlier run", func(f *facts) bool { return isMirror(f.remote) && isRegression(f.remote, &f.local.Pod.Status) }, deletePod},
	{"mirror pod", func(f *facts) bool { return isMirror(f.remote) }, patchStatus},

	// A pod that has ended is deleted, even if a static pod has the same name.
	{"name taken", func(f *facts) bool { return f.isStatic() && !f.ended }, rejectName},
	{"status regression", func(f *facts) bool { return f.isHere() && isRegression(f.remote, &f.local.Pod.Status) }, skip},
	{"on this node", func(f *facts) bool { return f.isHere() }, patchStatus},
	// Clients that wait for the end must be able to read the final phase before the deletion.
	{"ended", func(f *facts) bool { return f.ended && !isTerminal(f.remote.Status.Phase) }, patchFinalStatus},
	{"ended with finalizers", func(f *facts) bool { return f.ended && isReleased(f.remote) }, skip},
	{"ended and reported", func(f *facts) bool { return f.ended }, deletePod},
	{"not on this node yet", func(*facts) bool { return true }, skip},
}

// decide returns the next step for a pod and the name of the rule.
func decide(f *facts) (step, string, error) {
	for _, r := range rules {
		if r.when(f) {
			s, err := r.do(f)
			return s, r.name, err
		}
	}
	return step{}, "", nil
}

// isDecided reports whether the worker of a pod has made a decision and has a manifest.
func isDecided(p *server.PodView) bool { return p.Rule != "" && p.Pod.UID != "" }

// isStatic reports whether the local pod is static.
func (f *facts) isStatic() bool { return f.local != nil && isStatic(f.local.Pod) }

// isHere reports whether the pod of the API server is on this node or desired.
func (f *facts) isHere() bool { return f.local != nil && f.local.Pod.UID == f.remote.UID }

// isReleased reports whether a pod is being deleted and only its finalizers keep it.
func isReleased(p *v1.Pod) bool {
	return p.DeletionTimestamp != nil && p.DeletionGracePeriodSeconds != nil && *p.DeletionGracePeriodSeconds == 0
}

// lastShown returns the pod as podd has last shown it, or else as in the API server.
func (f *facts) lastShown() *v1.Pod {
	return cmp.Or(f.last, f.remote)
}

// patch returns a step that updates the status to that of local, or an empty step if it is up
// to date.
func (f *facts) patch(local *v1.Pod) (step, error) {
	body, err := statusPatch(f.remote, mergeStatus(f.remote, local, f.addressGiven))
	if err != nil || body == nil {
		return step{}, err
	}
	return step{verb: verbPatch, pod: f.remote, body: body}, nil
}
