package podwriter

import (
	"cmp"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/cmd/podd/internal/cluster/mirror"
	"podd/manifest"
	"podd/server"
)

// podFacts are the inputs of a decision about one pod name.
type podFacts struct {
	local     *server.PodView // the pod in the View; nil if it is neither on this node nor desired
	lastLocal *v1.Pod         // the newest version of the pod with the UID of remote that a View contained; nil if there is none
	remote    *v1.Pod         // the pod in the API server; nil if it does not exist
	node      *v1.Node        // the Node in the API server; nil if it does not exist
	// isViewComplete is set if the View contains every pod that runs on this node. areSourcesRead
	// is set if all sources of static pods were read.
	isViewComplete, areSourcesRead bool
	// isRemoved is set if the pod remote is being deleted, was removed from this node and will not
	// start again.
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

// A podRequest is the next request for a pod. The zero value means that no request is needed.
type podRequest struct {
	verb verb
	pod  *v1.Pod // the mirror pod to create, or the pod to patch or delete
	body []byte  // the patch, for verbPatch
	// changedAt is podRecord.changedAt when a patch was sent.
	changedAt time.Time
	// problem is the reason why the pod cannot be written, for users, or "".
	problem string
}

// A writeRule is a row of the decision table. The rule applies if its function when returns true.
// Its function do then returns the request.
type writeRule struct {
	name string
	when func(*podFacts) bool
	do   func(*podFacts) (podRequest, error)
}

func noRequest(*podFacts) (podRequest, error) { return podRequest{}, nil }
func deletePod(f *podFacts) (podRequest, error) {
	return podRequest{verb: verbDelete, pod: f.remote}, nil
}
func patchStatus(f *podFacts) (podRequest, error) { return f.statusPatchRequest(f.local.Pod) }

func createMirror(f *podFacts) (podRequest, error) {
	return podRequest{verb: verbCreate, pod: mirror.New(f.local.Pod, f.node)}, nil
}

func reportNameTaken(*podFacts) (podRequest, error) { return podRequest{problem: nameTaken}, nil }

func patchFinalStatus(f *podFacts) (podRequest, error) {
	return f.statusPatchRequest(finalPod(f.lastVersion(), f.now))
}

// nameTaken is the problem of a static pod if the API server contains another pod with its name.
const nameTaken = "the cluster has another pod with this name; rename one of them"

// writeRules are tried in order. The first rule that applies determines the request.
var writeRules = []writeRule{
	// The View is incomplete for some time after the start of podd. The view of a new pod is
	// incomplete until its worker has made its first decision.
	{"view incomplete", func(f *podFacts) bool { return !f.isViewComplete || f.local != nil && !isDecided(f.local) }, noRequest},

	{"not in the cluster", func(f *podFacts) bool { return f.remote == nil && !f.isStatic() }, noRequest},
	// A mirror pod is not created for a pod that has terminated or is being deleted.
	{"terminated without a mirror pod", func(f *podFacts) bool {
		return f.remote == nil && (manifest.IsTerminal(f.local.Pod.Status.Phase) || f.local.Pod.DeletionTimestamp != nil)
	}, noRequest},
	// The Node is the owner of a mirror pod. If the Node is being deleted, the garbage collector
	// would delete the mirror pod, too.
	{"no node", func(f *podFacts) bool { return f.remote == nil && (f.node == nil || f.node.DeletionTimestamp != nil) }, noRequest},
	{"no mirror pod", func(f *podFacts) bool { return f.remote == nil }, createMirror},

	{"mirror pod with finalizers", func(f *podFacts) bool { return mirror.IsMirror(f.remote) && isHeldByFinalizers(f.remote) }, noRequest},
	{"orphaned mirror pod", func(f *podFacts) bool {
		return mirror.IsMirror(f.remote) && !f.isStatic() && (f.areSourcesRead || f.lastLocal != nil)
	}, deletePod},
	{"mirror pod of an unread source", func(f *podFacts) bool { return mirror.IsMirror(f.remote) && !f.isStatic() }, noRequest},
	// As with the kubelet, the mirror pod represents the earlier version until that version has
	// stopped. Clients such as kubeadm take a new mirror pod as the sign that the new version runs.
	{"mirror pod of a version that is being stopped", func(f *podFacts) bool {
		return mirror.IsMirror(f.remote) && f.remote.DeletionTimestamp == nil && f.local.OutdatedStoppingContainers > 0 && !mirror.IsMirrorOf(f.remote, f.local.Pod, nil)
	}, noRequest},
	{"outdated mirror pod", func(f *podFacts) bool {
		return mirror.IsMirror(f.remote) && !mirror.IsMirrorOf(f.remote, f.local.Pod, f.node)
	}, deletePod},
	// A mirror pod with the final status of an earlier run is deleted and created again, because
	// the final status must not be reverted.
	{"mirror pod of an earlier run", func(f *podFacts) bool {
		return mirror.IsMirror(f.remote) && isRegression(f.remote, &f.local.Pod.Status)
	}, deletePod},
	{"mirror pod", func(f *podFacts) bool { return mirror.IsMirror(f.remote) }, patchStatus},

	// A removed pod is deleted even if a static pod has the same name.
	{"name taken", func(f *podFacts) bool { return f.isStatic() && !f.isRemoved }, reportNameTaken},
	{"status regression", func(f *podFacts) bool { return f.isInView() && isRegression(f.remote, &f.local.Pod.Status) }, noRequest},
	{"on this node", func(f *podFacts) bool { return f.isInView() }, patchStatus},
	// The final phase is written before the deletion, because clients may be waiting for the final
	// phase.
	{"removed", func(f *podFacts) bool { return f.isRemoved && !manifest.IsTerminal(f.remote.Status.Phase) }, patchFinalStatus},
	{"removed, with finalizers", func(f *podFacts) bool { return f.isRemoved && isHeldByFinalizers(f.remote) }, noRequest},
	{"removed and reported", func(f *podFacts) bool { return f.isRemoved }, deletePod},
	{"not on this node yet", func(*podFacts) bool { return true }, noRequest},
}

// decideRequest returns the next request for a pod, and the name of the first rule that applies.
func decideRequest(f *podFacts) (s podRequest, ruleName string, err error) {
	for _, r := range writeRules {
		if r.when(f) {
			s, err := r.do(f)
			return s, r.name, err
		}
	}
	return podRequest{}, "", nil
}

// isDecided reports whether the worker of a pod has received a manifest and has made a decision
// about the manifest.
func isDecided(p *server.PodView) bool { return p.Rule != "" && p.Pod.UID != "" }

// isStatic reports whether the local pod exists and is static.
func (f *podFacts) isStatic() bool { return f.local != nil && mirror.IsStatic(f.local.Pod) }

// isInView reports whether the View contains the pod of the API server.
func (f *podFacts) isInView() bool { return f.local != nil && f.local.Pod.UID == f.remote.UID }

// isHeldByFinalizers reports whether a pod exists only because of its finalizers. Such a pod is
// being deleted with grace period 0.
func isHeldByFinalizers(p *v1.Pod) bool {
	return p.DeletionTimestamp != nil && p.DeletionGracePeriodSeconds != nil && *p.DeletionGracePeriodSeconds == 0
}

// lastVersion returns the last version of the pod in the View. If the View never contained the pod,
// lastVersion returns the pod in the API server.
func (f *podFacts) lastVersion() *v1.Pod {
	return cmp.Or(f.lastLocal, f.remote)
}

// statusPatchRequest returns a request that changes the status in the API server to the status of the
// local pod. It returns the zero podRequest if the status is up to date.
func (f *podFacts) statusPatchRequest(local *v1.Pod) (podRequest, error) {
	body, err := podStatusPatch(f.remote, mergePodStatus(f.remote, local, f.isAddressConfigured))
	if err != nil || body == nil {
		return podRequest{}, err
	}
	return podRequest{verb: verbPatch, pod: f.remote, body: body}, nil
}
