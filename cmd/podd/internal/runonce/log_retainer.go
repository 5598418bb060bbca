package runonce

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/effect"
)

// A logRetainer removes logs only after they have been copied.
type logRetainer struct {
	effect.LogsAndCgroups
	out *outputCopier
}

// NextAttempts implements effect.LogsAndCgroups. It returns nil, because the pods of a run have no
// earlier attempts.
func (logRetainer) NextAttempts(*manifest.Pod) (map[string]uint32, error) { return nil, nil }

// Started implements effect.LogsAndCgroups. It removes no logs of earlier attempts, because they
// may not be copied yet. It creates no links for log agents, because podd prints the output.
func (logRetainer) Started(*manifest.Pod, string, string, uint32) error { return nil }

// Remove implements effect.LogsAndCgroups. It waits until the logs of the pod are copied.
func (k logRetainer) Remove(ctx context.Context, key types.NamespacedName, uid types.UID) error {
	k.out.finish(key)
	if err := k.out.drain(ctx, key); err != nil {
		return err
	}
	return k.LogsAndCgroups.Remove(ctx, key, uid)
}
