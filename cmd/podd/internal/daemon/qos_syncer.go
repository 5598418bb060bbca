package daemon

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/reconcile/state"
)

// A qosSyncer sets the limits of the cgroups that contain the cgroups of pods. It computes the CPU
// shares and the memory protection of a QoS class from the requests of the pods in this class. The
// cgroup of all pods is limited to the resources that are not reserved.
type qosSyncer struct {
	o       qosOptions
	cgroups chan []render.Cgroup // capacity 1: the newest desired cgroups

	// The following fields belong to the goroutine that calls recordChange.
	node          render.Node
	isDriverKnown bool // the runtime has reported its cgroup driver
	requestsByPod map[types.NamespacedName]render.QOSRequests
	total         render.QOSRequests // sum of requestsByPod
}

// qosOptions are the options of a qosSyncer. All but the callbacks are required.
type qosOptions struct {
	Node      render.Node
	SetLimits func(render.Cgroup) error // sets the limits of a cgroup; creates the cgroup if it does not exist
	OnResult  func(error)               // called when the result of a sync changes
	// OnWritten is called after each sync without an error, with the cgroup driver. It must not block.
	OnWritten func(driver string)
	// OnRequests is called when the sum of the requests of all pods changes.
	OnRequests func(render.QOSRequests)
	Log        *slog.Logger
}

func newQOSSyncer(o qosOptions) *qosSyncer {
	return &qosSyncer{o: o, cgroups: make(chan []render.Cgroup, 1), node: o.Node, requestsByPod: map[types.NamespacedName]render.QOSRequests{}}
}

// recordChange records the pods of a change. It does not block. Only one goroutine may call it.
func (k *qosSyncer) recordChange(c reconcile.Change) {
	previousTotal, previousDriver, wasDriverKnown := k.total, k.node.CgroupDriver, k.isDriverKnown
	for _, r := range c.Removed {
		k.setRequests(r.Key, render.QOSRequests{})
	}
	for _, r := range c.Reports {
		if r.Pod != nil {
			k.setRequests(r.Key, podRequests(r))
		}
	}
	if k.total != previousTotal && k.o.OnRequests != nil {
		k.o.OnRequests(k.total)
	}
	if c.Node.CgroupDriver != "" {
		k.node.CgroupDriver = c.Node.CgroupDriver
	}
	k.isDriverKnown = k.isDriverKnown || c.Node.Ready
	if k.isDriverKnown && (!wasDriverKnown || k.total != previousTotal || k.node.CgroupDriver != previousDriver) {
		select {
		case <-k.cgroups: // discard older cgroups that run has not received
		default:
		}
		k.cgroups <- render.QOSCgroups(k.node, k.total)
	}
}

// setRequests sets the requests of a pod. The zero value removes them.
func (k *qosSyncer) setRequests(key types.NamespacedName, requests render.QOSRequests) {
	k.total = k.total.Sub(k.requestsByPod[key]).Add(requests)
	if k.requestsByPod[key] = requests; requests == (render.QOSRequests{}) {
		delete(k.requestsByPod, key)
	}
}

// podRequests returns the requests of the running version of a pod. They are zero if the pod has
// finished or does not exist on the node, for example because it is not admitted.
func podRequests(r *state.Report) render.QOSRequests {
	if !r.ExistsOnNode || manifest.IsTerminal(r.Pod.Status.Phase) {
		return render.QOSRequests{}
	}
	if len(r.ReservedVersions) > 0 {
		return render.NewQOSRequests(r.ReservedVersions[0].Object)
	}
	return render.NewQOSRequests(r.Pod)
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
			if k.o.OnWritten != nil && len(desired) > 0 {
				k.o.OnWritten(desired[0].Driver())
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
