package once

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile"
)

// keeper keeps logs until they were copied.
type keeper struct {
	reconcile.Leftovers
	out *output
}

// NextAttempts implements reconcile.Leftovers: pods of a run are new.
func (keeper) NextAttempts(*manifest.Pod) (map[string]uint32, error) { return nil, nil }

// Started implements reconcile.Leftovers. The logs of earlier attempts stay,
// and nothing is linked for log agents: a run's output is podd's own.
func (keeper) Started(*manifest.Pod, string, string, uint32) error { return nil }

// Remove implements reconcile.Leftovers.
func (k keeper) Remove(ctx context.Context, key types.NamespacedName, uid types.UID) error {
	k.out.finish(key)
	if err := k.out.drain(ctx, key); err != nil {
		return err
	}
	return k.Leftovers.Remove(ctx, key, uid)
}
