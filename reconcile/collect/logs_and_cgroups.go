package collect

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"podd/manifest"
	"podd/reconcile/cgroup"
	"podd/runtime/logs"
	"podd/runtime/shim"
)

// LogsAndCgroups manages the logs, the links to logs and the cgroups of pods. Its methods may be
// called concurrently.
type LogsAndCgroups struct {
	Logs Logs
	// CgroupRoot is the parent cgroup of kubepods; "" means the top of the hierarchy.
	CgroupRoot string
	// OnCgroupRemoved is called after each attempt to remove an existing cgroup of a pod, with the
	// duration of the attempt. It may be nil.
	OnCgroupRemoved func(duration time.Duration)
}

// podLogDir returns the log directory of a pod.
func (l LogsAndCgroups) podLogDir(pod *manifest.Pod) string {
	return logs.Dir(l.Logs.Dir, pod.Key, pod.UID)
}

// NextAttempts returns the attempt numbers with which a pod's containers are started next, by
// container name. The result omits containers without logs. The numbers are needed if the runtime
// no longer lists the exited containers.
func (l LogsAndCgroups) NextAttempts(pod *manifest.Pod) (map[string]uint32, error) {
	attempts := map[string]uint32{}
	var errs []error
	for _, list := range [][]v1.Container{pod.Object.Spec.InitContainers, pod.Object.Spec.Containers} {
		for i := range list {
			n, err := lowestFreeAttempt(l.podLogDir(pod), list[i].Name)
			errs = append(errs, err)
			if n > 0 {
				attempts[list[i].Name] = n
			}
		}
	}
	return attempts, errors.Join(errs...)
}

// HandleStart creates the link to the log of a started container for log agents. It keeps the logs
// of the previous attempt and of all attempts from oldest on, and removes the logs and links of all
// earlier attempts.
func (l LogsAndCgroups) HandleStart(pod *manifest.Pod, container, id string, attempt, oldest uint32) error {
	path := filepath.Join(l.podLogDir(pod), container, fmt.Sprintf("%d.log", attempt))
	_, err := l.Logs.Link(path, pod.Key, container, id)
	if attempt < 2 {
		return err
	}
	hasRemoved, rerr := removeOldAttempts(l.podLogDir(pod), container, attempt, oldest)
	if hasRemoved {
		uid := sets.New(pod.UID)
		rerr = errors.Join(rerr, l.Logs.sweep(context.Background(), uid, uid).join())
	}
	return errors.Join(err, rerr)
}

// Remove removes the logs, links and cgroups of a removed pod. It returns nil if there is nothing to
// remove. If processes remain in the cgroups, it returns the error of RemoveCgroup.
func (l LogsAndCgroups) Remove(ctx context.Context, _ types.NamespacedName, uid types.UID) error {
	return errors.Join(l.Logs.removeShared(ctx, uid), l.RemoveCgroup(ctx, uid))
}

// RemoveCgroup removes the cgroups of a pod that has no running container. It kills processes that remain
// in the cgroups, because the runtime can no longer stop them: their containers have exited, or the
// runtime does not list them any more. In this case it returns an error, and the caller can call it
// again after the processes have exited. It returns nil if the pod has no cgroup.
func (l LogsAndCgroups) RemoveCgroup(ctx context.Context, uid types.UID) error {
	start := time.Now()
	found, err := cgroup.RemovePod(ctx, l.CgroupRoot, uid, shim.KillOrphan)
	if found && l.OnCgroupRemoved != nil {
		l.OnCgroupRemoved(time.Since(start))
	}
	return err
}
