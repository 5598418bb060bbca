package wiring

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/rootdir"
	"podd/reconcile/cgroup"
	"podd/reconcile/gc/orphans"
	"podd/runtime/safepath"
)

// NewOrphanOptions returns the options of an orphans.Collector, without UnknownUIDs and ListPods. If
// onCgroupRemoved is not nil, it is called with the duration of each removal of a cgroup.
func NewOrphanOptions(cfg *config.Config, onCgroupRemoved func(took time.Duration), log *slog.Logger) orphans.Options {
	l := NewLogsAndCgroups(cfg, onCgroupRemoved)
	o := orphans.Options{Logs: l.Logs, Log: log, HasDir: func(uid types.UID) bool { return hasDir(cfg.RootDir, uid) }}
	if !cfg.DisablePodCgroups { // otherwise cgroups with the names of podd's belong to another agent
		o.ListCgroups = func() (sets.Set[types.UID], error) { return cgroup.ListPods(cfg.CgroupRoot) }
		o.RemoveCgroup = l.RemoveCgroup
	}
	return o
}

// hasDir reports whether the pod with a UID may have a directory, in the root directory root of the daemon
// or in the root directory of a run.
func hasDir(root string, uid types.UID) bool {
	runs, err := safepath.Names(rootdir.RunsPath(root))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return true
	}
	for _, run := range append(runs, "..") { // the parent of the directory of all runs is root
		_, err := os.Lstat(filepath.Join(rootdir.PodsPath(filepath.Join(rootdir.RunsPath(root), run)), string(uid)))
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			return true
		}
	}
	return false
}
