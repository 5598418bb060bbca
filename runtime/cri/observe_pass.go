package cri

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"podd/runtime"
)

const (
	// fewPods is how many dirty pods are asked for one by one; two lists of
	// everything are cheaper than two for each of more.
	fewPods = 8
	// detailTime bounds all status calls of one pass: a shim that hangs must not
	// hide the pods around it.
	detailTime = 2 * time.Second
	// detailCalls is how many status calls are made side by side.
	detailCalls = 4
)

// pass looks once at what is wanted and says whether anything changed.
func (o *Observer) pass(ctx context.Context, wanted dirty) (runtime.Snapshot, bool, error) {
	s := runtime.Snapshot{Whole: wanted.whole || len(wanted.keys) > fewPods || o.unlabelled(wanted.keys)}
	if s.Whole {
		o.client.answers.relist()
	}
	s.AsOf = time.Now()
	l, err := o.list(ctx, s.Whole, wanted.keys)
	if err != nil {
		return s, false, err
	}
	d := newDraft(o.opts.Instance, o.opts.Nobodys, o.prior(s.Whole, wanted.keys), o.unsure)
	d.mayAsk = !s.AsOf.Before(o.askAt)
	if err := d.add(l); err != nil {
		return s, false, err
	}
	if err := o.fill(ctx, d); err != nil {
		return s, false, err
	}
	found := d.finish()
	o.remember(d, s.Whole)
	if !s.Whole {
		return o.part(s, wanted.keys, found)
	}
	changed := !sameEntries(o.pods, found)
	if changed {
		o.pods = found
	}
	s.Pods = o.pods
	return s, changed, nil
}

// remember keeps what could not be asked about, to ask again later each time.
func (o *Observer) remember(d *draft, whole bool) {
	if whole {
		clear(o.unsure)
	}
	for _, id := range d.asked() {
		delete(o.unsure, id)
	}
	maps.Copy(o.unsure, d.unsure)
	switch {
	case len(o.unsure) == 0:
		o.puzzled, o.askAt = 0, time.Time{}
	case d.failedNow():
		o.puzzled++
		o.askAt = time.Now().Add(backOff(o.puzzled, time.Second, 30*time.Second))
	}
}

// part is the snapshot of some pods: a nil entry is one that is gone.
func (o *Observer) part(s runtime.Snapshot, keys map[types.NamespacedName]struct{}, found map[types.NamespacedName]*runtime.Pod) (runtime.Snapshot, bool, error) {
	s.Pods = make(map[types.NamespacedName]*runtime.Pod, len(keys))
	changed := false
	for key := range keys {
		s.Pods[key] = found[key]
		changed = changed || o.pods[key] != found[key]
	}
	if !changed {
		return s, false, nil
	}
	// Whoever got the last map may still read it.
	next := maps.Clone(o.pods)
	for key, pod := range s.Pods {
		if pod == nil {
			delete(next, key)
		} else {
			next[key] = pod
		}
	}
	o.pods = next
	return s, true, nil
}

func sameEntries(a, b map[types.NamespacedName]*runtime.Pod) bool {
	return a != nil && maps.Equal(a, b)
}

// prior is what is known of the pods looked at.
func (o *Observer) prior(whole bool, keys map[types.NamespacedName]struct{}) map[types.NamespacedName]*runtime.Pod {
	if whole {
		return o.pods
	}
	some := make(map[types.NamespacedName]*runtime.Pod, len(keys))
	for key := range keys {
		if pod := o.pods[key]; pod != nil {
			some[key] = pod
		}
	}
	return some
}

// unlabelled says that a pod asked for has a sandbox without the labels that
// the runtime would find it by: somebody else's.
func (o *Observer) unlabelled(keys map[types.NamespacedName]struct{}) bool {
	for key := range keys {
		pod := o.pods[key]
		if pod == nil {
			continue
		}
		for i := range pod.Incarnations {
			in := &pod.Incarnations[i]
			if in.Foreign && (in.Labels[runtime.LabelPodName] != key.Name || in.Labels[runtime.LabelPodNamespace] != key.Namespace) {
				return true
			}
		}
	}
	return false
}

// fill asks for what the lists do not tell. Only a runtime that is gone is an
// error; a call that fails leaves its object unsure.
func (o *Observer) fill(ctx context.Context, d *draft) error {
	if len(d.sandboxes) == 0 && len(d.containers) == 0 {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, detailTime)
	defer cancel()
	var calls errgroup.Group
	calls.SetLimit(detailCalls)
	for _, s := range d.sandboxes {
		calls.Go(func() error { return lost(bounded, s.ask(bounded, o.client)) })
	}
	for _, c := range d.containers {
		calls.Go(func() error { return lost(bounded, c.ask(bounded, o.client)) })
	}
	if err := calls.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// lost keeps an error that says that the runtime went away, and not one of time
// running out.
func lost(bounded context.Context, err error) error {
	if errors.Is(err, runtime.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) && bounded.Err() == nil {
		return err
	}
	return nil
}

func samePod(a, b *runtime.Pod) bool { return a != nil && reflect.DeepEqual(a, b) }
