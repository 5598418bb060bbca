package node

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"podd/reconcile/render"
)

// diskInterval is the interval between checks of the size of the disk.
const diskInterval = 10 * time.Second

// DiskOptions are the options of WatchDisk. All fields are required.
type DiskOptions struct {
	// Capacity is the capacity of the node at the start.
	Capacity render.Resources
	// Size returns the size of the disk in bytes.
	Size func() (int64, error)
	// Allocatable returns the part of a capacity that pods can request.
	Allocatable func(capacity render.Resources) (render.Resources, error)
	// Publish is called when the size has changed, with the new size and its allocatable
	// part.
	Publish func(ctx context.Context, capacity, allocatable int64) error
	Log     *slog.Logger
}

// WatchDisk publishes changes of the size of the disk until ctx is done.
func WatchDisk(ctx context.Context, o DiskOptions) error {
	w := &diskWatcher{o: o, capacity: o.Capacity}
	tick := time.NewTicker(diskInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			w.check(ctx)
		}
	}
}

// A diskWatcher contains the state of WatchDisk.
type diskWatcher struct {
	o         DiskOptions
	capacity  render.Resources // the capacity with the size that was published last
	lastError string           // the error that was logged last; "" after a success
}

// check reads the size of the disk and publishes the size if it has changed. The previous size
// stays in use if the size cannot be read, or if no part of the new size would be allocatable.
func (w *diskWatcher) check(ctx context.Context) {
	size, err := w.o.Size()
	if err == nil && isSimilarSize(size, w.capacity.EphemeralStorage) {
		w.lastError = ""
		return
	}
	now := w.capacity
	now.EphemeralStorage = size
	var allocatable render.Resources
	if err == nil {
		allocatable, err = w.o.Allocatable(now)
	}
	if err != nil {
		if w.lastError != err.Error() {
			w.lastError = err.Error()
			w.o.Log.Warn("updating the ephemeral-storage capacity failed; using the previous capacity", "err", err)
		}
		return
	}
	if w.o.Publish(ctx, size, allocatable.EphemeralStorage) != nil {
		return // podd is stopping
	}
	w.o.Log.Info("disk size changed", "previous", formatBytes(w.capacity.EphemeralStorage), "current", formatBytes(size), "allocatable", formatBytes(allocatable.EphemeralStorage))
	w.capacity, w.lastError = now, ""
}

// isSimilarSize reports whether a and b differ by at most one percent. Such differences
// are ignored, because the size of a file system that shares its space with other file systems
// changes constantly.
func isSimilarSize(a, b int64) bool { return max(a, b)-min(a, b) <= max(a, b)/100 }

func formatBytes(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }
