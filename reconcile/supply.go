package reconcile

import (
	"fmt"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/reconcile/render"
)

// look gives the versions in force and to come what the newest order says of
// their objects. While that speaks of another version, what was known stays.
func (w *worker) look() {
	before := w.supply
	switch p := w.in.Desired; {
	case p == nil:
		w.supply = nil
	case w.order.desired != nil && sameVersion(p, w.order.desired):
		w.supply = w.order.supply
	case w.order.earlier != nil && sameVersion(p, w.order.earlier):
		w.supply = w.order.earlierSupply
	}
	next := w.nextSupply
	w.nextSupply = nil
	if w.in.Successor != nil {
		w.nextSupply = w.order.supply
	}
	w.in.Objects, w.in.NextObjects = objectsOf(w.supply), objectsOf(w.nextSupply)
	if !w.supply.Same(before) || !w.nextSupply.Same(next) {
		w.tryAnew()
	}
}

func objectsOf(s *manifest.Supply) plan.Objects {
	if s == nil {
		return plan.Objects{}
	}
	return plan.Objects{Wait: s.Wait, Files: s.Files}
}

// tryAnew has nothing wait that may have failed for what the objects were.
func (w *worker) tryAnew() {
	h := &w.in.History
	w.tryVolumes()
	h.Containers, h.Next = maps.Clone(h.Containers), maps.Clone(h.Next)
	for name, c := range h.Containers {
		c.Image.Failure.Until, c.Start.Until = time.Time{}, time.Time{}
		h.Containers[name] = c
	}
	for name, img := range h.Next {
		img.Failure.Until = time.Time{}
		h.Next[name] = img
	}
}

// tryVolumes has no volume wait that failed.
func (w *worker) tryVolumes() {
	h := &w.in.History
	h.Volumes.Until, h.Update.Until, h.Checked.Failure.Until = time.Time{}, time.Time{}, time.Time{}
}

// tryCleanup has nothing wait that failed to go.
func (w *worker) tryCleanup() {
	h := &w.in.History
	h.Cleanup = maps.Clone(h.Cleanup)
	for subject, fail := range h.Cleanup {
		fail.Until = time.Time{}
		h.Cleanup[subject] = fail
	}
}

// supplyFor is what the objects hold for one of the scene's versions.
func (s scene) supplyFor(p *manifest.Pod) *manifest.Supply {
	if p != nil && p == s.successor {
		return s.nextSupply
	}
	return s.supply
}

// volumes tells what is in the volumes of a version.
func (s scene) volumes(p *manifest.Pod) render.Volumes {
	return render.Content{Pod: p, Supply: s.supplyFor(p), Node: *s.node}
}

// written is what tells the content of the volumes that an effect just wrote.
func (s scene) written() string { return objectsOf(s.supply).Files }

// pullSecrets are those of a version that are there, and for messages what is to
// be said of those that are not.
func (s scene) pullSecrets(p *manifest.Pod) (secrets []*v1.Secret, without string) {
	supply := s.supplyFor(p)
	for _, ref := range p.Spec.Spec.ImagePullSecrets {
		switch secret := supply.Secret(ref.Name); {
		case secret != nil:
			secrets = append(secrets, secret)
		case without == "" && ref.Name != "":
			without = fmt.Sprintf("; the Secret %q of its imagePullSecrets is not in %s", ref.Name, p.Origin.Source)
		}
	}
	return secrets, without
}
