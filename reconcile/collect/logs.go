// Package collect takes away what pods and containers that are gone left
// behind: their logs, and the links to these that log agents follow.
//
//	/var/log/pods/<namespace>_<name>_<uid>/<container>/<attempt>.log
//	        ▲
//	/var/log/containers/<name>_<namespace>_<container>-<id>.log
//
// The names are the kubelet's. Both directories may be shared with a kubelet
// and with other podds, and containers with a hostPath may write to them: only
// what belongs to a UID that the caller owns is touched, no link is followed,
// and no mount point is crossed (package runtime/beneath).
package collect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"podd/manifest"
	"podd/runtime/beneath"
)

// Logs is where logs lie. Methods may be called concurrently.
type Logs struct {
	// Dir holds the log directories of pods, as a rule /var/log/pods; required.
	Dir string
	// Links holds the links, as a rule /var/log/containers; "" means that there
	// are none to be made.
	Links string
}

// uidOf reads the UID off the name of a pod's log directory.
func uidOf(name string) (types.UID, bool) {
	parts := strings.Split(name, "_")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || !manifest.SafeUID(types.UID(parts[2])) {
		return "", false
	}
	return types.UID(parts[2]), true
}

// Remove removes the logs of a pod that is gone, and the links to them; what is
// gone already is nil.
func (l Logs) Remove(ctx context.Context, uid types.UID) error {
	return l.Sweep(ctx, sets.New(uid), nil)
}

// Sweep removes, for every pod that is owned and not live, what Remove does;
// and of live ones the links to logs that have gone. It goes on after a failure
// and returns all of them.
func (l Logs) Sweep(ctx context.Context, owned, live sets.Set[types.UID]) error {
	all, err := beneath.Open(l.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return l.sweepLinks(ctx, nil, owned, live)
	}
	if err != nil {
		return fmt.Errorf("removing logs of pods that are gone: %w", err)
	}
	defer all.Close()
	names, err := all.Names()
	if err != nil {
		return fmt.Errorf("removing logs of pods that are gone: %w", err)
	}
	var failed []error
	for _, name := range names {
		uid, ok := uidOf(name)
		if !ok || !owned.Has(uid) || live.Has(uid) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := all.RemoveAll(ctx, name); err != nil {
			failed = append(failed, fmt.Errorf("removing logs of pods that are gone: %w", err))
		}
	}
	return errors.Join(append(failed, l.sweepLinks(ctx, all, owned, live))...)
}

// openLinks opens the directory of the links; nil without an error when there
// is none, unless it is to be made.
func (l Logs) openLinks(create bool) (*beneath.Dir, error) {
	if l.Links == "" {
		return nil, nil
	}
	if create {
		if err := os.MkdirAll(l.Links, 0o755); err != nil {
			return nil, err
		}
	}
	dir, err := beneath.Open(l.Links)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return dir, err
}
