package main

import (
	"context"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/event"
	"podd/runtime"
)

// How often the node looks at itself, and at the runtime's images where none came.
const (
	nodeEvery   = 10 * time.Second
	imagesEvery = time.Minute
)

// nodeFacts is what the node shows beside its runtime and resources. It is
// immutable.
type nodeFacts struct {
	pressure map[v1.NodeConditionType]bool
	images   []v1.ContainerImage
}

// nodeKeeper sees what is new of the node.
type nodeKeeper struct {
	name    string
	room    func(context.Context) (room, error)
	images  func(context.Context) ([]runtime.Image, error)
	most    int        // images that are shown; -1: all
	kernel  *kernelLog // nil: it cannot be read
	show    func(context.Context, *nodeFacts)
	tell    func([]event.Event)
	log     *slog.Logger
	seen    pressures
	shown   nodeFacts
	known   bool      // that shown was shown
	listed  time.Time // when images were
	invalid bool      // the file system of images has no size, as was told
	trouble string    // as it was logged last
}

// run looks until ctx is done; pulled tells that an image came.
func (k *nodeKeeper) run(ctx context.Context, pulled <-chan struct{}) error {
	tick := time.NewTicker(nodeEvery)
	defer tick.Stop()
	for {
		k.look(ctx, time.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-pulled:
			k.listed = time.Time{}
		}
	}
}

// look shows and tells what is another than before.
func (k *nodeKeeper) look(ctx context.Context, now time.Time) {
	next := k.shown
	if r, err := k.room(ctx); err != nil {
		if k.trouble != err.Error() {
			k.trouble = err.Error()
			k.log.Warn("whether the node is under pressure is not known", "err", err)
		}
	} else {
		next.pressure, k.trouble = k.seen.see(r, now), ""
		k.disk(r, now)
	}
	if now.Sub(k.listed) >= imagesEvery {
		if images, err := k.images(ctx); err == nil {
			next.images, k.listed = nodeImages(images, k.most), now
		}
	}
	k.tell(k.changed(next.pressure, now))
	k.tell(k.kernel.ooms(now))
	if ctx.Err() == nil && (!k.known || !maps.Equal(next.pressure, k.shown.pressure) || !reflect.DeepEqual(next.images, k.shown.images)) {
		k.shown, k.known = next, true
		k.show(ctx, &next)
	}
}

// changed are the events of pressure that came or went, and of how it is at first.
func (k *nodeKeeper) changed(now map[v1.NodeConditionType]bool, at time.Time) []event.Event {
	var all []event.Event
	for _, kind := range pressureKinds {
		is, known := now[kind]
		if was, before := k.shown.pressure[kind]; known && (!before || was != is) {
			all = append(all, event.NodeStatus(k.name, wordsOf(kind, is)[2], at))
		}
	}
	return all
}

// disk tells once that the runtime keeps images where nothing has a size.
func (k *nodeKeeper) disk(r room, at time.Time) {
	invalid := r.images.known && r.images.bytes.whole == 0
	if invalid && !k.invalid {
		k.tell([]event.Event{event.Node(v1.EventTypeWarning, "InvalidDiskCapacity", "invalid capacity 0 on image filesystem", at)})
	}
	k.invalid = invalid
}

// mostNames of an image are shown, a kubelet's bound.
const mostNames = 5

// nodeImages are the largest images, at most so many, less than 0 for all; each by a
// few of its names. They are never nil.
func nodeImages(all []runtime.Image, most int) []v1.ContainerImage {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b runtime.Image) int {
		switch {
		case a.Size > b.Size:
			return -1
		case a.Size < b.Size:
			return 1
		}
		return slices.Compare(a.Tags, b.Tags) // the runtime lists them in no order
	})
	if most >= 0 {
		all = all[:min(len(all), most)]
	}
	out := []v1.ContainerImage{}
	for _, i := range all {
		names := slices.Concat(i.Digests, i.Tags)
		out = append(out, v1.ContainerImage{Names: names[:min(len(names), mostNames)], SizeBytes: int64(min(i.Size, 1<<62))})
	}
	return out
}
