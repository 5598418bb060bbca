package cri

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// draft is a pass in the making: lists in, questions out, answers in, pods out.
//
// What did not change is copied from the pods before, so that neither the list's
// messages are decoded nor any status asked for again: a container that has
// exited stays as it is, one that runs is asked about once. Labels, annotations
// and creation never change in CRI, so the state tells.
type draft struct {
	instance string
	nobodys  bool // see ObserverOptions
	prior    map[types.NamespacedName]*runtime.Pod
	wasWrong map[string]struct{} // ids that earlier passes could not ask about
	mayAsk   bool                // it is time to ask about those again
	unsure   map[string]struct{} // ids that this pass leaves unsure

	knownSandboxes  map[string]knownSandbox
	knownContainers map[string]*runtime.Container // of sandboxes looked into
	listed          map[string]*sandboxDraft      // the sandboxes, by id
	orphans         map[orphanKey]*sandboxDraft
	all             []*sandboxDraft

	sandboxes  []*sandboxDraft   // to be asked about
	containers []*containerDraft // to be asked about
}

// orphanKey groups containers whose sandbox is gone.
type orphanKey struct {
	pod types.NamespacedName
	uid types.UID
}

// knownSandbox is a sandbox as it was before.
type knownSandbox struct {
	key     types.NamespacedName
	sandbox *runtime.Sandbox
}

type sandboxDraft struct {
	key        types.NamespacedName
	sandbox    runtime.Sandbox
	containers []*containerDraft
	answer     answer
}

type containerDraft struct {
	container runtime.Container
	before    *runtime.Container // nil: not known before
	answer    answer
}

func newDraft(instance string, nobodys bool, prior map[types.NamespacedName]*runtime.Pod, wasWrong map[string]struct{}) *draft {
	d := &draft{
		instance:        instance,
		nobodys:         nobodys,
		prior:           prior,
		wasWrong:        wasWrong,
		unsure:          map[string]struct{}{},
		knownSandboxes:  make(map[string]knownSandbox, len(prior)),
		knownContainers: make(map[string]*runtime.Container, len(prior)),
		listed:          make(map[string]*sandboxDraft, len(prior)),
		orphans:         map[orphanKey]*sandboxDraft{},
	}
	for _, pod := range prior {
		for i := range pod.Incarnations {
			in := &pod.Incarnations[i]
			if in.ID != "" {
				d.knownSandboxes[in.ID] = knownSandbox{key: pod.Key, sandbox: &in.Sandbox}
			}
			for j := range in.Containers {
				d.knownContainers[in.Containers[j].ID] = &in.Containers[j]
			}
		}
	}
	return d
}

// add takes the lists in.
func (d *draft) add(l listing) error {
	for i := range l.sandboxes {
		if err := d.addSandbox(&l.sandboxes[i]); err != nil {
			return fmt.Errorf("reading a sandbox in the runtime's list: %w", err)
		}
	}
	for i := range l.containers {
		if err := d.addContainer(&l.containers[i]); err != nil {
			return fmt.Errorf("reading a container in the runtime's list: %w", err)
		}
	}
	return nil
}

func (d *draft) addSandbox(item *wireItem) error {
	_, again := d.wasWrong[string(item.id)]
	known, isKnown := d.knownSandboxes[string(item.id)]
	sd := &sandboxDraft{key: known.key}
	if isKnown && !again && known.sandbox.Ready == ready(api.PodSandboxState(item.state)) {
		sd.sandbox = *known.sandbox
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

// newSandbox takes a sandbox from the list and notes that its addresses are
// wanted. Those of one that is not ready are kept as they were. known may be nil.
func (d *draft) newSandbox(sd *sandboxDraft, s *api.PodSandbox, known *runtime.Sandbox) {
	sd.key = types.NamespacedName{Namespace: s.GetMetadata().GetNamespace(), Name: s.GetMetadata().GetName()}
	sd.sandbox = listedSandbox(s)
	sd.sandbox.Foreign = !d.ours(s.GetLabels())
	if known != nil {
		sd.sandbox.IPs = known.IPs
	}
	switch {
	case !sd.sandbox.Ready || d.passesBy(&sd.sandbox):
	case d.holds(s.GetId()):
		sd.answer = notYet
	default:
		d.sandboxes = append(d.sandboxes, sd)
	}
}

func (d *draft) ours(labels map[string]string) bool {
	return d.instance != "" && labels[runtime.LabelInstance] == d.instance
}

// passesBy says that a sandbox is not looked into: another podd's is its alone.
func (d *draft) passesBy(s *runtime.Sandbox) bool {
	return s.Foreign && !(d.nobodys && s.Labels[runtime.LabelInstance] == "")
}

// holds says that an id is not to be asked about in this pass.
func (d *draft) holds(id string) bool {
	_, unsure := d.wasWrong[id]
	return unsure && !d.mayAsk
}

// addContainer takes a container in whose sandbox is looked into, or is gone and was
// ours.
func (d *draft) addContainer(item *wireItem) error {
	home := d.listed[string(item.sandbox)]
	if home != nil && d.passesBy(&home.sandbox) {
		return nil
	}
	cd := &containerDraft{before: d.knownContainers[string(item.id)]}
	state := containerState(api.ContainerState(item.state))
	_, again := d.wasWrong[string(item.id)]
	if home != nil && cd.before != nil && cd.before.State == state && !again {
		cd.container = *cd.before
		home.containers = append(home.containers, cd)
		return nil
	}
	var listed api.Container
	if err := proto.Unmarshal(item.raw, &listed); err != nil {
		return err
	}
	if home == nil {
		if home = d.orphanage(&listed, cd.before != nil && !d.wasForeign(cd.before.SandboxID)); home == nil {
			return nil
		}
	}
	home.containers = append(home.containers, cd)
	cd.container = listedContainer(&listed)
	switch {
	// A created container has nothing that the list does not tell.
	case state == runtime.Created:
	case cd.before != nil && cd.before.State == state && !again:
		cd.container = *cd.before
	case d.holds(cd.container.ID):
		cd.answer = notYet
	default:
		d.containers = append(d.containers, cd)
	}
	return nil
}

func (d *draft) wasForeign(sandbox string) bool {
	known := d.knownSandboxes[sandbox].sandbox
	return known != nil && known.Foreign
}

// orphanage is where a container without a sandbox belongs, nil when it is not
// known to be ours.
func (d *draft) orphanage(c *api.Container, wasOurs bool) *sandboxDraft {
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
