// Package nodestatus follows the resources of the node, its images, disk and DNS, and
// builds its Node object.
package nodestatus

import (
	"context"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/daemon/view"
	"podd/manifest/order"
	"podd/reconcile/event"
	"podd/reconcile/eviction/pressure"
	"podd/runtime"
	"podd/runtime/cri"
)

// checkInterval is the interval between checks of the node. imagesInterval is the interval between
// lists of the node's images if no image is pulled.
const (
	checkInterval  = 10 * time.Second
	imagesInterval = time.Minute
)

// WatchOptions are the options of Watch. All fields are required.
type WatchOptions struct {
	Node      string // name of the node
	RootDir   string
	Runtime   *cri.Client
	MaxImages int // maximum number of published images; -1 means unlimited
	Policy    pressure.Policy
	// Pulled receives a value after a pull.
	Pulled <-chan struct{}
	// Publish is called with changed facts, and Record with new events.
	Publish func(*view.NodeFacts)
	Record  func([]event.Event)
	Log     *slog.Logger
}

// Watch observes the pressure, the images and the OOM kills of the node until ctx is done.
func Watch(ctx context.Context, o WatchOptions) error {
	kernel := openKernelLog("/dev/kmsg")
	defer kernel.close()
	w := &watcher{
		node: o.Node, kernelLog: kernel, listImages: o.Runtime.ListImages, maxImages: o.MaxImages, log: o.Log,
		observe: func(ctx context.Context) (observations, error) { return observe(ctx, o.RootDir, o.Runtime) },
		publish: o.Publish, record: o.Record, pressures: pressureTracker{policy: o.Policy},
	}
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		w.check(ctx, time.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-o.Pulled:
			w.imagesListedAt = time.Time{}
		}
	}
}

// A watcher publishes changes of the pressure and images of the node. It belongs to one
// goroutine.
type watcher struct {
	node       string
	observe    func(context.Context) (observations, error)
	listImages func(context.Context) ([]runtime.Image, error)
	maxImages  int
	kernelLog  *kernelLog // nil if the kernel's log cannot be read
	publish    func(*view.NodeFacts)
	record     func([]event.Event)
	log        *slog.Logger

	pressures          pressureTracker
	published          view.NodeFacts
	hasPublished       bool      // the field published is set
	imagesListedAt     time.Time // when the images were last listed
	hasNoImageDiskSize bool      // the last check found that the image file system has no size
	lastError          string    // the error that was logged last; "" after a success
}

// check observes the node. If the facts have changed, it publishes them and records events.
func (w *watcher) check(ctx context.Context, now time.Time) {
	next := w.published
	if r, err := w.observe(ctx); err != nil {
		if w.lastError != err.Error() {
			w.lastError = err.Error()
			w.log.Warn("reading the node's resources failed; keeping the previous pressure conditions", "err", err)
		}
	} else {
		next.Pressure, w.lastError = w.pressures.update(r, now), ""
		w.checkImageDisk(r, now)
	}
	if now.Sub(w.imagesListedAt) >= imagesInterval {
		if images, err := w.listImages(ctx); err == nil {
			next.Images, w.imagesListedAt = nodeImages(images, w.maxImages), now
		}
	}
	w.record(w.pressureEvents(next.Pressure, now))
	w.record(w.kernelLog.oomEvents(now))
	if ctx.Err() == nil && (!w.hasPublished || !maps.Equal(next.Pressure, w.published.Pressure) || !reflect.DeepEqual(next.Images, w.published.Images)) {
		w.published, w.hasPublished = next, true
		w.publish(&next)
	}
}

// pressureEvents returns an event for each pressure condition that is new or has changed.
func (w *watcher) pressureEvents(now map[v1.NodeConditionType]bool, at time.Time) []event.Event {
	var all []event.Event
	for _, kind := range view.PressureKinds {
		current, isKnown := now[kind]
		if previous, wasKnown := w.published.Pressure[kind]; isKnown && (!wasKnown || previous != current) {
			all = append(all, event.ForNodeCondition(w.node, view.MessageForPressure(kind, current).EventReason, at))
		}
	}
	return all
}

// checkImageDisk records an event if the image file system has no size. It does not record the
// event again while the size is missing.
func (w *watcher) checkImageDisk(r observations, at time.Time) {
	invalid := r.images.isKnown && r.images.bytes.capacity == 0
	if invalid && !w.hasNoImageDiskSize {
		w.record([]event.Event{event.NewNodeEvent(v1.EventTypeWarning, "InvalidDiskCapacity", "invalid capacity 0 on image filesystem", at)})
	}
	w.hasNoImageDiskSize = invalid
}

// maxImageNames is the maximum number of names of an image, as in the kubelet.
const maxImageNames = 5

// nodeImages returns the largest images, each with at most maxImageNames names. limit is the maximum
// number of images; a negative limit means all. The result is never nil.
func nodeImages(all []runtime.Image, limit int) []v1.ContainerImage {
	all = slices.Clone(all)
	order.Stable(all, func(a, b runtime.Image) int {
		switch {
		case a.SizeBytes > b.SizeBytes:
			return -1
		case a.SizeBytes < b.SizeBytes:
			return 1
		}
		return slices.Compare(a.Tags, b.Tags) // sort also by name, because the runtime returns images in no stable order
	})
	if limit >= 0 {
		all = all[:min(len(all), limit)]
	}
	out := []v1.ContainerImage{}
	for _, i := range all {
		names := slices.Concat(i.Digests, i.Tags)
		out = append(out, v1.ContainerImage{Names: names[:min(len(names), maxImageNames)], SizeBytes: int64(min(i.SizeBytes, 1<<62))})
	}
	return out
}
