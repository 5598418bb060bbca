package endpoint

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"

	"podd/manifest/order"
	"podd/reconcile/gc/images"
	"podd/server"
)

// imageStore implements server.Images.
type imageStore struct{ manager *images.Manager }

var _ server.Images = imageStore{}

// List implements server.Images.
func (s imageStore) List(ctx context.Context) (server.ImageList, error) {
	l, err := s.manager.List(ctx)
	if err != nil {
		return server.ImageList{}, err
	}
	list := server.ImageList{Images: []server.Image{}, DiskUsedPercent: l.Decision.UsedPercent, HighThresholdPercent: l.HighPercent}
	if l.DiskError != nil {
		list.DiskError = l.DiskError.Error()
	}
	for _, i := range l.Images {
		image := newImage(&i)
		image.KeepReason = l.Decision.Kept[i.ID]
		for n, r := range l.Decision.Removals {
			if r.ID == i.ID {
				image.Removal = &server.ImageRemoval{Reason: string(r.Reason), Message: r.Message, Order: n + 1}
			}
		}
		list.Images = append(list.Images, image)
	}
	order.Slice(list.Images, func(a, b server.Image) int {
		return cmp.Or(slices.Compare(a.Names, b.Names), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// Remove implements server.Images.
func (s imageStore) Remove(ctx context.Context, name string) (server.Image, error) {
	i, err := s.manager.Remove(ctx, name)
	if _, ok := errors.AsType[*images.NotFoundError](err); ok {
		return server.Image{}, server.NewNotFoundError(err.Error())
	}
	if _, ok := errors.AsType[*images.ProtectedError](err); ok {
		return server.Image{}, &server.Error{Status: http.StatusConflict, Message: err.Error()}
	}
	if err != nil {
		return server.Image{}, err
	}
	return newImage(&i), nil
}

// Prune implements server.Images.
func (s imageStore) Prune(ctx context.Context) (server.PrunedImages, error) {
	removed, err := s.manager.Prune(ctx)
	if err != nil && len(removed) == 0 {
		return server.PrunedImages{}, err
	}
	result := server.PrunedImages{Removed: []server.Image{}}
	for _, i := range removed {
		result.Removed = append(result.Removed, newImage(&i))
	}
	if err != nil {
		result.Error = err.Error()
	}
	return result, nil
}

// newImage returns an image without the decision of the garbage collection.
func newImage(i *images.Image) server.Image {
	image := server.Image{
		ID: i.ID, Names: append([]string{}, i.Names...), Bytes: i.SizeBytes, IsPinned: i.Pinned, IsSandboxImage: i.IsSandboxImage,
		FirstDetected: i.FirstDetected, Users: append([]string{}, i.Users...),
	}
	if !i.LastUsed.IsZero() {
		image.LastUsed = &i.LastUsed
	}
	return image
}
