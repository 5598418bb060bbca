package cluster

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
)

// facts are the inputs of a decision on one pod name.
type facts struct {
	mine *server.PodView // as shown by podd; nil: not here and not desired
	last *v1.Pod         // the pod of seen as last shown; nil: never shown
	seen *v1.Pod         // as in the API server; nil: does not exist
	node *v1.Node        // as in the API server; nil: does not exist
	// isWhole is set if podd shows everything that runs here, complete if all sources were
	// read.
	isWhole, complete bool
	// ended is set if seen is being deleted and nothing of it runs here or will.
	ended bool
	// addressGiven is set if the user set the node's address, which may be loopback then.
	addressGiven bool
	now          metav1.Time // time of transitions, in whole seconds
}

// A verb is a request to the API server.
type verb string

const (
	nothing verb = ""
	create  verb = "create"
	patches verb = "patch"
	remove  verb = "delete"
)

// A step is the next request for a pod.
type step struct {
	verb verb
	pod  *v1.Pod // the mirror pod to create, or the object of the request
	body []byte  // of a patch
	// problem is the reason for which the pod cannot be written, for users.
	problem string
}

// A rule is a row of the decision table.
type rule struct {
	name string
	when func(*facts) bool
	do   func(*facts) (step, error)
}

func doNothing(*facts) (step, error)  { return step{}, nil }
func removeIt(f *facts) (step, error) { return step{verb: remove, pod: f.seen}, nil }
func patchIt(f *facts) (step, error)  { return f.patch(f.mine.Pod) }

func createIt(f *facts) (step, error) {
	return step{verb: create, pod: newMirror(f.mine.Pod, f.node)}, nil
}

func reportNameTaken(*facts) (step, error) { return step{problem: nameTaken}, nil }

func endIt(f *facts) (step, error) { return f.patch(finalPod(f.lastShown(), f.now)) }

// nameTaken is the problem of a pod without a mirror pod.
const nameTaken = "the cluster has another pod of its name; rename one of them"

// rules are tried in order; the first match decides.
var rules = []rule{
	// After the start, and before the first decision on a new pod, podd shows less than it
	// knows.
	{"not known yet", func(f *facts) bool { return !f.isWhole || f.mine != nil && !isDecided(f.mine) }, doNothing},

	{"not the cluster's", func(f *facts) bool { return f.seen == nil && !f.static() }, doNothing},
	// A mirror pod of a pod that has ended is not useful.
	{"ended without mirror", func(f *facts) bool {
		return f.seen == nil && (isOver(f.mine.Pod.Status.Phase) || f.mine.Pod.DeletionTimestamp != nil)
	}, doNothing},
	// The Node is the owner. If it is being deleted, the mirror pod would be deleted too.
	{"no node", func(f *facts) bool { return f.seen == nil && (f.node == nil || f.node.DeletionTimestamp != nil) }, doNothing},
	{"no mirror", func(f *facts) bool { return f.seen == nil }, createIt},

	// Only finalizers keep it.
	{"mirror let go", func(f *facts) bool { return isMirror(f.seen) && isReleased(f.seen) }, doNothing},
	{"mirror of none", func(f *facts) bool { return isMirror(f.seen) && !f.static() && (f.complete || f.last != nil) }, removeIt},
	{"mirror of one to come", func(f *facts) bool { return isMirror(f.seen) && !f.static() }, doNothing},
	{"stale mirror", func(f *facts) bool { return isMirror(f.seen) && !isMirrorOf(f.seen, f.mine.Pod, f.node) }, removeIt},
	// Its status is that of an earlier run, which the API server does not revert.
	{"mirror of the past", func(f *facts) bool { return isMirror(f.seen) && isRegression(f.seen, &f.mine.Pod.Status) }, removeIt},
	{"mirror", func(f *facts) bool { return isMirror(f.seen) }, patchIt},

	// A pod that has ended is deleted even if a static pod has the same name.
	{"name taken", func(f *facts) bool { return f.static() && !f.ended }, reportNameTaken},
	{"taken back", func(f *facts) bool { return f.isHere() && isRegression(f.seen, &f.mine.Pod.Status) }, doNothing},
	{"here", func(f *facts) bool { return f.isHere() }, patchIt},
	// Clients that wait for the end read the phase before the object is deleted.
	{"gone", func(f *facts) bool { return f.ended && !isOver(f.seen.Status.Phase) }, endIt},
	{"let go", func(f *facts) bool { return f.ended && isReleased(f.seen) }, doNothing},
	{"gone and told", func(f *facts) bool { return f.ended }, removeIt},
	{"to come", func(*facts) bool { return true }, doNothing},
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

// isDecided reports whether the worker of a pod has made a decision and knows its
// manifest.
func isDecided(p *server.PodView) bool { return p.Rule != "" && p.Pod.UID != "" }

func (f *facts) static() bool { return f.mine != nil && isStatic(f.mine.Pod) }

// isHere reports whether the API server's pod is here or desired.
func (f *facts) isHere() bool { return f.mine != nil && f.mine.Pod.UID == f.seen.UID }

// isReleased reports whether only finalizers keep an object.
func isReleased(p *v1.Pod) bool {
	return p.DeletionTimestamp != nil && p.DeletionGracePeriodSeconds != nil && *p.DeletionGracePeriodSeconds == 0
}

// lastShown returns the pod as last shown.
func (f *facts) lastShown() *v1.Pod {
	if f.last != nil {
		return f.last
	}
	return f.seen
}

// patch returns a step that updates the status, or an empty step if it is up to date.
func (f *facts) patch(mine *v1.Pod) (step, error) {
	body, err := statusPatch(f.seen, mergeStatus(f.seen, mine, f.addressGiven))
	if err != nil || body == nil {
		return step{}, err
	}
	return step{verb: patches, pod: f.seen, body: body}, nil
}
