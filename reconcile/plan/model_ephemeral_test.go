package plan

import (
	"encoding/json"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/runtime"
)

// added contains the ephemeral containers of a world.
type added struct {
	pending map[types.UID][]v1.EphemeralContainer // in the journal, by pod UID
	ids     map[string]string                     // ID of the container that was created, by pod UID and name
	seen    map[string]bool                       // whether podd has observed it, by ID
	broken  error                                 // set if a container was created twice
}

func newAdded() added {
	return added{pending: map[types.UID][]v1.EphemeralContainer{}, ids: map[string]string{}, seen: map[string]bool{}}
}

// debugger returns an ephemeral container.
func debugger(name, target string) v1.EphemeralContainer {
	return v1.EphemeralContainer{
		EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: name, Image: "e:1", ImagePullPolicy: v1.PullIfNotPresent}, TargetContainerName: target,
	}
}

func isNamed(name string) func(v1.EphemeralContainer) bool {
	return func(c v1.EphemeralContainer) bool { return c.Name == name }
}

// add adds an ephemeral container to the desired version, as a worker does on request.
func (w *world) add(name, target string) {
	p := w.in.Desired
	if p == nil || slices.ContainsFunc(p.Object.Spec.EphemeralContainers, isNamed(name)) {
		return
	}
	delete(w.added.ids, string(p.UID)+name)
	w.container(name, func(h *ContainerHistory) { h.EphemeralCreated = false })
	c := debugger(name, target)
	w.in.Desired = p.WithEphemeral(append(slices.Clone(p.Object.Spec.EphemeralContainers), c))
	for subject, of := range w.version { // the actions in progress are for the same version, now with the container
		if of == p {
			w.version[subject] = w.in.Desired
		}
	}
	w.added.pending[p.UID] = append(slices.Clone(w.added.pending[p.UID]), c)
}

// noteEphemeral records an observed ephemeral container, by the annotation of the container.
func (w *world) noteEphemeral(c *runtime.Container) {
	var e v1.EphemeralContainer
	if json.Unmarshal([]byte(c.Annotations[runtime.AnnotationEphemeralContainer]), &e) != nil {
		return
	}
	p := w.in.Desired
	w.added.seen[c.ID] = true
	if !slices.ContainsFunc(p.Object.Spec.EphemeralContainers, isNamed(c.Name)) {
		w.in.Desired = p.WithEphemeral(append(slices.Clone(p.Object.Spec.EphemeralContainers), e))
	}
	w.added.pending[p.UID] = slices.DeleteFunc(slices.Clone(w.added.pending[p.UID]), isNamed(c.Name))
	if !w.in.History.Containers[c.Name].EphemeralCreated {
		w.container(c.Name, func(h *ContainerHistory) { h.EphemeralCreated = true })
	}
}

// createEphemeral returns the annotation of a new ephemeral container; "" for another kind. It
// sets broken if the container was created before.
func (w *world) createEphemeral(p *manifest.Pod, name, id string) string {
	i := slices.IndexFunc(p.Object.Spec.EphemeralContainers, isNamed(name))
	if i < 0 {
		return ""
	}
	key := string(p.UID) + name
	if before := w.added.ids[key]; before != "" && (w.added.seen[before] || w.listed(before)) {
		w.added.broken = fmt.Errorf("ephemeral container %s: got two creations, as %s and as %s, want one", name, before, id)
	}
	w.added.ids[key] = id
	text, err := json.Marshal(p.Object.Spec.EphemeralContainers[i])
	if err != nil {
		panic(err)
	}
	return string(text)
}

// listed reports whether the runtime has a container.
func (w *world) listed(id string) bool {
	return slices.ContainsFunc(w.machine, func(inc runtime.Incarnation) bool {
		return slices.ContainsFunc(inc.Containers, func(c runtime.Container) bool { return c.ID == id })
	})
}

// checkEphemeralStart returns an error if an ephemeral container must not be started. ephemeral
// reports whether the container is an ephemeral container.
func checkEphemeralStart(in Input, a StartContainer) (ephemeral bool, err error) {
	f := newFacts(&in)
	for i := range f.ephemeralContainers {
		m := &f.ephemeralContainers[i]
		switch {
		case m.spec.Name != a.Container:
		case m.isEphemeralCreated && a.CreatedID == "":
			return true, fmt.Errorf("the container was created before")
		case a.CreatedID == "" && m.target != "" && (a.TargetID == "" || a.TargetID != f.runningID(m.target)):
			return true, fmt.Errorf("the target %s does not run as %q", m.target, a.TargetID)
		case in.MayHaveUnobserved && a.CreatedID == "":
			return true, fmt.Errorf("the result of the last try was not observed")
		default:
			return true, nil
		}
	}
	return false, nil
}

// checkEphemeral returns an error unless each ephemeral container that could be created was
// created once.
func (w *world) checkEphemeral() error {
	if w.added.broken != nil || w.in.Desired == nil {
		return w.added.broken
	}
	f := newFacts(&w.in)
	for i := range f.ephemeralContainers {
		if m := &f.ephemeralContainers[i]; !m.isEphemeralCreated && !f.lacksRunningTarget(m) {
			return fmt.Errorf("ephemeral container %s: got no creation, want one", m.spec.Name)
		}
	}
	return nil
}
