package images

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"podd/reconcile/gc"
)

// A Listing contains the images on the node and the decision of the garbage collection.
type Listing struct {
	Images []Image
	// Decision contains the images that the garbage collection would remove now.
	Decision gc.Decision
	// HighPercent is the disk usage in percent at which unused images are removed.
	HighPercent int
	// DiskError is the error of measuring the disk usage; nil if the measurement succeeded.
	DiskError error
}

// List lists the images and computes what the garbage collection would remove now. It removes
// nothing.
func (m *Manager) List(ctx context.Context) (Listing, error) {
	return call(ctx, m, func() (l Listing, err error) {
		if l.Images, err = m.detect(ctx); err != nil {
			return Listing{}, err
		}
		l.HighPercent = m.o.Policy.HighPercent
		var disk gc.Disk
		disk, l.DiskError = m.imageDisk(ctx)
		l.Decision = gc.Decide(withoutNames(l.Images), disk, m.o.Policy, m.clock().Now)
		return l, nil
	})
}

// Reclaim removes all images that are not in use, except images younger than the minimum age, to
// free as much space as possible. The eviction calls it before it evicts pods. freed is the sum of
// the sizes of the removed images. Layers that images share are counted several times, so the caller
// must measure the disk again. If some images cannot be removed, Reclaim removes the others and
// returns an error.
//
// Reclaim returns an error and removes nothing until all sources of pods were read.
func (m *Manager) Reclaim(ctx context.Context) (freed int64, err error) {
	return m.reclaim(ctx, func(images []gc.Image) gc.Decision { return gc.Reclaim(images, m.o.Policy, m.clock().Now) })
}

// ReclaimAll is like Reclaim, but also removes images younger than the minimum age.
func (m *Manager) ReclaimAll(ctx context.Context) (freed int64, err error) {
	return m.reclaim(ctx, gc.ReclaimAll)
}

// reclaim removes the images that decide returns, and returns the sum of their sizes.
func (m *Manager) reclaim(ctx context.Context, decide func([]gc.Image) gc.Decision) (freed int64, err error) {
	return call(ctx, m, func() (int64, error) {
		images, err := m.detect(ctx)
		if err != nil {
			return 0, err
		}
		removedImages, err := m.removeAll(ctx, images, decide(withoutNames(images)).Removals)
		return totalSize(removedImages), err
	})
}

// Prune removes all images that are not in use, and returns the removed images. It continues after
// an error.
func (m *Manager) Prune(ctx context.Context) (removed []Image, err error) {
	return call(ctx, m, func() ([]Image, error) {
		images, err := m.detect(ctx)
		if err != nil {
			return nil, err
		}
		return m.removeAll(ctx, images, gc.Prune(withoutNames(images)).Removals)
	})
}

// A NotFoundError is the error of a request to remove an image that is not on the node.
type NotFoundError struct{ Name string }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no image %q on this node; \"podd images\" lists the images", e.Name)
}

// A ProtectedError is the error of a request to remove an image that must not be removed.
type ProtectedError struct {
	Name  string
	image Image
}

func (e *ProtectedError) Error() string {
	switch i := e.image; {
	case len(i.Users) > 0:
		return fmt.Sprintf("image %q is in use by %s; remove these pods first", e.Name, strings.Join(i.Users, ", "))
	case i.Pinned:
		return fmt.Sprintf("image %q is pinned by the configuration of the runtime", e.Name)
	}
	return fmt.Sprintf("the runtime creates sandboxes from image %q", e.Name)
}

// Remove removes the image with a name or ID, with all its names. The error is a *NotFoundError or a
// *ProtectedError if the image cannot be removed for that reason.
func (m *Manager) Remove(ctx context.Context, name string) (removed Image, err error) {
	return call(ctx, m, func() (Image, error) {
		images, err := m.detect(ctx)
		if err != nil {
			return Image{}, err
		}
		image, isPresent, err := m.o.Runtime.ImageStatus(ctx, name)
		if err != nil {
			return Image{}, fmt.Errorf("querying image %s: %w", name, err)
		}
		index := slices.IndexFunc(images, func(i Image) bool { return isPresent && i.ID == image.ID })
		if index < 0 {
			return Image{}, &NotFoundError{name}
		}
		i := images[index]
		if i.isProtected() {
			return Image{}, &ProtectedError{name, i}
		}
		return i, m.remove(ctx, &i, gc.Removal{ID: i.ID, SizeBytes: i.SizeBytes, Message: "requested by a user"})
	})
}
