package runonce

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/effect"
)

// A logRetainer removes logs only after they have been copied. It does not embed the methods of logs, so
// that a new method of the interface must be implemented here.
type logRetainer struct {
	logs effect.LogsAndCgroups
	out  *outputCopier
}

// NextAttempts implements effect.LogsAndCgroups. It returns nil, because the pods of a run have no
// earlier attempts.
func (logRetainer) NextAttempts(*manifest.Pod) (map[string]uint32, error) { return nil, nil }

// MakeLogDirs implements effect.LogsAndCgroups.
func (k logRetainer) MakeLogDirs(pod *manifest.Pod, container string) error {
	return k.logs.MakeLogDirs(pod, container)
}

// HandleStart implements effect.LogsAndCgroups. It removes no logs of earlier attempts, because they
// may not be copied yet. It creates no links for log agents, because podd prints the output.
func (logRetainer) HandleStart(*manifest.Pod, string, string, uint32, uint32) error { return nil }

// LastLines implements effect.LogsAndCgroups.
func (k logRetainer) LastLines(ctx context.Context, key types.NamespacedName, uid types.UID, container string, attempt uint32) (string, error) {
	return k.logs.LastLines(ctx, key, uid, container, attempt)
}

// RemoveCgroup implements effect.LogsAndCgroups.
func (k logRetainer) RemoveCgroup(ctx context.Context, uid types.UID) error {
	return k.logs.RemoveCgroup(ctx, uid)
}

// Remove implements effect.LogsAndCgroups. It waits until the logs of the pod are copied.
func (k logRetainer) Remove(ctx context.Context, key types.NamespacedName, uid types.UID) error {
	k.out.finish(key)
	if err := k.out.drain(ctx, key); err != nil {
		return err
	}
	return k.logs.Remove(ctx, key, uid)
}
