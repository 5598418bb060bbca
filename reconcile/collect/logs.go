// Package collect creates the log directories of pods. It removes the logs of removed pods
// and containers, the links to these logs for log agents, and the cgroups of finished and removed pods.
//
//	/var/log/pods/<namespace>_<name>_<uid>/<container>/<attempt>.log
//	        ▲
//	/var/log/containers/<name>_<namespace>_<container>-<id>.log
//
// The kubelet uses the same names. A kubelet and other instances of podd may use the same
// directories, and containers with a hostPath volume may write to them. Therefore, this package
// changes only entries with the UIDs that the caller passes, and dead links that the caller names. It
// follows no symbolic link and crosses no mount point (package runtime/safepath).
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

// Logs manages the log directories of pods and the links to logs. Its methods may be called
// concurrently.
type Logs struct {
	// Dir contains the log directories of pods, usually /var/log/pods; required.
	Dir string
	// LinkDir contains the links to logs, usually /var/log/containers; "" means that no
	// links are created.
	LinkDir string
	// Batcher merges the removals of pods that are removed at the same time, so that they share a
	// pass over Dir and LinkDir. nil means that each removal makes its own pass.
	Batcher *RemovalBatcher
}

// uidFromName returns the pod UID in name. ok is false if name is not the name of a pod's log
// directory.
func uidFromName(name string) (uid types.UID, ok bool) {
	parts := strings.Split(name, "_")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || !manifest.IsSafeUID(types.UID(parts[2])) {
		return "", false
	}
	return types.UID(parts[2]), true
}

// Remove removes the logs of pods and the links to these logs, until ctx is done. No container of the
// pods may be running. Remove continues after an error and returns all errors.
func (l Logs) Remove(ctx context.Context, uids sets.Set[types.UID]) error {
	return l.sweep(ctx, uids, nil).join()
}

// removeShared removes the logs of a removed pod and the links to these logs, in a pass that l.Batcher
// may share with other pods. It returns nil if there are no logs and no links.
func (l Logs) removeShared(ctx context.Context, uid types.UID) error {
	return l.Batcher.removeShared(uid, func(uids sets.Set[types.UID]) failures { return l.sweep(ctx, uids, nil) })
}

// sweep removes the logs, and the links to logs, of every pod whose UID is in ownUIDs and not in
// liveUIDs. For a pod whose UID is in both sets, sweep removes only links to logs that were
// removed. sweep continues after an error and returns the errors by pod.
func (l Logs) sweep(ctx context.Context, ownUIDs, liveUIDs sets.Set[types.UID]) failures {
	failed := failures{}
	rootDir, err := safepath.Open(l.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		l.sweepLinks(ctx, nil, ownUIDs, liveUIDs, failed)
		return failed
	}
	if err != nil {
		return failed.add(allPods, fmt.Errorf("removing logs of removed pods: %w", err))
	}
	defer rootDir.Close()
	names, err := rootDir.Names()
	if err != nil {
		return failed.add(allPods, fmt.Errorf("removing logs of removed pods: %w", err))
	}
	for _, name := range names {
		uid, ok := uidFromName(name)
		if !ok || !ownUIDs.Has(uid) || liveUIDs.Has(uid) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return failed.add(allPods, err)
		}
		if err := rootDir.RemoveAll(ctx, name); err != nil {
			failed.add(uid, fmt.Errorf("removing logs of a removed pod: %w", err))
		}
	}
	l.sweepLinks(ctx, rootDir, ownUIDs, liveUIDs, failed)
	return failed
}

// openLinks opens the directory of the links. openLinks creates a missing directory if create is
// true. It returns nil and no error if the directory is missing and create is false, or if
// l.LinkDir is "".
func (l Logs) openLinks(create bool) (*safepath.Dir, error) {
	if l.LinkDir == "" {
		return nil, nil
	}
	if create {
		if err := os.MkdirAll(l.LinkDir, 0o755); err != nil {
			return nil, err
		}
	}
	dir, err := safepath.Open(l.LinkDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return dir, err
}
