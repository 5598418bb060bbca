package main

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"podd/reconcile/render"
)

// diskEvery is how often the size of the disk is looked at.
const diskEvery = 10 * time.Second

// diskKeeper tells of a disk that grows or shrinks under podd.
type diskKeeper struct {
	capacity render.Resources // as they were told last
	size     func() (int64, error)
	left     func(capacity render.Resources) (render.Resources, error)
	tell     func(ctx context.Context, capacity, allocatable int64) error
	log      *slog.Logger
	trouble  string // as it was logged last
}

// keepDisk is that of the daemon, until ctx is done.
func (d *podd) keepDisk(ctx context.Context) error {
	k := &diskKeeper{
		capacity: d.render.Capacity, tell: d.router.Disk, log: d.log,
		size: func() (int64, error) { return diskSize(d.cfg.RootDir) },
		left: func(capacity render.Resources) (render.Resources, error) { return leftOf(d.cfg, capacity) },
	}
	tick := time.NewTicker(diskEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			k.look(ctx)
		}
	}
}

// look tells of another size, and keeps to the former where nothing would be left
// for pods.
func (k *diskKeeper) look(ctx context.Context) {
	size, err := k.size()
	if err == nil && same(size, k.capacity.EphemeralStorage) {
		k.trouble = ""
		return
	}
	now := k.capacity
	now.EphemeralStorage = size
	var allocatable render.Resources
	if err == nil {
		allocatable, err = k.left(now)
	}
	if err != nil {
		if k.trouble != err.Error() {
			k.trouble = err.Error()
			k.log.Warn("pods get what the disk had before", "err", err)
		}
		return
	}
	if k.tell(ctx, size, allocatable.EphemeralStorage) != nil {
		return // podd is ending
	}
	k.log.Info("the disk has another size", "was", bytesText(k.capacity.EphemeralStorage), "is", bytesText(size), "forPods", bytesText(allocatable.EphemeralStorage))
	k.capacity, k.trouble = now, ""
}

// same makes nothing of a hundredth: a file system that shares its space with
// others has another size at every look.
func same(a, b int64) bool { return max(a, b)-min(a, b) <= max(a, b)/100 }

func bytesText(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }
