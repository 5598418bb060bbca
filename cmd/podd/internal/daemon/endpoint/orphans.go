package endpoint

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile"
	"podd/reconcile/volume"
	"podd/server"
)

// orphans implements server.Orphans.
type orphans struct {
	router  *reconcile.Router
	volumes volume.Dir
}

var _ server.Orphans = orphans{}

// List implements server.Orphans.
func (o orphans) List(ctx context.Context) ([]server.Orphan, error) {
	orphanedDirs, err := o.router.Orphans(ctx)
	if err != nil {
		return nil, err
	}
	var orphans []server.Orphan
	for _, f := range orphanedDirs {
		orphan := server.Orphan{UID: f.UID, Path: f.Path, Reason: f.Reason}
		usage, err := o.volumes.Size(ctx, f.UID)
		orphan.Bytes, orphan.IsPartial = usage.Bytes, usage.Excess != ""
		if err != nil {
			orphan.UnmeasuredReason = err.Error()
		}
		orphans = append(orphans, orphan)
	}
	return orphans, nil
}

// Remove implements server.Orphans.
func (o orphans) Remove(ctx context.Context, uid types.UID) error {
	return o.router.RemoveOrphan(ctx, uid)
}
