package reconcile

import (
	"maps"
	"time"

	"podd/manifest/refs"
	"podd/reconcile/plan"
)

// applySupplies sets the objects of the version in force and of its successor from the
// newest order. If the order is about another version, the previous objects stay.
func (w *worker) applySupplies() {
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
	if w.supply != before && before != nil {
		w.formerSupply = before
	}
	w.in.Objects, w.in.NextObjects = objectsOf(w.supply), objectsOf(w.nextSupply)
	if !w.supply.Same(before) || !w.nextSupply.Same(next) {
		w.retryAll()
	}
}

// objectsOf returns the facts about objects that planning needs. s may be nil.
func objectsOf(s *refs.Resolved) plan.Objects {
	if s == nil {
		return plan.Objects{}
	}
	return plan.Objects{Wait: s.Wait, Files: s.Files}
}

// retryAll ends every wait after a failure that the former objects may have caused.
func (w *worker) retryAll() {
	h := &w.in.History
	w.retryVolumes()
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

// retryVolumes ends the waits of volumes that failed.
func (w *worker) retryVolumes() {
	h := &w.in.History
	h.Volumes.Until, h.Update.Until, h.VolumeCheck.Failure.Until = time.Time{}, time.Time{}, time.Time{}
}

// retryCleanup ends the waits of clean-ups that failed.
func (w *worker) retryCleanup() {
	h := &w.in.History
	h.Cleanup = maps.Clone(h.Cleanup)
	for subject, fail := range h.Cleanup {
		fail.Until = time.Time{}
		h.Cleanup[subject] = fail
	}
}
