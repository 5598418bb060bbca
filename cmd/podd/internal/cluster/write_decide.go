package cluster

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
)

// facts are all that is known of one pod name.
type facts struct {
	mine *server.PodView // as podd shows it; nil: nothing of it is here, or wanted
	last *v1.Pod         // as podd showed the one that seen is, or mirrors, last; nil: never
	seen *v1.Pod         // as the cluster has it; nil: not
	node *v1.Node        // as the cluster has it; nil: not
	// whole says that nothing is here that podd does not show, complete that nothing is
	// wanted.
	whole, complete bool
	// ended says of seen, which is being deleted, that nothing of it is here, and
	// nothing will be.
	ended bool
	now   metav1.Time // of a transition; whole seconds
}

// verb is what is asked of the API server.
type verb string

const (
	nothing verb = ""
	create  verb = "create"
	patches verb = "patch"
	remove  verb = "delete"
)

// step is what is to be done about one pod, once.
type step struct {
	verb verb
	pod  *v1.Pod // the mirror to create, or whom it is done to
	body []byte  // of a patch
	// trouble is what keeps the cluster from knowing the pod, in the form for users.
	trouble string
}

// rule is a row of the table of decisions.
type rule struct {
	name string
	when func(*facts) bool
	do   func(*facts) (step, error)
}

func leave(*facts) (step, error)      { return step{}, nil }
func removeIt(f *facts) (step, error) { return step{verb: remove, pod: f.seen}, nil }
func patchIt(f *facts) (step, error)  { return f.patch(f.mine.Pod) }

func createIt(f *facts) (step, error) {
	return step{verb: create, pod: mirrorOf(f.mine.Pod, f.node)}, nil
}

func inTheWay(*facts) (step, error) { return step{trouble: nameTaken}, nil }

func endIt(f *facts) (step, error) { return f.patch(endOf(f.ending(), f.now)) }

// nameTaken is why a pod has no mirror.
const nameTaken = "the cluster has another pod of its name; rename one of them"

// rules decide; the first that matches counts.
var rules = []rule{
	// At the start, and of a new pod before its worker has spoken, what podd shows is
	// less than it knows.
	{"not known yet", func(f *facts) bool { return !f.whole || f.mine != nil && !spoken(f.mine) }, leave},

	{"not the cluster's", func(f *facts) bool { return f.seen == nil && !f.static() }, leave},
	// The object of what has run to its end tells nobody anything new.
	{"ended without mirror", func(f *facts) bool {
		return f.seen == nil && (isOver(f.mine.Pod.Status.Phase) || f.mine.Pod.DeletionTimestamp != nil)
	}, leave},
	// It owns the mirror; one that is about to go would take the mirror with it.
	{"no node", func(f *facts) bool { return f.seen == nil && (f.node == nil || f.node.DeletionTimestamp != nil) }, leave},
	{"no mirror", func(f *facts) bool { return f.seen == nil }, createIt},

	// Only what others wait for holds it.
	{"mirror let go", func(f *facts) bool { return isMirror(f.seen) && letGo(f.seen) }, leave},
	{"mirror of none", func(f *facts) bool { return isMirror(f.seen) && !f.static() && (f.complete || f.last != nil) }, removeIt},
	{"mirror of one to come", func(f *facts) bool { return isMirror(f.seen) && !f.static() }, leave},
	{"stale mirror", func(f *facts) bool { return isMirror(f.seen) && !mirrors(f.seen, f.mine.Pod, f.node) }, removeIt},
	// It tells of an earlier run, and the cluster takes nothing of an end back.
	{"mirror of the past", func(f *facts) bool { return isMirror(f.seen) && backward(f.seen, &f.mine.Pod.Status) }, removeIt},
	{"mirror", func(f *facts) bool { return isMirror(f.seen) }, patchIt},

	// One that is gone for good is let go of beside a static pod of its name, too.
	{"name taken", func(f *facts) bool { return f.static() && !f.ended }, inTheWay},
	{"taken back", func(f *facts) bool { return f.left() && backward(f.seen, &f.mine.Pod.Status) }, leave},
	{"here", func(f *facts) bool { return f.left() }, patchIt},
	// Whoever waits for the pod's end looks at its phase before the object goes.
	{"gone", func(f *facts) bool { return f.ended && !isOver(f.seen.Status.Phase) }, endIt},
	{"let go", func(f *facts) bool { return f.ended && letGo(f.seen) }, leave},
	{"gone and told", func(f *facts) bool { return f.ended }, removeIt},
	{"to come", func(*facts) bool { return true }, leave},
}

// decide is what to do about a pod, and by which rule.
func decide(f *facts) (step, string, error) {
	for _, r := range rules {
		if r.when(f) {
			s, err := r.do(f)
			return s, r.name, err
		}
	}
	return step{}, "", nil
}

// spoken says that a pod's worker has looked at it, and knows its manifest.
func spoken(p *server.PodView) bool { return p.Rule != "" && p.Pod.UID != "" }

func (f *facts) static() bool { return f.mine != nil && isStatic(f.mine.Pod) }

// left says that the cluster's pod is here, or is to be.
func (f *facts) left() bool { return f.mine != nil && f.mine.Pod.UID == f.seen.UID }

// letGo says that nothing but finalizers keeps an object.
func letGo(p *v1.Pod) bool {
	return p.DeletionTimestamp != nil && p.DeletionGracePeriodSeconds != nil && *p.DeletionGracePeriodSeconds == 0
}

// ending is the pod as it was shown last.
func (f *facts) ending() *v1.Pod {
	if f.last != nil {
		return f.last
	}
	return f.seen
}

// patch has the cluster's status be what podd shows of the pod, if it is not.
func (f *facts) patch(mine *v1.Pod) (step, error) {
	body, err := statusPatch(f.seen, statusOf(f.seen, mine))
	if err != nil || body == nil {
		return step{}, err
	}
	return step{verb: patches, pod: f.seen, body: body}, nil
}
