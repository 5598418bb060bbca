package daemon

import (
	"context"

	"podd/cmd/podd/internal/rootdir"
	"podd/reconcile/gc"
	"podd/reconcile/gc/images"
	"podd/reconcile/node"
	"podd/runtime/cri"
)

// newImageManager returns the Manager that removes unused images. pods follows the pods that need
// images.
func newImageManager(b processState, t telemetry, client *cri.Client, pods *images.Pods) *images.Manager {
	return images.New(images.Options{
		Runtime: client, Policy: b.cfg.ImageGC, SandboxImage: b.cfg.SandboxImage, Pods: pods,
		RecordFile: rootdir.ImagesPath(b.cfg.RootDir), StatDisk: statImageDisk, Record: t.record,
		OnCollected: func(r gc.Reason) { t.metrics.RecordCollectedImage(string(r)) }, Tracer: t.tracing.Tracer(), Log: b.log,
	})
}

// statImageDisk returns the size of the file system that contains dir.
func statImageDisk(dir string) (gc.Disk, error) {
	disk, err := node.StatFilesystem(dir)
	if err != nil {
		return gc.Disk{}, err
	}
	return gc.Disk{CapacityBytes: int64(disk.CapacityBytes), AvailableBytes: int64(disk.AvailableBytes)}, nil
}

// An imageReclaimer adapts a method of images.Manager to eviction.Reclaimer.
type imageReclaimer func(ctx context.Context) (freed int64, err error)

// Reclaim calls r.
func (r imageReclaimer) Reclaim(ctx context.Context) error {
	_, err := r(ctx)
	return err
}
