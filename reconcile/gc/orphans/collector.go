// Package orphans removes what pods that no longer exist have left on a node that podd manages alone: log
// directories, links to logs, and cgroups with their processes. Such leftovers exist if the node agent
// was killed or replaced while it removed a pod, or if the runtime has lost its state.
//
// The rules are those of the kubelet (kuberuntime_gc.go, evictPodLogsDirectories, and kubelet_pods.go,
// cleanupOrphanedPodCgroups), with two differences. First, a pod must be unknown twice, because another
// program may create the logs or the cgroup of a pod shortly before it creates the sandbox. Second, while
// the pod has a directory, which may contain mounted volumes, all its leftovers are kept. The kubelet
// then keeps only the cgroup, and reduces its CPU shares.
package orphans

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	// interval is the interval of rounds while nothing is unknown. The kubelet uses the same interval
	// for logs.
	interval = time.Minute
	// confirmInterval is the time after which an unknown pod is checked again.
	confirmInterval = 15 * time.Second
)

// Options are the options of a Collector. All fields are required unless their comment says otherwise.
type Options struct {
	// UnknownUIDs returns the UIDs in uids that belong to no pod. It returns an error if it cannot
	// determine this yet.
	UnknownUIDs func(ctx context.Context, uids []types.UID) ([]types.UID, error)
	// HasDir reports whether the pod with a UID may have a directory.
	HasDir func(uid types.UID) bool
	Logs   LogStore
	// ListCgroups returns the UIDs of the pods that have a cgroup. RemoveCgroup kills the processes in
	// the cgroup of a pod and removes the cgroup. It returns an error if processes remain. Both are nil
	// if podd does not manage the cgroups of pods.
	ListCgroups  func() (sets.Set[types.UID], error)
	RemoveCgroup func(ctx context.Context, uid types.UID) error
	Log          *slog.Logger
}

// A LogStore contains the logs of pods and the links to these logs. It is implemented by collect.Logs.
type LogStore interface {
	// ListUIDs returns the UIDs of the pods that have logs or links.
	ListUIDs() (sets.Set[types.UID], error)
	// Remove removes the logs and the links of pods.
	Remove(ctx context.Context, uids sets.Set[types.UID]) error
	// ListDeadLinks returns the names of links to files that do not exist and cannot belong to a pod.
	ListDeadLinks() (sets.Set[string], error)
	RemoveDeadLink(name string) error
}

// A Collector removes the leftovers of pods that no longer exist.
type Collector struct {
	o Options
	// unknown and deadLinks are the unknown UIDs and the dead links of the last round. What is also in
	// the next round is removed.
	unknown   sets.Set[types.UID]
	deadLinks sets.Set[string]
	failures  map[string]string // text of the last error, by the subject of the message
}

// New returns a Collector. The caller must call Run.
func New(o Options) *Collector { return &Collector{o: o, failures: map[string]string{}} }

// Run removes leftovers until ctx is done.
func (c *Collector) Run(ctx context.Context) error {
	timer := time.NewTimer(confirmInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			timer.Reset(c.collect(ctx))
		}
	}
}

// collect makes one round, and returns the time until the next one.
func (c *Collector) collect(ctx context.Context) (next time.Duration) {
	found := c.find()
	unknown, err := c.o.UnknownUIDs(ctx, slices.DeleteFunc(sets.List(found.logs.Union(found.cgroups)), c.o.HasDir))
	if err != nil { // podd has not read every source or has not observed the runtime yet
		return confirmInterval
	}
	confirmed, confirmedLinks := sets.New(unknown...).Intersection(c.unknown), found.deadLinks.Intersection(c.deadLinks)
	c.unknown, c.deadLinks = sets.New(unknown...), found.deadLinks
	failed := c.removeCgroups(ctx, confirmed.Intersection(found.cgroups))
	c.removeLogs(ctx, confirmed.Intersection(found.logs).Difference(failed))
	for _, name := range sets.List(confirmedLinks) {
		c.report("dead link to a container's log", "link", name, c.o.Logs.RemoveDeadLink(name))
	}
	if len(c.unknown)+len(c.deadLinks) > 0 {
		return confirmInterval
	}
	clear(c.failures)
	return interval
}

// leftovers contains the UIDs of the pods that have logs and cgroups, and the names of dead links.
type leftovers struct {
	logs, cgroups sets.Set[types.UID]
	deadLinks     sets.Set[string]
}

// find returns the leftovers of all pods, known and unknown. It omits what it cannot list.
func (c *Collector) find() (found leftovers) {
	var errs [3]error
	found.logs, errs[0] = c.o.Logs.ListUIDs()
	found.deadLinks, errs[1] = c.o.Logs.ListDeadLinks()
	if c.o.ListCgroups != nil {
		found.cgroups, errs[2] = c.o.ListCgroups()
	}
	if err := errors.Join(errs[:]...); c.isNewFailure("list", err) {
		c.o.Log.Warn("listing the logs and cgroups of pods failed; trying again later", "err", err)
	}
	return found
}

// removeCgroups removes the cgroups of pods, and returns the pods for which that has failed. A cgroup with
// processes is removed in a later round, because RemoveCgroup does not wait until they have exited.
func (c *Collector) removeCgroups(ctx context.Context, uids sets.Set[types.UID]) (failed sets.Set[types.UID]) {
	failed = sets.New[types.UID]()
	for _, uid := range sets.List(uids) {
		if ctx.Err() != nil || c.o.HasDir(uid) { // a new pod may have the same UID
			failed.Insert(uid)
			continue
		}
		err := c.o.RemoveCgroup(ctx, uid)
		if err != nil {
			failed.Insert(uid)
		}
		c.report("cgroup of a pod that does not exist", "uid", string(uid), err)
	}
	return failed
}

// removeLogs removes the logs of pods and the links to these logs.
func (c *Collector) removeLogs(ctx context.Context, uids sets.Set[types.UID]) {
	uids = sets.New(slices.DeleteFunc(sets.List(uids), c.o.HasDir)...)
	if len(uids) == 0 || ctx.Err() != nil {
		return
	}
	err := c.o.Logs.Remove(ctx, uids)
	remaining, listErr := c.o.Logs.ListUIDs()
	if c.isNewFailure("logs", errors.Join(err, listErr)) {
		c.o.Log.Warn("removing the logs of pods that do not exist failed; trying again later", "err", errors.Join(err, listErr))
	}
	if listErr != nil {
		return
	}
	for _, uid := range sets.List(uids.Difference(remaining)) {
		c.o.Log.Info("removed the logs of a pod that does not exist", "uid", uid)
	}
}

// report logs that a subject was removed or, if err is not nil and new, that its removal has failed. key
// and value identify the subject.
func (c *Collector) report(subject, key, value string, err error) {
	switch {
	case err == nil:
		c.o.Log.Info("removed the "+subject, key, value)
	case c.isNewFailure(key+" "+value, err):
		c.o.Log.Warn("removing the "+subject+" failed; trying again later", key, value, "err", err)
	}
}

// isNewFailure reports whether err is an error that differs from the previous one of the same subject.
func (c *Collector) isNewFailure(subject string, err error) bool {
	if err == nil {
		delete(c.failures, subject)
		return false
	}
	isNew := c.failures[subject] != err.Error()
	c.failures[subject] = err.Error()
	return isNew
}
