package server

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Image is an image on the node.
type Image struct {
	ID string `json:"id"`
	// Names contains the tags of the image or, if it has none, its digests.
	Names []string `json:"names"`
	Bytes int64    `json:"bytes"`
	// IsPinned reports whether the configuration of the runtime forbids removing the image.
	IsPinned bool `json:"pinned,omitempty"`
	// IsSandboxImage reports whether the runtime creates sandboxes from the image.
	IsSandboxImage bool `json:"sandbox,omitempty"`
	// FirstDetected is when podd first listed the image.
	FirstDetected time.Time `json:"firstDetected"`
	// LastUsed is when podd last found the image in use; nil if it was never in use.
	LastUsed *time.Time `json:"lastUsed,omitempty"`
	// Users contains the pods that use the image, as namespace/name, and containers without a pod.
	Users []string `json:"users"`
	// Removal is why the garbage collection would remove the image now; nil if it keeps the image.
	Removal *ImageRemoval `json:"removal,omitempty"`
	// KeepReason is why the garbage collection would keep the image now; "" if it removes the image.
	KeepReason string `json:"kept,omitempty"`
}

// InUse reports whether pods, containers or the runtime use the image.
func (i *Image) InUse() bool { return len(i.Users) > 0 || i.IsUsedByRuntime() }

// IsUsedByRuntime reports whether the runtime itself needs the image, as the sandbox image for every
// pod. Since containerd 2, only IsPinned identifies the sandbox image, because the runtime does not
// report its name.
func (i *Image) IsUsedByRuntime() bool { return i.IsSandboxImage || i.IsPinned }

// ImageRemoval describes the removal of an image by the garbage collection.
type ImageRemoval struct {
	// Reason is "space" or "age".
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Order is the position of the image among the removals, beginning with 1.
	Order int `json:"order"`
}

// ImageList contains the images on the node.
type ImageList struct {
	Images []Image `json:"images"`
	// DiskUsedPercent is the usage of the image file system. If it is unknown, DiskError is the
	// reason.
	DiskUsedPercent int    `json:"diskUsedPercent"`
	DiskError       string `json:"diskError,omitempty"`
	// HighThresholdPercent is the disk usage at which unused images are removed.
	HighThresholdPercent int `json:"highThresholdPercent"`
}

// PrunedImages is the result of the removal of all unused images.
type PrunedImages struct {
	Removed []Image `json:"removed"`
	// Error is why other images were not removed; "" if there was no error.
	Error string `json:"error,omitempty"`
}

// Images lists and removes images. Its errors are shown to users.
type Images interface {
	List(ctx context.Context) (ImageList, error)
	// Remove removes the image with a name or ID. It returns an error if the image is in use.
	Remove(ctx context.Context, name string) (Image, error)
	// Prune removes all images that are not in use.
	Prune(ctx context.Context) (PrunedImages, error)
}

// ImageTarget is the image to remove.
type ImageTarget struct {
	Name string `json:"name"` // name or ID
}

func (a *API) listImages(w http.ResponseWriter, r *http.Request) {
	images, err := a.Images.List(r.Context())
	if err != nil {
		replyError(w, err)
		return
	}
	Reply(w, http.StatusOK, images)
}

func (a *API) removeImage(w http.ResponseWriter, r *http.Request) {
	var t ImageTarget
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCommandBytes)).Decode(&t); err != nil {
		replyError(w, NewBodyError("reading the request to remove an image", err))
		return
	}
	image, err := a.Images.Remove(r.Context(), t.Name)
	if err != nil {
		replyError(w, err)
		return
	}
	Reply(w, http.StatusOK, image)
}

func (a *API) pruneImages(w http.ResponseWriter, r *http.Request) {
	pruned, err := a.Images.Prune(r.Context())
	if err != nil {
		replyError(w, err)
		return
	}
	Reply(w, http.StatusOK, pruned)
}
