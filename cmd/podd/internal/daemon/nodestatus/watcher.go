// Package nodestatus follows the images of the node and its OOM kills, and builds its Node object.
package nodestatus

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest/order"
	"podd/reconcile/event"
	"podd/runtime"
	"podd/runtime/cri"
	"podd/runtime/kernellog"
)

// checkInterval is the interval between checks of the node. imagesInterval is the interval between
// lists of the node's images if no image is pulled.
const (
	checkInterval  = 10 * time.Second
	imagesInterval = time.Minute
)

// WatchOptions are the options of Watch. All fields are required.
type WatchOptions struct {
	Runtime   *cri.Client
	MaxImages int // maximum number of published images; -1 means unlimited
	// Pulled receives a value after a pull.
	Pulled <-chan struct{}
	// Publish is called with changed images, and Record with new events.
	Publish func([]v1.ContainerImage)
	Record  func([]event.Event)
}

// Watch observes the images and the OOM kills of the node until ctx is done.
func Watch(ctx context.Context, o WatchOptions) error {
	kernel := kernellog.Open(kernellog.Path)
	defer kernel.Close()
	w := &watcher{kernelLog: kernel, listImages: o.Runtime.ListImages, maxImages: o.MaxImages, publish: o.Publish, record: o.Record}
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

// A watcher publishes changes of the images of the node. It belongs to one goroutine.
type watcher struct {
	listImages func(context.Context) ([]runtime.Image, error)
	maxImages  int
	kernelLog  *kernellog.Log // nil if the kernel's log cannot be read
	publish    func([]v1.ContainerImage)
	record     func([]event.Event)

	published      []v1.ContainerImage // nil before the first list
	imagesListedAt time.Time           // when the images were last listed
}

// check lists the images if imagesInterval has passed or an image was pulled, and publishes changed
// images. It also records OOM kills.
func (w *watcher) check(ctx context.Context, now time.Time) {
	w.record(systemOOMEvents(w.kernelLog.NewOOMKills(), now))
	if now.Sub(w.imagesListedAt) < imagesInterval {
		return
	}
	images, err := w.listImages(ctx)
	if err != nil {
		return // the next check lists the images again
	}
	w.imagesListedAt = now
	if next := nodeImages(images, w.maxImages); !reflect.DeepEqual(next, w.published) {
		w.published = next
		w.publish(next)
	}
}

// maxOOMEvents limits the events that systemOOMEvents returns.
const maxOOMEvents = 10

// systemOOMEvents returns an event for each process that was killed because the node was out of
// memory. Processes that were killed because of the limit of a cgroup are omitted.
func systemOOMEvents(kills []kernellog.OOMKill, at time.Time) (events []event.Event) {
	for _, k := range kills {
		if k.LimitedCgroup == "" && len(events) < maxOOMEvents {
			message := fmt.Sprintf("System OOM encountered, victim process: %s, pid: %d", k.ProcessName, k.PID)
			events = append(events, event.NewNodeEvent(v1.EventTypeWarning, "SystemOOM", message, at))
		}
	}
	return events
}

// maxImageNames is the maximum number of names of an image, as in the kubelet.
const maxImageNames = 5

// nodeImages returns the largest images, each with at most maxImageNames names. limit is the maximum
// number of images; a negative limit means all. The result is never nil.
func nodeImages(images []runtime.Image, limit int) []v1.ContainerImage {
	images = slices.Clone(images)
	order.Stable(images, func(a, b runtime.Image) int {
		switch {
		case a.SizeBytes > b.SizeBytes:
			return -1
		case a.SizeBytes < b.SizeBytes:
			return 1
		}
		return slices.Compare(a.Tags, b.Tags) // sort also by name, because the runtime returns images in no stable order
	})
	if limit >= 0 {
		images = images[:min(len(images), limit)]
	}
	out := []v1.ContainerImage{}
	for _, i := range images {
		names := slices.Concat(i.Digests, i.Tags)
		out = append(out, v1.ContainerImage{Names: names[:min(len(names), maxImageNames)], SizeBytes: int64(min(i.SizeBytes, 1<<62))})
	}
	return out
}
