package daemon

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/reconcile/state"
)

// A qosSyncer sets the limits of the cgroups that contain the cgroups of pods. It computes the CPU
// shares of a QoS class from the requests of the pods in this class. The cgroup of all pods is
// limited to the resources that are not reserved.
type qosSyncer struct {
	o       qosOptions
	cgroups chan []render.Cgroup // capacity 1: the newest desired cgroups

	// The following fields belong to the goroutine that calls recordChange.
	node          render.Node
	isDriverKnown bool // the runtime has reported its cgroup driver
	milliCPUByPod map[types.NamespacedName]int64
	totalMilliCPU int64 // sum of requests, in millicores
}

// qosOptions are the options of a qosSyncer. All but OnResult are required.
type qosOptions struct {
	Node      render.Node
	SetLimits func(render.Cgroup) error // sets the limits of a cgroup; creates the cgroup if it does not exist
	OnResult  func(error)               // called when the result of a sync changes
	Log       *slog.Logger
}

func newQOSSyncer(o qosOptions) *qosSyncer {
	return &qosSyncer{o: o, cgroups: make(chan []render.Cgroup, 1), node: o.Node, milliCPUByPod: map[types.NamespacedName]int64{}}
}

// recordChange records the pods of a change. It does not block. Only one goroutine may call it.
func (k *qosSyncer) recordChange(c reconcile.Change) {
	before, driver, wasReady := k.totalMilliCPU, k.node.CgroupDriver, k.isDriverKnown
	for _, key := range c.Removed {
		k.setRequest(key, 0)
	}
	for _, r := range c.Reports {
		if r.Pod != nil {
			k.setRequest(r.Key, podCPURequest(r))
		}
	}
	if c.Node.CgroupDriver != "" {
		k.node.CgroupDriver = c.Node.CgroupDriver
	}
	k.isDriverKnown = k.isDriverKnown || c.Node.Ready
	if k.isDriverKnown && (!wasReady || k.totalMilliCPU != before || k.node.CgroupDriver != driver) {
		select {
		case <-k.cgroups: // replaced by newer cgroups
		default:
		}
		k.cgroups <- render.QOSCgroups(k.node, k.totalMilliCPU)
	}
}

// setRequest sets the CPU request of a pod. 0 removes the request.
func (k *qosSyncer) setRequest(key types.NamespacedName, milli int64) {
	k.totalMilliCPU += milli - k.milliCPUByPod[key]
	if k.milliCPUByPod[key] = milli; milli == 0 {
		delete(k.milliCPUByPod, key)
	}
}

// podCPURequest returns the CPU request of the running version of a pod, in millicores, or 0 if
// the pod has finished.
func podCPURequest(r *state.Report) int64 {
	if r.Pod.Status.Phase == v1.PodSucceeded || r.Pod.Status.Phase == v1.PodFailed {
		return 0
	}
	if len(r.ReservedVersions) > 0 {
		return render.BurstableCPURequest(r.ReservedVersions[0].Object)
	}
	return render.BurstableCPURequest(r.Pod)
}

// run writes the cgroups until ctx is done. It retries after a failure, and logs a failure only
// if it differs from the previous failure.
func (k *qosSyncer) run(ctx context.Context) error {
	var desired []render.Cgroup
	writtenCgroups, failures := map[string]render.Cgroup{}, 0
	lastResult := "not synced" // the last error; "" after a success
	retry := time.NewTimer(0)
	defer retry.Stop()
	<-retry.C
	for {
		select {
		case <-ctx.Done():
			return nil
		case desired = <-k.cgroups:
		case <-retry.C:
		}
		err := k.write(desired, writtenCgroups)
		if err == nil {
			if lastResult != "" && k.o.OnResult != nil {
				k.o.OnResult(nil)
			}
			lastResult, failures = "", 0
			retry.Stop()
			continue
		}
		if err.Error() != lastResult {
			lastResult = err.Error()
			k.o.Log.Warn("setting the limits of pod cgroups failed; retrying", "err", err)
			if k.o.OnResult != nil {
				k.o.OnResult(err)
			}
		}
		failures++
		retry.Reset(plan.RetryDelay(failures))
	}
}

// write sets the limits of each desired cgroup that differs from its entry in writtenCgroups, and
// then updates the entry.
func (k *qosSyncer) write(desired []render.Cgroup, writtenCgroups map[string]render.Cgroup) error {
	var errs []error
	for _, c := range desired {
		if reflect.DeepEqual(writtenCgroups[c.Path], c) {
			continue
		}
		if err := k.o.SetLimits(c); err != nil {
			errs = append(errs, err)
			continue
		}
		writtenCgroups[c.Path] = c
	}
	return errors.Join(errs...)
}
