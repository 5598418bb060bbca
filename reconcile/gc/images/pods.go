package images

import (
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/state"
)

// Pods records which images the pods of this podd need: all desired pods, including pods that wait
// or were not admitted, and all pods that still exist, but not those that have finished at their
// source. It is safe for concurrent use.
type Pods struct {
	sources   []string
	completed chan struct{} // closed when the pods of all sources are known

	mu         sync.Mutex // guards the following fields
	isComplete bool
	set        *manifest.Set
	reports    map[types.NamespacedName]*state.Report
}

// NewPods returns a Pods without pods. sources contains the names of all sources.
func NewPods(sources []string) *Pods {
	return &Pods{sources: sources, completed: make(chan struct{}), reports: map[types.NamespacedName]*state.Report{}}
}

// Apply applies a change that the router has published.
func (p *Pods) Apply(c reconcile.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range c.Removed {
		delete(p.reports, r.Key)
	}
	for _, r := range c.Reports {
		p.reports[r.Key] = r
	}
	if c.Set == nil {
		return
	}
	p.set = c.Set
	isIncomplete := func(source string) bool { return !c.Set.CompleteSources[source] }
	if !p.isComplete && !c.Starting && !slices.ContainsFunc(p.sources, isIncomplete) {
		p.isComplete = true
		close(p.completed)
	}
}

// users returns the pods that need an image, by the name of the image in the pod spec.
func (p *Pods) users() map[string][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := podUsers{}
	if p.set != nil {
		for _, pods := range []map[types.NamespacedName]*manifest.Pod{p.set.Pods, p.set.TerminatingPods} {
			for _, pod := range pods {
				u.add(pod)
			}
		}
	}
	for _, r := range p.reports {
		u.add(r.Version)
		u.add(r.Successor)
		if r.Pod != nil && !r.Version.HasFinishedAtSource() {
			u.addSpec(r.Key.String(), &r.Pod.Spec) // contains the ephemeral containers
		}
	}
	names := map[string][]string{}
	for image, pods := range u {
		names[image] = slices.Collect(maps.Keys(pods))
	}
	return names
}

// podUsers contains the names of pods by the names of images.
type podUsers map[string]map[string]bool

// add adds the images of a pod. A nil pod has no images. A pod that has finished at its source needs none,
// because it never runs again; its remaining containers use their images, as any container does.
func (u podUsers) add(p *manifest.Pod) {
	if p != nil && !p.HasFinishedAtSource() {
		u.addSpec(p.Key.String(), &p.Object.Spec)
	}
}

// addSpec adds the images of the containers and of the image volumes of a pod.
func (u podUsers) addSpec(pod string, spec *v1.PodSpec) {
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			u.addName(pod, list[i].Image)
		}
	}
	for i := range spec.EphemeralContainers {
		u.addName(pod, spec.EphemeralContainers[i].Image)
	}
	for i := range spec.Volumes {
		if image := spec.Volumes[i].Image; image != nil {
			u.addName(pod, image.Reference)
		}
	}
}

// addName adds one image of a pod. An image volume without a reference has no image yet.
func (u podUsers) addName(pod, image string) {
	if image == "" {
		return
	}
	if u[image] == nil {
		u[image] = map[string]bool{}
	}
	u[image][pod] = true
}
