package reconcile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/runtime"
	"podd/runtime/runtimetest"
)

// TestOldSnapshots checks that an older observation, delivered at any moment, never starts
// or stops anything.
func TestOldSnapshots(t *testing.T) {
	versions := func(name string) []*manifest.Pod {
		return []*manifest.Pod{
			nil, pod(t, name, web), pod(t, name, "terminationGracePeriodSeconds: 3\n"+web),
			pod(t, name, `restartPolicy: OnFailure
initContainers: [{name: init, image: "init:1", command: [sh, -c, "exit 0"]}]
containers: [{name: app, image: "job:1", command: [sh, -c, "sleep 1.7; exit 0"]}]`),
		}
	}
	all := [][]*manifest.Pod{versions("a"), versions("b")}
	rapid.Check(t, func(rt *rapid.T) {
		type step struct {
			want  []int
			after time.Duration
			old   []int
		}
		var steps []step
		for range rapid.IntRange(1, 6).Draw(rt, "steps") {
			steps = append(steps, step{
				want:  rapid.SliceOfN(rapid.IntRange(0, 3), 2, 2).Draw(rt, "want"),
				after: time.Duration(rapid.SampledFrom([]int{0, 1, 2, 5, 50, 3000}).Draw(rt, "ms")) * time.Millisecond,
				old:   rapid.SliceOfN(rapid.IntRange(0, 1000), 0, 4).Draw(rt, "old"),
			})
		}
		failure := ""
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(t)
			m.keepSnapshots = true
			m.watchStarts(&failure, 0)
			m.start()
			defer m.finish()
			for _, s := range steps {
				var pods []*manifest.Pod
				for i, v := range s.want {
					if p := all[i][v]; p != nil {
						pods = append(pods, p)
					}
				}
				m.setPods(pods...)
				m.advance(s.after)
				for _, n := range s.old {
					m.deliver(n)
					m.advance(s.after / 3)
				}
			}
			m.advance(time.Minute)
			m.checkEnd(&failure)
		})
		if failure != "" {
			rt.Fatal(failure)
		}
	})
}

// deliver passes an earlier snapshot of the observer to the router.
func (m *machine) deliver(n int) {
	m.mu.Lock()
	var s runtime.Snapshot
	if len(m.snapshots) > 0 {
		s = m.snapshots[n%len(m.snapshots)]
	}
	m.mu.Unlock()
	if s.Pods != nil {
		d := m.current()
		send(d.ctx, d.snapshots, s)
	}
}

// checkEnd checks that there is one sandbox for each desired pod that has not finished, and no
// other sandbox.
func (m *machine) checkEnd(failure *string) {
	sandboxes := map[string]int{}
	for _, line := range m.Sandboxes() {
		name, _, _ := strings.Cut(line, " ")
		sandboxes[name]++
	}
	for key := range m.set.Pods {
		if n := sandboxes[key.String()]; n != 1 && m.report(key.Name).Decision.Phase != plan.PhaseCleanedUp {
			*failure = fmt.Sprintf("sandboxes of %s: got %d, want one\n%s", key, n, m.state())
		}
		delete(sandboxes, key.String())
	}
	if len(sandboxes) > 0 {
		*failure = fmt.Sprintf("sandboxes of pods that are not desired: got %v, want none\n%s", sandboxes, m.state())
	}
}

// watchStarts writes a message to failure if a container is started while another container with the
// same name runs. The runtime delays its response to each start by slightly more than answer.
func (m *machine) watchStarts(failure *string, answer time.Duration) {
	m.Inject(runtimetest.Fault{Method: "StartContainer", AfterEffect: true, Delay: answer + 1, OnApply: func() {
		running := map[string]bool{}
		for _, line := range m.Containers() {
			name, _, _ := strings.Cut(line, " ")
			if !strings.HasSuffix(line, " running") {
				continue
			}
			if running[name] {
				*failure = fmt.Sprintf("running containers with the name %s: got two, want at most one\n%s", name, m.state())
			}
			running[name] = true
		}
	}})
}

// TestSlowObserver checks that nothing is started twice if every observation is delayed. The delay is
// shorter or longer than an effect takes.
func TestSlowObserver(t *testing.T) {
	versions := []*manifest.Pod{nil, pod(t, "a", web), pod(t, "a", "terminationGracePeriodSeconds: 3\n"+web), pod(t, "a", "terminationGracePeriodSeconds: 0\n"+web)}
	ms := []int{0, 1, 2, 5, 50, 700, 3000}
	rapid.Check(t, func(rt *rapid.T) {
		late := time.Duration(rapid.SampledFrom(ms).Draw(rt, "late")) * time.Millisecond
		slow := time.Duration(rapid.SampledFrom(ms).Draw(rt, "slow")) * time.Millisecond
		afterwards := rapid.Bool().Draw(rt, "afterwards")
		steps := rapid.SliceOfN(rapid.IntRange(0, len(versions)-1), 1, 8).Draw(rt, "wants")
		waits := rapid.SliceOfN(rapid.SampledFrom(ms), len(steps), len(steps)).Draw(rt, "waits")
		failure := ""
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(t)
			m.Inject(runtimetest.Fault{Method: "ListPodSandbox", AfterEffect: true, Delay: late + time.Millisecond})
			m.watchStarts(&failure, slow)
			for _, method := range []string{"RunPodSandbox", "CreateContainer", "StopPodSandbox", "ContainerStatus"} {
				m.Inject(runtimetest.Fault{Method: method, AfterEffect: afterwards, Delay: slow + time.Millisecond})
			}
			m.start()
			defer m.finish()
			for i, v := range steps {
				if p := versions[v]; p != nil {
					m.setPods(p)
				} else {
					m.setPods()
				}
				m.advance(time.Duration(waits[i]) * time.Millisecond)
			}
			m.advance(5 * time.Minute)
			want := []string{"default/a/app 0 running"}
			if steps[len(steps)-1] == 0 {
				want = nil
			}
			if got := m.Containers(); !slices.EqualFunc(got, want, func(a, b string) bool { return strings.HasSuffix(a, " running") }) || len(m.Sandboxes()) != len(want) {
				failure = fmt.Sprintf("in the end: got sandboxes %v and containers %v, want a sandbox and containers %v\n%s", m.Sandboxes(), got, want, m.state())
			}
		})
		if failure != "" {
			rt.Fatal(failure)
		}
	})
}
