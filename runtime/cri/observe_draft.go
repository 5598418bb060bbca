package cri

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// draft is the state of one pass, from the lists over the queries to the pods.
//
// What did not change is copied from the previous pods, so that the list's messages are not
// decoded and no status is queried again: an exited container does not change, and a
// running one is queried once. Labels, annotations and creation time never change in CRI,
// so comparing the state is sufficient.
type draft struct {
	opts      *ObserverOptions
	prior     map[types.NamespacedName]*runtime.Pod
	doubts    map[string]doubt                // of earlier passes
	asOf      time.Time                       // when this pass began
	newDoubts map[string]types.NamespacedName // IDs of the queries that failed in this pass

	knownSandboxes  map[string]knownSandbox
	knownContainers map[string]*runtime.Container // of sandboxes that need their details
	listed          map[string]*sandboxDraft      // the sandboxes, by ID
	orphans         map[orphanKey]*sandboxDraft
	all             []*sandboxDraft

	sandboxes  []*sandboxDraft   // to be queried
	containers []*containerDraft // to be queried
}

// orphanKey groups containers without a sandbox.
type orphanKey struct {
	pod types.NamespacedName
	uid types.UID
}

// knownSandbox is a sandbox of the previous pods.
type knownSandbox struct {
	key         types.NamespacedName
	incarnation *runtime.Incarnation
	sandbox     *runtime.Sandbox
}

type sandboxDraft struct {
	key        types.NamespacedName
	before     *runtime.Incarnation // the original of sandbox; nil if sandbox is not a copy
	sandbox    runtime.Sandbox
	containers []*containerDraft
	result     queryResult
}

type containerDraft struct {
	key       types.NamespacedName
	container runtime.Container
	before    *runtime.Container // nil: not known before
	isCopy    bool               // container is a copy of before
	result    queryResult
}

func newDraft(opts *ObserverOptions, prior map[types.NamespacedName]*runtime.Pod, doubts map[string]doubt, asOf time.Time) *draft {
	d := &draft{
		opts:            opts,
		prior:           prior,
		doubts:          doubts,
		asOf:            asOf,
		newDoubts:       map[string]types.NamespacedName{},
		knownSandboxes:  make(map[string]knownSandbox, len(prior)),
		knownContainers: make(map[string]*runtime.Container, len(prior)),
		listed:          make(map[string]*sandboxDraft, len(prior)),
		orphans:         map[orphanKey]*sandboxDraft{},
	}
	for _, pod := range prior {
		for i := range pod.Incarnations {
			in := &pod.Incarnations[i]
			if in.ID != "" {
				d.knownSandboxes[in.ID] = knownSandbox{key: pod.Key, incarnation: in, sandbox: &in.Sandbox}
			}
			for j := range in.Containers {
				d.knownContainers[in.Containers[j].ID] = &in.Containers[j]
			}
		}
	}
	return d
}

// add processes the lists.
func (d *draft) add(l listing) error {
	for i := range l.sandboxes {
		if err := d.addSandbox(&l.sandboxes[i]); err != nil {
			return fmt.Errorf("decoding a sandbox in the runtime's list: %w", err)
		}
	}
	for i := range l.containers {
		if err := d.addContainer(&l.containers[i]); err != nil {
			return fmt.Errorf("decoding a container in the runtime's list: %w", err)
		}
	}
	return nil
}

func (d *draft) addSandbox(item *wireItem) error {
	_, again := d.doubts[string(item.id)]
	known, isKnown := d.knownSandboxes[string(item.id)]
	sd := &sandboxDraft{key: known.key}
	if isKnown && !again && known.sandbox.Ready == ready(api.PodSandboxState(item.state)) {
		sd.sandbox, sd.before = *known.sandbox, known.incarnation
	} else {
		var listed api.PodSandbox
		if err := proto.Unmarshal(item.raw, &listed); err != nil {
			return err
		}
		d.newSandbox(sd, &listed, known.sandbox)
	}
	d.all = append(d.all, sd)
	d.listed[sd.sandbox.ID] = sd
	return nil
}

// newSandbox adds a sandbox from the list and queues the query of its addresses. For a
// sandbox that is not ready, the known addresses are kept. known may be nil.
func (d *draft) newSandbox(sd *sandboxDraft, s *api.PodSandbox, known *runtime.Sandbox) {
	sd.key = types.NamespacedName{Namespace: s.GetMetadata().GetNamespace(), Name: s.GetMetadata().GetName()}
	sd.sandbox = listedSandbox(s)
	sd.sandbox.Foreign = !d.ours(s.GetLabels())
	if known != nil {
		sd.sandbox.IPs = known.IPs
	}
	switch {
	case !sd.sandbox.Ready || d.isIgnored(&sd.sandbox):
	case d.isTooEarly(s.GetId()):
		sd.result = notYet
	default:
		d.sandboxes = append(d.sandboxes, sd)
	}
}

func (d *draft) ours(labels map[string]string) bool {
	return d.opts.ours(labels[runtime.LabelInstance])
}

// isIgnored reports whether the details of a sandbox are not needed, because another podd
// owns it.
func (d *draft) isIgnored(s *runtime.Sandbox) bool {
	return s.Foreign && !(d.opts.IncludeUnlabelled && s.Labels[runtime.LabelInstance] == "")
}

// isTooEarly reports whether it is too early to query the status of an object again.
func (d *draft) isTooEarly(id string) bool { return d.asOf.Before(d.doubts[id].retryAt) }

// addContainer adds a container if its sandbox is observed, or no longer exists and was
// ours.
func (d *draft) addContainer(item *wireItem) error {
	home := d.listed[string(item.sandbox)]
	if home != nil && d.isIgnored(&home.sandbox) {
		return nil
	}
	cd := &containerDraft{before: d.knownContainers[string(item.id)]}
	state := containerState(api.ContainerState(item.state))
	_, again := d.doubts[string(item.id)]
	if home != nil && cd.before != nil && cd.before.State == state && !again {
		cd.container, cd.isCopy = *cd.before, true
		home.containers = append(home.containers, cd)
		return nil
	}
	var listed api.Container
	if err := proto.Unmarshal(item.raw, &listed); err != nil {
		return err
	}
	if home == nil {
		if home = d.orphanGroup(&listed, cd.before != nil && !d.wasForeign(cd.before.SandboxID)); home == nil {
			return nil
		}
	}
	home.containers = append(home.containers, cd)
	cd.key, cd.container = home.key, listedContainer(&listed)
	switch {
	// The status of a created container has no more fields than the list.
	case state == runtime.Created:
	case cd.before != nil && cd.before.State == state && !again:
		cd.container = *cd.before
	case d.isTooEarly(cd.container.ID):
		cd.result = notYet
	default:
		d.containers = append(d.containers, cd)
	}
	return nil
}

func (d *draft) wasForeign(sandbox string) bool {
	known := d.knownSandboxes[sandbox].sandbox
	return known != nil && known.Foreign
}

// orphanGroup returns the group of a container without a sandbox; nil if it is not known to
// be ours.
func (d *draft) orphanGroup(c *api.Container, wasOurs bool) *sandboxDraft {
	labels := c.GetLabels()
	if !d.ours(labels) && !wasOurs {
		return nil
	}
	key := orphanKey{
		pod: types.NamespacedName{Namespace: labels[runtime.LabelPodNamespace], Name: labels[runtime.LabelPodName]},
		uid: types.UID(labels[runtime.LabelPodUID]),
	}
	sd := d.orphans[key]
	if sd == nil {
		sd = &sandboxDraft{key: key.pod, sandbox: runtime.Sandbox{UID: key.uid}}
		d.orphans[key] = sd
		d.all = append(d.all, sd)
	}
	return sd
}
