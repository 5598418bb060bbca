package daemon

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/reconcile/event"
	"podd/reconcile/render"
)

// TestReservedEnforcer checks that the enforcer limits each reserved cgroup once, as soon as the cgroup
// driver is known. If a cgroup cannot be limited, the enforcer must return an error and must not limit
// the remaining cgroups.
func TestReservedEnforcer(t *testing.T) {
	cpu := v1.ResourceList{v1.ResourceCPU: resource.MustParse("500m")}
	cgroups := []render.ReservedCgroup{
		{Enforcement: "system-reserved", Path: "/system", Resources: cpu},
		{Enforcement: "kube-reserved-compressible", Path: "/kube", Resources: cpu, CompressibleOnly: true},
	}
	for name, tt := range map[string]struct {
		drivers []string // the arguments of the calls of begin
		failing string   // path of the cgroup for which SetLimits fails
		limited string   // paths of the cgroups that are passed to SetLimits
		events  string   // reasons and messages of the recorded events, one event per line
		err     string   // the error of run; "" if there is none
	}{
		"driver unknown": {},
		"cgroupfs": {
			drivers: []string{"cgroupfs", "cgroupfs", "systemd"}, limited: "/system /kube",
			events: "NodeAllocatableEnforced: Updated limits on system reserved cgroup /system\nNodeAllocatableEnforced: Updated limits on kube reserved cgroup /kube\n",
		},
		"systemd": {
			drivers: []string{"systemd"}, limited: "/system.slice /kube.slice",
			events: "NodeAllocatableEnforced: Updated limits on system reserved cgroup /system\nNodeAllocatableEnforced: Updated limits on kube reserved cgroup /kube\n",
		},
		"first cgroup fails": {
			drivers: []string{"cgroupfs"}, failing: "/system", limited: "/system",
			events: "FailedNodeAllocatableEnforcement: Failed to enforce System Reserved Cgroup Limits on \"/system\": no such cgroup\n",
			err:    "enforcing system-reserved: no such cgroup",
		},
		"second cgroup fails": {
			drivers: []string{"cgroupfs"}, failing: "/kube", limited: "/system /kube",
			events: "NodeAllocatableEnforced: Updated limits on system reserved cgroup /system\n" +
				"FailedNodeAllocatableEnforcement: Failed to enforce Kube Reserved Compressible Cgroup Limits on \"/kube\": no such cgroup\n",
			err: "enforcing kube-reserved-compressible: no such cgroup",
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var limited []string
			var events strings.Builder
			e := newReservedEnforcer(reservedOptions{
				Cgroups: cgroups,
				SetLimits: func(c render.Cgroup) error {
					limited = append(limited, c.Path)
					if c.Path == tt.failing {
						return errors.New("no such cgroup")
					}
					return nil
				},
				Record: func(all []event.Event) {
					for _, e := range all {
						events.WriteString(e.Reason + ": " + e.Message + "\n")
					}
				},
			})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- e.run(ctx) }()
			for _, driver := range tt.drivers {
				e.begin(driver)
				synctest.Wait()
			}
			cancel()
			err := <-done
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || err.Error() != tt.err) {
				t.Errorf("%s: got error %v, want %q", name, err, tt.err)
			}
			if got := strings.Join(limited, " "); got != tt.limited {
				t.Errorf("%s: got calls of SetLimits for the cgroups %q, want %q", name, got, tt.limited)
			}
			if events.String() != tt.events {
				t.Errorf("%s: got events\n%swant\n%s", name, events.String(), tt.events)
			}
		})
	}
}
