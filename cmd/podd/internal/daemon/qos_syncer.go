package daemon

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync/atomic"
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
// cgroup of all pods is limited to the resources that are not reserved. At intervals, a qosSyncer restores
// what other programs have changed; see render.PeriodicQOSCgroups.
type qosSyncer struct {
	o       qosOptions
	desired chan qosCgroups // capacity 1: the newest desired cgroups
	// reportedDriver is the cgroup driver that the runtime has reported, a string; empty until then.
	reportedDriver atomic.Value

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
	// ID returns an identifier of a cgroup that changes when the cgroup is removed or created again.
	ID       func(render.Cgroup) (string, error)
	OnResult func(error) // called when the result of a sync changes
	// OnWritten is called after each sync without an error, with the cgroup driver. It must not block.
	OnWritten func(driver string)
	// OnRequests is called when the sum of the requests of all pods changes.
	OnRequests func(render.QOSRequests)
	// OnInterval is called every qosInterval.
	OnInterval func()
	Log        *slog.Logger
}

// qosCgroups contains the desired cgroups, and the part of them that is set at intervals.
type qosCgroups struct{ all, periodic []render.Cgroup }

// qosInterval is the interval at which cgroups are restored. A kubelet uses the same interval.
const qosInterval = time.Minute

func newQOSSyncer(o qosOptions) *qosSyncer {
	return &qosSyncer{o: o, desired: make(chan qosCgroups, 1), node: o.Node, requestsByPod: map[types.NamespacedName]render.QOSRequests{}}
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
		k.reportedDriver.Store(c.Node.CgroupDriver)
	}
	k.isDriverKnown = k.isDriverKnown || c.Node.Ready
	if k.isDriverKnown && (!wasDriverKnown || k.total != previousTotal || k.node.CgroupDriver != previousDriver) {
		select {
		case <-k.desired: // discard older cgroups that run has not received
		default:
		}
		k.desired <- qosCgroups{all: render.QOSCgroups(k.node, k.total), periodic: render.PeriodicQOSCgroups(k.node, k.total)}
	}
}

// driver returns the cgroup driver in effect, "cgroupfs" or "systemd". Until the runtime has reported its
// driver, this is the configured one. driver may be called concurrently with all other methods.
func (k *qosSyncer) driver() string {
	if reported, ok := k.reportedDriver.Load().(string); ok {
		return reported
	}
	return k.o.Node.CgroupDriver
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

// run writes the cgroups until ctx is done, and restores them at intervals. It retries after a failure,
// and logs a failure only if it differs from the previous failure.
func (k *qosSyncer) run(ctx context.Context) error {
	var desired qosCgroups
	written, failures := map[string]writtenCgroup{}, 0
	lastResult := "not synced" // the last error; "" after a success
	retry, interval := time.NewTimer(0), time.NewTicker(qosInterval)
	defer retry.Stop()
	defer interval.Stop()
	<-retry.C
	for {
		select {
		case <-ctx.Done():
			return nil
		case desired = <-k.desired:
		case <-retry.C:
		case <-interval.C:
			if k.o.OnInterval != nil {
				k.o.OnInterval()
			}
			if len(desired.all) == 0 {
				continue // the cgroup driver is unknown, or pods have no cgroups
			}
			k.restore(desired, written)
		}
		err := k.write(desired.all, written)
		if err == nil {
			if lastResult != "" && k.o.OnResult != nil {
				k.o.OnResult(nil)
			}
			if k.o.OnWritten != nil && len(desired.all) > 0 {
				k.o.OnWritten(desired.all[0].Driver())
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

// A writtenCgroup is a cgroup whose limits are set.
type writtenCgroup struct {
	render.Cgroup
	id string // its identifier after the limits were set
}

// write sets the limits of each desired cgroup that differs from its entry in written, and then updates
// the entry.
func (k *qosSyncer) write(desired []render.Cgroup, written map[string]writtenCgroup) error {
	var errs []error
	for _, c := range desired {
		if reflect.DeepEqual(written[c.Path].Cgroup, c) {
			continue
		}
		err := k.o.SetLimits(c)
		var id string
		if err == nil {
			id, err = k.o.ID(c)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		written[c.Path] = writtenCgroup{c, id}
	}
	return errors.Join(errs...)
}

// restore sets the periodic limits of the desired cgroups. It removes a cgroup from written if write must
// set all of its limits again, because another program has removed the cgroup, or because a periodic
// limit could not be set.
func (k *qosSyncer) restore(desired qosCgroups, written map[string]writtenCgroup) {
	for _, c := range desired.all {
		if id, err := k.o.ID(c); err != nil || id != written[c.Path].id {
			delete(written, c.Path)
		}
	}
	for _, c := range desired.periodic {
		if _, isWritten := written[c.Path]; isWritten && k.o.SetLimits(c) != nil {
			delete(written, c.Path)
		}
	}
}
