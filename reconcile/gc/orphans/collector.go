// Package orphans removes what pods that no longer exist have left on a node that podd manages alone: log
// directories, links to logs, and cgroups with their processes. Such leftovers exist if the node agent
// was killed or replaced while it removed a pod, or if the runtime has lost its state.
//
// The rules are those of the kubelet (kuberuntime_gc.go, evictPodLogsDirectories, and kubelet_pods.go,
// cleanupOrphanedPodCgroups), with two differences. First, a pod must be unknown twice, because another
// program may create the logs or the cgroup of a pod shortly before it creates the sandbox. Second, while
// the pod has a directory, which may contain mounted volumes, all its leftovers are kept. The kubelet
// then keeps only the cgroup, and reduces its CPU shares.
//
// In each round, the runtime is queried before anything of an unknown pod is removed. podd's last observation
// of the runtime is not sufficient, because it may be older than the logs and the cgroup of a new pod.
package orphans

import (
	"context"
	"errors"
	"fmt"
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
	// listTimeout limits the duration of ListPods, so that its result is recent.
	listTimeout = 10 * time.Second
)

// Options are the options of a Collector. All fields are required unless their comment says otherwise.
type Options struct {
	// UnknownUIDs returns the UIDs in uids that belong to no pod. It returns an error if it cannot
	// determine this yet.
	UnknownUIDs func(ctx context.Context, uids []types.UID) ([]types.UID, error)
	// ListPods returns the UIDs of all pods that have a sandbox or a container in the runtime. It must
	// query the runtime, because the pods that UnknownUIDs knows may be out of date.
	ListPods func(ctx context.Context) (sets.Set[types.UID], error)
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
	failures  map[string]string // text of the last error, by the operation and its arguments
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
	unknown, err := c.unknownUIDs(ctx, slices.DeleteFunc(sets.List(found.logs.Union(found.cgroups)), c.o.HasDir))
	if err != nil { // for example because podd has not read every source yet
		return confirmInterval
	}
	confirmed, confirmedLinks := unknown.Intersection(c.unknown), found.deadLinks.Intersection(c.deadLinks)
	c.unknown, c.deadLinks = unknown, found.deadLinks
	failed := c.removeCgroups(ctx, confirmed.Intersection(found.cgroups))
	if found.err == nil { // otherwise a pod may have a cgroup that is not in found.cgroups
		c.removeLogs(ctx, confirmed.Intersection(found.logs).Difference(failed))
	}
	for _, name := range sets.List(confirmedLinks) {
		c.report("dead link to a container's log", "link", name, c.o.Logs.RemoveDeadLink(name))
	}
	if len(c.unknown)+len(c.deadLinks) > 0 {
		return confirmInterval
	}
	if found.err == nil {
		clear(c.failures)
	}
	return interval
}

// unknownUIDs returns the UIDs in uids that belong to no pod, neither according to UnknownUIDs nor in the
// runtime.
func (c *Collector) unknownUIDs(ctx context.Context, uids []types.UID) (sets.Set[types.UID], error) {
	unknown, err := c.o.UnknownUIDs(ctx, uids)
	if err != nil || len(unknown) == 0 {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	pods, err := c.o.ListPods(bounded)
	if ctx.Err() == nil {
		c.logFailure(err, "listing the pods in the runtime")
	}
	return sets.New(unknown...).Difference(pods), err
}

// leftovers contains the UIDs of the pods that have logs and cgroups, and the names of dead links. If err
// is not nil, listing them has failed and some may be missing.
type leftovers struct {
	logs, cgroups sets.Set[types.UID]
	deadLinks     sets.Set[string]
	err           error
}

// find returns the leftovers of all pods, known and unknown. It omits what it cannot list.
func (c *Collector) find() (found leftovers) {
	var errs [3]error
	found.logs, errs[0] = c.o.Logs.ListUIDs()
	found.deadLinks, errs[1] = c.o.Logs.ListDeadLinks()
	if c.o.ListCgroups != nil {
		found.cgroups, errs[2] = c.o.ListCgroups()
	}
	found.err = errors.Join(errs[:]...)
	c.logFailure(found.err, "listing the logs and cgroups of pods")
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
	c.logFailure(errors.Join(err, listErr), "removing the logs of pods that do not exist")
	if listErr != nil {
		return
	}
	for _, uid := range sets.List(uids.Difference(remaining)) {
		c.o.Log.Info("removed the logs of a pod that does not exist", "uid", uid)
	}
}

// report logs that a subject was removed or, if err is not nil, that its removal has failed. key and value
// identify the subject.
func (c *Collector) report(subject, key, value string, err error) {
	if err == nil {
		c.o.Log.Info("removed the "+subject, key, value)
	}
	c.logFailure(err, "removing the "+subject, key, value)
}

// logFailure logs that an operation has failed, unless err is nil or was already logged for the same operation
// and args.
func (c *Collector) logFailure(err error, operation string, args ...any) {
	key := fmt.Sprint(operation, args)
	if err == nil {
		delete(c.failures, key)
	} else if text := err.Error(); c.failures[key] != text {
		c.failures[key] = text
		c.o.Log.With(args...).Warn(operation+" failed; trying again later", "err", err)
	}
}
