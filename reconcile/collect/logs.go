// Package collect creates the log directories of pods. It removes the logs of removed pods
// and containers, the links to these logs for log agents, and the cgroups of removed pods.
//
//	/var/log/pods/<namespace>_<name>_<uid>/<container>/<attempt>.log
//	        ▲
//	/var/log/containers/<name>_<namespace>_<container>-<id>.log
//
// The names are those of the kubelet. Both directories may be shared with a kubelet and
// other podds, and containers with a hostPath volume may write to them. So only entries
// with the UIDs of the caller's pods are changed, no link is followed, and no mount point
// is crossed (package runtime/safepath).
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
	"podd/runtime/safepath"
)

// Logs manages the logs of pods. Its methods may be called concurrently.
type Logs struct {
	// Dir contains the log directories of pods, usually /var/log/pods; required.
	Dir string
	// Links contains the links to logs, usually /var/log/containers; "" means that no
	// links are created.
	Links string
	// Passes lets pods that are removed at the same time share a pass over both
	// directories; nil: each makes its own.
	Passes *Passes
}

// uidFromName returns the UID in the name of a pod's log directory. It returns false if
// the name is not that of one.
func uidFromName(name string) (types.UID, bool) {
	parts := strings.Split(name, "_")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || !manifest.SafeUID(types.UID(parts[2])) {
		return "", false
	}
	return types.UID(parts[2]), true
}

// remove removes the logs of a removed pod and the links to them. It returns nil if there
// are none.
func (l Logs) remove(ctx context.Context, uid types.UID) error {
	return l.Passes.do(uid, func(uids sets.Set[types.UID]) failures { return l.sweep(ctx, uids, nil) })
}

// Sweep does what remove does for every pod that is owned and not live. Of live pods it
// removes the links to logs that no longer exist. It continues after an error and returns
// all of them.
func (l Logs) Sweep(ctx context.Context, owned, live sets.Set[types.UID]) error {
	return l.sweep(ctx, owned, live).join()
}

func (l Logs) sweep(ctx context.Context, owned, live sets.Set[types.UID]) failures {
	failed := failures{}
	all, err := safepath.Open(l.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		l.sweepLinks(ctx, nil, owned, live, failed)
		return failed
	}
	if err != nil {
		return failed.add(allPods, fmt.Errorf("removing logs of removed pods: %w", err))
	}
	defer all.Close()
	names, err := all.Names()
	if err != nil {
		return failed.add(allPods, fmt.Errorf("removing logs of removed pods: %w", err))
	}
	for _, name := range names {
		uid, ok := uidFromName(name)
		if !ok || !owned.Has(uid) || live.Has(uid) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return failed.add(allPods, err)
		}
		if err := all.RemoveAll(ctx, name); err != nil {
			failed.add(uid, fmt.Errorf("removing logs of a removed pod: %w", err))
		}
	}
	l.sweepLinks(ctx, all, owned, live, failed)
	return failed
}

// openLinks opens the directory of the links. If the directory does not exist, openLinks
// creates it if create is true, else it returns nil and no error.
func (l Logs) openLinks(create bool) (*safepath.Dir, error) {
	if l.Links == "" {
		return nil, nil
	}
	if create {
		if err := os.MkdirAll(l.Links, 0o755); err != nil {
			return nil, err
		}
	}
	dir, err := safepath.Open(l.Links)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return dir, err
}
