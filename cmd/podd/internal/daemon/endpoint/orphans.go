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
	found, err := o.router.Orphans(ctx)
	if err != nil {
		return nil, err
	}
	var all []server.Orphan
	for _, f := range found {
		one := server.Orphan{UID: f.UID, Path: f.Path, Reason: f.Reason}
		used, err := o.volumes.Size(ctx, f.UID)
		one.Bytes, one.IsPartial = used.Bytes, used.Excess != ""
		if err != nil {
			one.UnmeasuredReason = err.Error()
		}
		all = append(all, one)
	}
	return all, nil
}

// Remove implements server.Orphans.
func (o orphans) Remove(ctx context.Context, uid types.UID) error {
	return o.router.RemoveOrphan(ctx, uid)
}
