package daemon

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/event"
	"podd/reconcile/render"
)

// A reservedEnforcer limits the cgroups for which the node reserves resources. It does this once,
// after podd has created the cgroups of QoS classes, for two reasons. First, the paths depend on the
// cgroup driver, which may be unknown before. Second, with cgroup v2, only then are all controllers,
// such as hugetlb, enabled in the cgroups next to kubepods.
type reservedEnforcer struct {
	o       reservedOptions
	drivers chan string // capacity 1; receives the cgroup driver
}

// reservedOptions are the options of a reservedEnforcer. SetLimits and Record are required.
type reservedOptions struct {
	Cgroups   []render.ReservedCgroup
	Node      render.Node
	SetLimits func(render.Cgroup) error // sets the limits of an existing cgroup
	Record    func([]event.Event)
}

func newReservedEnforcer(o reservedOptions) *reservedEnforcer {
	return &reservedEnforcer{o: o, drivers: make(chan string, 1)}
}

// begin makes run limit the cgroups with this cgroup driver. Later calls have no effect. begin does not
// block.
func (e *reservedEnforcer) begin(driver string) {
	select {
	case e.drivers <- driver:
	default: // the driver is already known
	}
}

// run limits the cgroups and then waits until ctx is done. If a cgroup cannot be limited, run returns
// an error, so that podd stops, as the kubelet does. Without the configured limit, the processes in the
// cgroup could use the resources of pods.
func (e *reservedEnforcer) run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case driver := <-e.drivers:
		on := e.o.Node
		on.CgroupDriver = driver
		for _, r := range e.o.Cgroups {
			err := e.o.SetLimits(r.Limits(on))
			e.o.Record([]event.Event{reservedEvent(r, err, time.Now())})
			if err != nil {
				return fmt.Errorf("enforcing %s: %w", r.Enforcement, err)
			}
		}
	}
	<-ctx.Done()
	return nil
}

// reservedEvent returns the event for limiting a cgroup. err is the result. The messages are those of
// the kubelet.
func reservedEvent(r render.ReservedCgroup, err error, at time.Time) event.Event {
	owner, _, _ := strings.Cut(r.Enforcement, "-")
	if err == nil {
		return event.NewNodeEvent(v1.EventTypeNormal, "NodeAllocatableEnforced", fmt.Sprintf("Updated limits on %s reserved cgroup %s", owner, r.Path), at)
	}
	kind := strings.ToUpper(owner[:1]) + owner[1:] + " Reserved"
	if r.CompressibleOnly {
		kind += " Compressible"
	}
	return event.NewNodeEvent(v1.EventTypeWarning, "FailedNodeAllocatableEnforcement", fmt.Sprintf("Failed to enforce %s Cgroup Limits on %q: %v", kind, r.Path, err), at)
}
