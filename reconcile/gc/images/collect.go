package images

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/reconcile/event"
	"podd/reconcile/gc"
	"podd/reconcile/gc/gctrace"
)

// collect makes one round of the garbage collection and stores the use of the images. As in the
// kubelet, only a repeated failure causes an event.
func (m *Manager) collect(ctx context.Context) {
	err := gctrace.Round(ctx, m.o.Tracer, gctrace.Images, m.collectUnused)
	m.save()
	switch {
	case ctx.Err() != nil:
		return
	case err == nil && m.hasFailed:
		m.o.Log.Info("image garbage collection succeeded again")
	case err != nil:
		m.o.Log.Warn("image garbage collection failed; retrying in "+interval(m.o.Policy).String(), "err", err)
		if m.hasFailed {
			m.record("ImageGCFailed", err.Error())
		}
	}
	m.hasFailed = err != nil
}

// record records a warning event of the node.
func (m *Manager) record(reason, message string) {
	m.o.Record([]event.Event{event.NewNodeEvent(v1.EventTypeWarning, reason, message, m.clock().Now)})
}

// collectUnused removes the images that gc.Decide returns. The sizes of images include shared
// layers, so the disk may still be too full after the removal. Then collectUnused decides again.
func (m *Manager) collectUnused(ctx context.Context) error {
	var freedBytes, goalBytes int64
	for {
		images, err := m.detect(ctx)
		if err != nil || m.o.Policy.IsDisabled() {
			return err
		}
		disk, diskErr := m.imageDisk(ctx)
		d := gc.Decide(withoutNames(images), disk, m.o.Policy, m.clock().Now)
		goalBytes = max(goalBytes, d.GoalBytes)
		removedImages, err := m.removeAll(ctx, images, d.Removals)
		freedBytes += totalSize(removedImages)
		if err := errors.Join(diskErr, err); err != nil {
			return err
		}
		if len(removedImages) == 0 {
			return m.checkGoal(disk, freedBytes, goalBytes)
		}
	}
}

// checkGoal returns an error and records an event if the disk is still too full. freedBytes is the
// sum of the sizes of the removed images, and goalBytes is the sum that was necessary.
func (m *Manager) checkGoal(disk gc.Disk, freedBytes, goalBytes int64) error {
	usedPercent := disk.UsedPercent()
	if usedPercent < m.o.Policy.HighPercent && (freedBytes >= goalBytes || usedPercent <= m.o.Policy.LowPercent) {
		return nil
	}
	err := fmt.Errorf("%d%% of the %s of the image file system are used; removing unused images freed %s of the required %s; the space is used by images in use, volumes, logs or other files",
		usedPercent, formatBytes(disk.CapacityBytes), formatBytes(freedBytes), formatBytes(goalBytes))
	m.record("FreeDiskSpaceFailed", err.Error())
	return err
}

// formatBytes rounds a number of bytes up to KiB, MiB or GiB.
func formatBytes(n int64) string {
	unit := int64(1 << 10)
	for unit < 1<<30 && n >= 10*unit<<10 {
		unit <<= 10
	}
	return resource.NewQuantity((n+unit-1)/unit*unit, resource.BinarySI).String()
}

// imageDisk returns the size of the file system with the images. If the runtime stores the writable
// layers of containers on another file system, that one is not considered, because removing images
// frees no space there.
func (m *Manager) imageDisk(ctx context.Context) (gc.Disk, error) {
	images, _, err := m.o.Runtime.ImageFsInfo(ctx)
	if err != nil {
		return gc.Disk{}, fmt.Errorf("querying the image file system: %w", err)
	}
	if len(images) == 0 {
		return gc.Disk{}, errors.New("querying the image file system: the runtime reports none")
	}
	disk, err := m.o.StatDisk(images[0].Mountpoint)
	if err == nil && disk.CapacityBytes == 0 {
		err = errors.New("invalid capacity 0 on image filesystem") // the wording of the kubelet
	}
	return disk, err
}

// withoutNames returns the images without their names.
func withoutNames(images []Image) []gc.Image {
	var list []gc.Image
	for _, i := range images {
		list = append(list, i.Image)
	}
	return list
}

// removeAll removes the images that removals contains, and returns the removed images. images
// contains all images. It continues after an error. Before each removal except the first, it checks
// again that the image is not in use, because a removal may take long. The check does not list all
// images, so that the duration of removeAll is proportional to their number.
func (m *Manager) removeAll(ctx context.Context, images []Image, removals []gc.Removal) (removed []Image, err error) {
	byID := make(map[string]Image, len(images))
	for _, i := range images {
		byID[i.ID] = i
	}
	var errs []error
	for n, r := range removals {
		i := byID[r.ID]
		if n > 0 {
			isRemovable, err := m.isStillRemovable(ctx, i)
			if err != nil {
				return removed, errors.Join(append(errs, err)...)
			}
			if !isRemovable {
				continue
			}
		}
		if err := m.remove(ctx, &i, r); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, i)
	}
	return removed, errors.Join(errs...)
}

// totalSize returns the sum of the sizes of images. Layers that images share count several times.
func totalSize(images []Image) (bytes int64) {
	for _, i := range images {
		bytes += max(i.SizeBytes, 0)
	}
	return bytes
}

// remove removes an image.
func (m *Manager) remove(ctx context.Context, i *Image, r gc.Removal) error {
	if err := m.o.Runtime.RemoveImage(ctx, i.ID); err != nil {
		return fmt.Errorf("removing image %s: %w", i.displayName(), err)
	}
	delete(m.records, i.ID)
	if r.Reason != "" {
		m.o.OnCollected(r.Reason)
	}
	m.o.Log.Info("image removed", "image", i.displayName(), "id", i.ID, "size", formatBytes(i.SizeBytes), "why", r.Message)
	return nil
}
