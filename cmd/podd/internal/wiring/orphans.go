package wiring

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/rootdir"
	"podd/reconcile/cgroup"
	"podd/reconcile/gc/orphans"
)

// NewOrphanOptions returns the options of an orphans.Collector, without UnknownUIDs. If onCgroupRemoved is
// not nil, it is called with the duration of each removal of a cgroup.
func NewOrphanOptions(cfg *config.Config, onCgroupRemoved func(took time.Duration), log *slog.Logger) orphans.Options {
	l := NewLogsAndCgroups(cfg, onCgroupRemoved)
	o := orphans.Options{Logs: l.Logs, Log: log, HasDir: func(uid types.UID) bool {
		_, err := os.Lstat(filepath.Join(rootdir.PodsPath(cfg.RootDir), string(uid)))
		return !errors.Is(err, fs.ErrNotExist)
	}}
	if !cfg.DisablePodCgroups { // otherwise cgroups with the names of podd's belong to another agent
		o.ListCgroups = func() (sets.Set[types.UID], error) { return cgroup.ListPods(cfg.CgroupRoot) }
		o.RemoveCgroup = l.RemoveCgroup
	}
	return o
}
