package daemon

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile"
	"podd/reconcile/render"
	"podd/reconcile/state"
	"podd/runtime"
)

// TestQOSSyncer checks which cgroups are written after each change.
func TestQOSSyncer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made []render.Cgroup
		fail := error(nil)
		var log strings.Builder
		var total render.QOSRequests
		var drivers []string
		node := render.Node{AllPodsLimit: render.Resources{MilliCPU: 2000, Memory: 1 << 30}}
		k := newQOSSyncer(qosOptions{
			Node: node,
			SetLimits: func(c render.Cgroup) error {
				made = append(made, c)
				return fail
			},
			OnWritten:  func(driver string) { drivers = append(drivers, driver) },
			OnRequests: func(sum render.QOSRequests) { total = sum },
			Log:        slog.New(slog.NewTextHandler(&log, nil)),
		})
		ctx, cancel := context.WithCancel(t.Context())
		go k.run(ctx)
		defer cancel()

		report := func(name, cpu string, phase v1.PodPhase) *state.Report {
			pod := &v1.Pod{Status: v1.PodStatus{Phase: phase}}
			pod.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)},
			}}}
			return &state.Report{Key: types.NamespacedName{Name: name}, Pod: pod, ExistsOnNode: true}
		}
		ready := runtime.Node{Ready: true, CgroupDriver: "cgroupfs"}
		step := func(name string, c reconcile.Change, want ...string) {
			t.Helper()
			made = nil
			k.recordChange(c)
			synctest.Wait()
			var got []string
			for _, c := range made {
				got = append(got, c.Path)
			}
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%s: got cgroups %v, want %v", name, got, want)
			}
		}
		const all, burstable, besteffort = "/kubepods", "/kubepods/burstable", "/kubepods/besteffort"
		step("runtime not ready", reconcile.Change{Reports: []*state.Report{report("a", "250m", v1.PodRunning)}})
		step("runtime ready", reconcile.Change{Node: ready}, all, burstable, besteffort)
		if len(drivers) != 1 || drivers[0] != "cgroupfs" {
			t.Errorf("runtime ready: got drivers %v, want cgroupfs once", drivers)
		}
		if made[0].Memory != 1<<30 || made[0].CPUShares != 2048 || made[1].CPUShares != 256 || made[2].CPUShares != 2 {
			t.Errorf("runtime ready: got cgroups %+v, want the memory limit and the shares 2048, 256 and 2", made)
		}
		step("pod added", reconcile.Change{Node: ready, Reports: []*state.Report{report("b", "500m", v1.PodPending)}}, burstable)
		if made[0].CPUShares != 768 {
			t.Errorf("two pods: got %d CPU shares, want 768", made[0].CPUShares)
		}
		if total.BurstableMilliCPU != 750 {
			t.Errorf("two pods: got requests %+v, want 750m of cpu", total)
		}
		waiting := report("c", "1", v1.PodPending)
		waiting.ExistsOnNode = false
		step("pod not admitted", reconcile.Change{Node: ready, Reports: []*state.Report{waiting}})
		step("no change", reconcile.Change{Node: ready, Reports: []*state.Report{report("b", "500m", v1.PodRunning)}})
		fail = errors.New("no cgroups")
		step("pod finished, with an error", reconcile.Change{Node: ready, Reports: []*state.Report{report("b", "500m", v1.PodSucceeded)}}, burstable)
		fail = nil
		step("pod deleted", reconcile.Change{Node: ready, Removed: []types.NamespacedName{{Name: "a"}}}, burstable)
		if made[0].CPUShares != 2 {
			t.Errorf("no pods: got %d CPU shares, want 2", made[0].CPUShares)
		}
		if total != (render.QOSRequests{}) {
			t.Errorf("no pods: got requests %+v, want none", total)
		}
		step("other cgroup driver", reconcile.Change{Node: runtime.Node{Ready: true, CgroupDriver: "systemd"}},
			"/kubepods.slice", "/kubepods.slice/kubepods-burstable.slice", "/kubepods.slice/kubepods-besteffort.slice")
		if n := strings.Count(log.String(), "no cgroups"); n != 1 {
			t.Errorf("got the error %d times, want once: %s", n, log.String())
		}
		cancel()
		synctest.Wait()
	})
}
