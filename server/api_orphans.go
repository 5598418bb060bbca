package server

import (
	"context"
	"encoding/json"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
)

// Orphan is a pod directory that belongs to no pod of podd, and that podd removes only on
// request.
type Orphan struct {
	UID    types.UID `json:"uid"`
	Path   string    `json:"path"`
	Reason string    `json:"reason"`
	// Bytes is the disk usage in bytes, without mounted file systems. If IsPartial is set, the actual
	// usage is greater. If the usage is unknown, UnmeasuredReason is the reason.
	Bytes            int64  `json:"bytes"`
	IsPartial        bool   `json:"partial,omitempty"`
	UnmeasuredReason string `json:"unmeasured,omitempty"`
}

// Orphans lists and removes orphaned pod directories. Its errors are shown to
// users.
type Orphans interface {
	List(ctx context.Context) ([]Orphan, error)
	// Remove removes a directory with its data. It returns when the directory has
	// been removed or cannot be removed. It does not cross mount points.
	Remove(ctx context.Context, uid types.UID) error
}

// OrphanTarget is the directory to remove.
type OrphanTarget struct {
	UID types.UID `json:"uid"`
}

func (a *API) listOrphans(w http.ResponseWriter, r *http.Request) {
	orphans, err := a.Orphans.List(r.Context())
	if err != nil {
		replyError(w, err)
		return
	}
	Reply(w, http.StatusOK, append([]Orphan{}, orphans...))
}

func (a *API) removeOrphan(w http.ResponseWriter, r *http.Request) {
	var t OrphanTarget
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCommandBytes)).Decode(&t)
	if err != nil {
		replyError(w, NewBodyError("reading the request to remove a pod directory", err))
		return
	}
	if err := a.Orphans.Remove(r.Context(), t.UID); err != nil {
		replyError(w, err)
		return
	}
	Reply(w, http.StatusOK, t)
}
