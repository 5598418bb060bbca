package reconcile

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile/plan"
	"podd/runtime"
)

// takeSnapshot passes on what was seen. With the first whole snapshot the
// workers learn in one order that the runtime is known and what is in it.
func (r *Router) takeSnapshot(ctx context.Context, s runtime.Snapshot) {
	if s.AsOf.Before(r.asOf) {
		return // newer ones were taken already
	}
	r.asOf = s.AsOf
	r.keepLast(s)
	for key, p := range s.Pods {
		if p != nil && ours(p) && s.AsOf.After(r.buried[key]) {
			r.entry(ctx, key, nil)
		}
	}
	first := s.Whole && !r.seen
	r.seen = r.seen || s.Whole
	if first && r.read != nil {
		r.bind() // the pods may have other UIDs here
	}
	r.takeLost(ctx)
	var verdicts map[types.NamespacedName]plan.Verdict
	if first {
		verdicts = r.admit()
	}
	for key, e := range r.entries {
		p, listed := s.Pods[key]
		if !listed && !s.Whole {
			continue
		}
		o := e.order
		if first {
			o = r.compose(key, e, verdicts[key])
		}
		o.seen, o.stale, o.pod, o.asOf = true, false, p, s.AsOf
		r.post(e, o)
	}
	r.tellDown()
}

// keepLast keeps what was seen last of every name; what is older than the end of
// a name is not news of it.
func (r *Router) keepLast(s runtime.Snapshot) {
	last := maps.Clone(r.last)
	if s.Whole {
		last = maps.Clone(s.Pods)
	}
	if last == nil {
		last = map[types.NamespacedName]*runtime.Pod{}
	}
	for key, p := range s.Pods {
		last[key] = p
	}
	for key, end := range r.buried {
		if _, listed := s.Pods[key]; !listed && !s.Whole {
			continue
		}
		if s.AsOf.After(end) {
			delete(r.buried, key)
		} else {
			last[key] = r.last[key]
		}
	}
	r.last = last
}

func ours(p *runtime.Pod) bool {
	for _, inc := range p.Incarnations {
		if !inc.Foreign {
			return true
		}
	}
	return false
}
