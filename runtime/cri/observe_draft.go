package cri

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// A draft is the state of one pass, which first lists the pods, then queries details, and then
// builds the pods of the snapshot.
//
// Sandboxes and containers with an unchanged state are copied from the pods that the previous pass
// returned. Their list messages are not decoded and their status is not queried again. An exited
// container does not change, and a running container is queried once. Labels, annotations and
// creation time never change in CRI, so comparing the state is sufficient.
type draft struct {
	opts             *ObserverOptions
	previousPods     map[types.NamespacedName]*runtime.Pod // pods that the previous pass returned
	failedQueries    map[string]failedQuery                // from earlier passes
	asOf             time.Time                             // time at which this pass began
	newFailedQueries map[string]types.NamespacedName       // pods with a status query that failed or must be repeated, by ID of the sandbox or container

	priorSandboxes  map[string]priorSandbox
	priorContainers map[string]*runtime.Container // by ID
	sandboxesByID   map[string]*sandboxDraft      // by ID
	orphans         map[orphanKey]*sandboxDraft   // for containers without their sandbox
	allSandboxes    []*sandboxDraft

	sandboxesToQuery  []*sandboxDraft
	foreignToQuery    []*sandboxDraft
	containersToQuery []*containerDraft
}

// An orphanKey identifies a group of containers without their sandbox.
type orphanKey struct {
	pod types.NamespacedName
	uid types.UID
}

// A priorSandbox is a sandbox that an earlier pass returned.
type priorSandbox struct {
	key         types.NamespacedName
	incarnation *runtime.Incarnation
	sandbox     *runtime.Sandbox
}

type sandboxDraft struct {
	key        types.NamespacedName
	previous   *runtime.Incarnation // previous state of an unchanged sandbox, else nil
	sandbox    runtime.Sandbox
	containers []*containerDraft
	result     queryResult
}

type containerDraft struct {
	key       types.NamespacedName
	container runtime.Container
	previous  *runtime.Container // previous state, or nil if the container is new
	isCopy    bool               // whether container is a copy of previous
	result    queryResult
}

// newDraft returns an empty draft of a pass. previousPods contains the previous state of the pods
// to observe.
func newDraft(opts *ObserverOptions, previousPods map[types.NamespacedName]*runtime.Pod, failedQueries map[string]failedQuery, asOf time.Time) *draft {
	d := &draft{
		opts:             opts,
		previousPods:     previousPods,
		failedQueries:    failedQueries,
		asOf:             asOf,
		newFailedQueries: map[string]types.NamespacedName{},
		priorSandboxes:   make(map[string]priorSandbox, len(previousPods)),
		priorContainers:  make(map[string]*runtime.Container, len(previousPods)),
		sandboxesByID:    make(map[string]*sandboxDraft, len(previousPods)),
		orphans:          map[orphanKey]*sandboxDraft{},
	}
	for _, pod := range previousPods {
		for i := range pod.Incarnations {
			in := &pod.Incarnations[i]
			if in.ID != "" {
				d.priorSandboxes[in.ID] = priorSandbox{key: pod.Key, incarnation: in, sandbox: &in.Sandbox}
			}
			for j := range in.Containers {
				d.priorContainers[in.Containers[j].ID] = &in.Containers[j]
			}
		}
	}
	return d
}

// add adds the sandboxes and containers of the lists.
func (d *draft) add(l listing) error {
	for i := range l.sandboxes {
		if err := d.addSandbox(&l.sandboxes[i]); err != nil {
			return fmt.Errorf("decoding a sandbox in the runtime's response to ListPodSandbox: %w", err)
		}
	}
	for i := range l.containers {
		if err := d.addContainer(&l.containers[i]); err != nil {
			return fmt.Errorf("decoding a container in the runtime's response to ListContainers: %w", err)
		}
	}
	return nil
}

// addSandbox adds a sandbox of the list. It copies the previous state if the sandbox's
// state did not change.
func (d *draft) addSandbox(item *wireItem) error {
	_, isRetry := d.failedQueries[string(item.id)]
	previousState, isKnown := d.priorSandboxes[string(item.id)]
	sd := &sandboxDraft{key: previousState.key}
	if isKnown && !isRetry && previousState.sandbox.Ready == isReady(api.PodSandboxState(item.state)) {
		sd.sandbox, sd.previous = *previousState.sandbox, previousState.incarnation
	} else {
		var listed api.PodSandbox
		if err := proto.Unmarshal(item.raw, &listed); err != nil {
			return err
		}
		d.setSandbox(sd, &listed, previousState.sandbox)
	}
	d.allSandboxes = append(d.allSandboxes, sd)
	d.sandboxesByID[sd.sandbox.ID] = sd
	return nil
}

