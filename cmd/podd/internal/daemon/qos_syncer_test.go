package daemon

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"podd/reconcile"
	"podd/reconcile/render"
	"podd/reconcile/state"
	"podd/runtime"
)

// TestQOSSyncer checks for which cgroups the syncer sets limits after each change of the pods or the
// runtime, and with which CPU shares.
func TestQOSSyncer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limited []render.Cgroup // the arguments of SetLimits in the current step
		var limitErr error          // the result of SetLimits
		var log strings.Builder
		var total render.QOSRequests // the argument of the last call of OnRequests
		var drivers []string         // the arguments of all calls of OnWritten
		node := render.Node{AllPodsLimit: render.Resources{MilliCPU: 2000, Memory: 1 << 30}}
		k := newQOSSyncer(qosOptions{
			Node: node,
			SetLimits: func(c render.Cgroup) error {
				limited = append(limited, c)
				return limitErr
			},
			ID:         func(render.Cgroup) (string, error) { return "", nil },
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
			limited = nil
			k.recordChange(c)
			synctest.Wait()
			var got []string
			for _, c := range limited {
				got = append(got, c.Path)
			}
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%s: got calls of SetLimits for the cgroups %v, want %v", name, got, want)
			}
		}
		const all, burstable, besteffort = "/kubepods", "/kubepods/burstable", "/kubepods/besteffort"
		step("runtime not ready", reconcile.Change{Reports: []*state.Report{report("a", "250m", v1.PodRunning)}})
		step("runtime ready", reconcile.Change{Node: ready}, all, burstable, besteffort)
		if len(drivers) != 1 || drivers[0] != "cgroupfs" {
			t.Errorf("runtime ready: got calls of OnWritten with %q, want one with \"cgroupfs\"", drivers)
		}
		if limited[0].Memory != 1<<30 {
			t.Errorf("runtime ready: got memory limit %d of %s, want %d", limited[0].Memory, all, 1<<30)
		}
		if limited[0].CPUShares != 2048 || limited[1].CPUShares != 256 || limited[2].CPUShares != 2 {
			t.Errorf("runtime ready: got cgroups %+v, want the CPU shares 2048, 256 and 2", limited)
		}
		step("pod added", reconcile.Change{Node: ready, Reports: []*state.Report{report("b", "500m", v1.PodPending)}}, burstable)
		if limited[0].CPUShares != 768 {
			t.Errorf("two pods: got %d CPU shares of %s, want 768", limited[0].CPUShares, burstable)
		}
		if total.BurstableMilliCPU != 750 {
			t.Errorf("two pods: got sum of requests %+v, want BurstableMilliCPU 750", total)
		}
		waiting := report("c", "1", v1.PodPending)
		waiting.ExistsOnNode = false
		step("pod not admitted", reconcile.Change{Node: ready, Reports: []*state.Report{waiting}})
		step("pod running with the same requests", reconcile.Change{Node: ready, Reports: []*state.Report{report("b", "500m", v1.PodRunning)}})
		limitErr = errors.New("no cgroups")
		step("pod finished, SetLimits fails", reconcile.Change{Node: ready, Reports: []*state.Report{report("b", "500m", v1.PodSucceeded)}}, burstable)
		limitErr = nil
		step("last pod deleted", reconcile.Change{Node: ready, Removed: []*state.Report{report("a", "1", v1.PodSucceeded)}}, burstable)
		if limited[0].CPUShares != 2 {
			t.Errorf("no pods: got %d CPU shares of %s, want 2", limited[0].CPUShares, burstable)
		}
		if total != (render.QOSRequests{}) {
			t.Errorf("no pods: got sum of requests %+v, want zero", total)
		}
		step("cgroup driver changed", reconcile.Change{Node: runtime.Node{Ready: true, CgroupDriver: "systemd"}},
			"/kubepods.slice", "/kubepods.slice/kubepods-burstable.slice", "/kubepods.slice/kubepods-besteffort.slice")
		if n := strings.Count(log.String(), "no cgroups"); n != 1 {
			t.Errorf("got %d log lines with \"no cgroups\", want 1:\n%s", n, log.String())
		}
		cancel()
		synctest.Wait()
	})
}

// TestQOSSyncer_Restore checks which limits the syncer sets each minute if no pod changes.
func TestQOSSyncer_Restore(t *testing.T) {
	const all, burstable, besteffort = "/kubepods", "/kubepods/burstable", "/kubepods/besteffort"
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex                   // guards the following variables
		var limited []string                // the cgroups that were passed to SetLimits in the current step
		var failing string                  // the cgroup for which SetLimits fails
		ids := map[string]string{}          // changed by a step
		results := []error{}                // the arguments of all calls of OnResult
		memory := map[string]int64{all: -1} // the memory limits that were last set
		intervals := 0                      // number of calls of OnInterval
		k := newQOSSyncer(qosOptions{
			Node: render.Node{AllPodsLimit: render.Resources{MilliCPU: 2000, Memory: 1 << 30}},
			SetLimits: func(c render.Cgroup) error {
				mu.Lock()
				defer mu.Unlock()
				limited = append(limited, c.Path)
				memory[c.Path] = c.Memory
				if c.Path == failing {
					return errors.New("no cgroups")
				}
				return nil
			},
			ID: func(c render.Cgroup) (string, error) {
				mu.Lock()
				defer mu.Unlock()
				return ids[c.Path], nil
			},
			OnResult: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				results = append(results, err)
			},
			OnInterval: func() {
				mu.Lock()
				defer mu.Unlock()
				intervals++
			},
			Log: slog.New(slog.DiscardHandler),
		})
		ctx, cancel := context.WithCancel(t.Context())
		go k.run(ctx)
		step := func(name string, after time.Duration, want ...string) {
			t.Helper()
			limited = nil
			mu.Unlock()
			time.Sleep(after)
			synctest.Wait()
			mu.Lock() // until the next step
			if !slices.Equal(limited, want) {
				t.Errorf("%s: got calls of SetLimits for the cgroups %v, want %v", name, limited, want)
			}
		}
		mu.Lock()
		step("runtime not ready", 2*time.Minute+time.Second)
		if len(results) > 0 {
			t.Errorf("runtime not ready: got results %v, want none", results)
		}
		if intervals != 2 {
			t.Errorf("runtime not ready for two minutes: got %d calls of OnInterval, want 2", intervals)
		}
		k.recordChange(reconcile.Change{Node: runtime.Node{Ready: true, CgroupDriver: "cgroupfs"}})
		step("runtime ready", 0, all, burstable, besteffort)
		step("within a minute", 58*time.Second)
		step("after a minute", time.Second, burstable, besteffort)
		ids[all], memory[all] = "new", 0
		step("all pods removed and created again", time.Minute, burstable, besteffort, all)
		if memory[all] != 1<<30 {
			t.Errorf("all pods removed and created again: got memory limit %d, want %d", memory[all], 1<<30)
		}
		ids[burstable] = "new"
		step("class removed and created again", time.Minute, besteffort, burstable)
		failing = burstable
		step("class cannot be limited", time.Minute, burstable, besteffort, burstable)
		failing = ""
		step("retry", 30*time.Second, burstable)
		step("after the retry", 30*time.Second, burstable, besteffort)
		if len(results) != 3 || results[0] != nil || results[1] == nil || results[2] != nil {
			t.Errorf("got results %v, want a success, a failure and a success", results)
		}
		mu.Unlock()
		cancel()
		synctest.Wait()
	})
}
