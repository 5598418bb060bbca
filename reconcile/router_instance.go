package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"podd/reconcile/plan"
	"podd/runtime"
)

// instanceCheckInterval is the shortest interval between two checks of other instances. The
// interval is limited because a check reads the open files of all processes, and the runtime may be
// listed every second.
const instanceCheckInterval = time.Minute

// instanceChecks contains the state of the checks of other instances.
type instanceChecks struct {
	inactive   []string // the last logged instances that have running pods but no podd, with the pods
	isChecking bool     // whether a goroutine of checkInstances is running
	nextCheck  time.Time
}

// checkInstances logs the running pods of the instances that no podd runs. s must contain all pods
// of the runtime. Another goroutine checks which instances run, because the check is slow. There is
// at most one such goroutine.
func (r *Router) checkInstances(ctx context.Context, s runtime.Snapshot) {
	now := time.Now()
	if r.o.RunningInstances == nil || r.instances.isChecking || now.Before(r.instances.nextCheck) {
		return
	}
	pods := findForeignPods(s)
	if len(pods) == 0 && len(r.instances.inactive) == 0 {
		return
	}
	r.instances.isChecking, r.instances.nextCheck = true, now.Add(instanceCheckInterval)
	r.workers.Go(func() {
		running, err := r.o.RunningInstances()
		maps.DeleteFunc(pods, func(id string, _ []string) bool { return err != nil || running[id] != 0 })
		// Ignore the error: r.call fails only if podd is stopping.
		_ = r.call(ctx, func() error {
			r.instances.isChecking = false
			r.logInactiveInstances(pods)
			return nil
		})
	})
}

// findForeignPods returns the names of the running pods of other instances, by the ID of the
// instance. It ignores sandboxes with a label that does not have the form of an instance ID.
func findForeignPods(s runtime.Snapshot) map[string][]string {
	pods := map[string][]string{}
	for key, p := range s.Pods {
		if p == nil {
			continue
		}
		for i := range p.Incarnations {
			inc := &p.Incarnations[i]
			if id := inc.Labels[runtime.LabelInstance]; inc.Foreign && plan.IsLive(inc) && isInstanceID(id) && !slices.Contains(pods[id], key.String()) {
				pods[id] = append(pods[id], key.String())
			}
		}
	}
	return pods
}

// logInactiveInstances logs the running pods of instances that no podd runs, once for each instance
// and set of pods. The pods are not a Problem of this node, because the podd of such an instance
// may start again.
func (r *Router) logInactiveInstances(pods map[string][]string) {
	var inactive []string
	for _, id := range slices.Sorted(maps.Keys(pods)) {
		names := slices.Sorted(slices.Values(pods[id]))
		list := strings.Join(names[:min(len(names), maxNamesInMessage)], ", ")
		if n := len(names) - maxNamesInMessage; n > 0 {
			list += fmt.Sprintf(" and %d more", n)
		}
		description := id + " " + list
		inactive = append(inactive, description)
		if !slices.Contains(r.instances.inactive, description) {
			r.o.Log.Warn("no podd runs the instance of these pods; if its root directory is lost, take them over with --adopt-instance="+id, "instance", id, "pods", list)
		}
	}
	r.instances.inactive = inactive
}