// setSandbox fills sd from the list. It copies the addresses and host IDs from previousSandbox,
// which may be nil. It also schedules the query of the status if the query is needed, unless an
// earlier query failed and must not be repeated yet.
func (d *draft) setSandbox(sd *sandboxDraft, s *api.PodSandbox, previousSandbox *runtime.Sandbox) {
	sd.key = types.NamespacedName{Namespace: s.GetMetadata().GetNamespace(), Name: s.GetMetadata().GetName()}
	sd.sandbox = sandboxFromList(s)
	sd.sandbox.Foreign = !d.isOurs(s.GetLabels())
	if previousSandbox != nil {
		sd.sandbox.IPs, sd.sandbox.MappedIDs = previousSandbox.IPs, previousSandbox.MappedIDs
	}
	switch {
	case !d.needsQuery(&sd.sandbox, previousSandbox):
	case d.isRetryPending(s.GetId()):
		sd.result = retryPending
	case sd.sandbox.Foreign:
		d.foreignToQuery = append(d.foreignToQuery, sd)
	default:
		d.sandboxesToQuery = append(d.sandboxesToQuery, sd)
	}
}

// needsQuery reports whether the status of a sandbox must be queried. The addresses of a ready sandbox
// are needed, and so are the host IDs of every foreign sandbox. The host IDs never change.
// previousSandbox may be nil.
func (d *draft) needsQuery(s, previousSandbox *runtime.Sandbox) bool {
	_, isRetry := d.failedQueries[s.ID]
	return s.Ready && !d.isIgnored(s) || s.Foreign && (previousSandbox == nil || isRetry)
}

// isOurs reports whether an object with these labels belongs to this podd, so that its sandbox is
// not Foreign.
func (d *draft) isOurs(labels map[string]string) bool {
	return d.opts.isOurs(labels[runtime.LabelInstance])
}

// isIgnored reports whether the addresses and containers of a sandbox are not needed, because
// another podd owns the sandbox.
func (d *draft) isIgnored(s *runtime.Sandbox) bool {
	return s.Foreign && !(d.opts.IncludeUnlabelled && s.Labels[runtime.LabelInstance] == "")
}

// isRetryPending reports whether the status query of an object failed and must not be
// repeated yet.
func (d *draft) isRetryPending(id string) bool { return d.asOf.Before(d.failedQueries[id].retryAt) }

// addContainer adds a container to its sandbox. If the sandbox no longer exists, addContainer adds
// the container only if the container or its former sandbox belongs to this podd.
func (d *draft) addContainer(item *wireItem) error {
	group := d.sandboxesByID[string(item.sandbox)]
	if group != nil && d.isIgnored(&group.sandbox) {
		return nil
	}
	cd := &containerDraft{previous: d.priorContainers[string(item.id)]}
	state := containerState(api.ContainerState(item.state))
	_, isRetry := d.failedQueries[string(item.id)]
	if group != nil && cd.previous != nil && cd.previous.State == state && !isRetry {
		cd.container, cd.isCopy = *cd.previous, true
		group.containers = append(group.containers, cd)
		return nil
	}
	var listed api.Container
	if err := proto.Unmarshal(item.raw, &listed); err != nil {
		return err
	}
	if group == nil {
		if group = d.draftForMissingSandbox(&listed, cd.previous != nil && !d.wasForeign(cd.previous.SandboxID)); group == nil {
			return nil
		}
	}
	group.containers = append(group.containers, cd)
	cd.key, cd.container = group.key, containerFromList(&listed)
	switch {
	// The status of a created container is not queried, because the list contains all its fields.
	case state == runtime.Created:
	case cd.previous != nil && cd.previous.State == state && !isRetry:
		cd.container = *cd.previous
	case d.isRetryPending(cd.container.ID):
		cd.result = retryPending
	default:
		d.containersToQuery = append(d.containersToQuery, cd)
	}
	return nil
}

// wasForeign reports whether a sandbox was Foreign after the previous pass.
func (d *draft) wasForeign(sandboxID string) bool {
	previousSandbox := d.priorSandboxes[sandboxID].sandbox
	return previousSandbox != nil && previousSandbox.Foreign
}

// draftForMissingSandbox returns the draft for the sandbox of a container whose sandbox does not
// exist. It returns nil unless wasOurs is true or the container's labels show that the container
// belongs to this podd.
func (d *draft) draftForMissingSandbox(c *api.Container, wasOurs bool) *sandboxDraft {
	labels := c.GetLabels()
	if !d.isOurs(labels) && !wasOurs {
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
		d.allSandboxes = append(d.allSandboxes, sd)
	}
	return sd
}
