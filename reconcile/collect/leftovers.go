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
	"podd/runtime/shim"
)

// Leftovers are what pods leave outside of their directories: logs, links to
// them, and cgroups. Methods may be called concurrently.
type Leftovers struct {
	Logs Logs
	// CgroupRoot is the cgroup that kubepods lies in; "" means the top.
	CgroupRoot string
	// CgroupRemoved is told how long removing a pod's took; nil: nobody is.
	CgroupRemoved func(took time.Duration)
}

// podLogs is the log directory of a pod.
func (l Leftovers) podLogs(pod *manifest.Pod) string {
	return filepath.Join(l.Logs.Dir, pod.Key.Namespace+"_"+pod.Key.Name+"_"+string(pod.UID))
}

// NextAttempts has NextAttempt for each container of a pod that has logs.
func (l Leftovers) NextAttempts(pod *manifest.Pod) (map[string]uint32, error) {
	next := map[string]uint32{}
	var failed []error
	for _, list := range [][]v1.Container{pod.Spec.Spec.InitContainers, pod.Spec.Spec.Containers} {
		for i := range list {
			n, err := NextAttempt(l.podLogs(pod), list[i].Name)
			failed = append(failed, err)
			if n > 0 {
				next[list[i].Name] = n
			}
		}
	}
	return next, errors.Join(failed...)
}

// Started links the log of a started container where agents look for it, and
// removes the logs, with their links, of all attempts before the previous one.
func (l Leftovers) Started(pod *manifest.Pod, container, id string, attempt uint32) error {
	path := filepath.Join(l.podLogs(pod), container, fmt.Sprintf("%d.log", attempt))
	_, err := l.Logs.Link(path, pod.Key, container, id)
	if attempt < 2 {
		return err
	}
	removed, rerr := RemoveBefore(l.podLogs(pod), container, attempt-1)
	if removed {
		uid := sets.New(pod.UID)
		rerr = errors.Join(rerr, l.Logs.Sweep(context.Background(), uid, uid))
	}
	return errors.Join(err, rerr)
}

// Remove removes the logs, links and cgroups of a pod that is gone, and ends
// what the runtime left running in them; what is gone already is nil. A *cgroup.BusyError passes when its processes have
// ended.
func (l Leftovers) Remove(ctx context.Context, _ types.NamespacedName, uid types.UID) error {
	err, began := l.Logs.Remove(ctx, uid), time.Now()
	err = errors.Join(err, cgroup.RemovePod(ctx, l.CgroupRoot, uid, shim.EndOrphan))
	if l.CgroupRemoved != nil {
		l.CgroupRemoved(time.Since(began))
	}
	return err
}
