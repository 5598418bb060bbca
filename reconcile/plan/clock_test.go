package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"podd/manifest"
	"podd/runtime"
)

// probePatience is the longest time that all probes of a pod take to pass one after the other.
const probePatience = 20 * time.Minute

// TestClockJumps checks that jumps of the wall clock by ten years between the steps of a scenario
// lengthen no wait. They also change neither the containers nor the number of starts. They may change
// the order of starts, because a jump can end the back-off of a container early. For example, if
// all containers restart because one crashed, that one waits for its back-off unless a jump ends it.
func TestClockJumps(t *testing.T) {
	kinds := []string{"order", "order", "exit", "exit", "exit", "die", "remove", "pass", "restarts", "unknown", "restart"}
	rapid.Check(t, func(t *rapid.T) {
		pods := genPods(t)
		var ops []op
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			ops = append(ops, genOp(t, kinds))
		}
		jumps := rapid.SliceOfN(rapid.IntRange(0, 3), len(ops), len(ops)).Draw(t, "jumps")
		right, _ := replay(t, pods, ops, make([]int, len(ops)))
		wrong, log := replay(t, pods, ops, jumps)
		if right != wrong {
			t.Fatalf("final state with a clock that jumps: got\n%s\nwant the state with a correct clock\n%s\ndecisions with the clock that jumps:\n%s", wrong, right, log)
		}
	})
}

// replay returns the final state of a world after ops, and the decisions. After each step it calls
// settle.
func replay(t *rapid.T, pods []*manifest.Pod, ops []op, jumps []int) (state, log string) {
	w := newWorld()
	var decisions strings.Builder
	for i, o := range ops {
		happenings["jump"](w, op{m: jumps[i]}, nil)
		happenings[o.kind](w, o, pods)
		w.observe()
		before := w.in.Now
		fmt.Fprintf(&decisions, "%s\n", o)
		_, quiet := w.settle(time.Hour, func(d Decision) { fmt.Fprint(&decisions, d) }, func(Action) {})
		if waited := w.in.Now.Sub(before); !quiet || waited > longestWait+probePatience {
			t.Fatalf("time until no action remained: got %s, want at most %s\n%s", waited, longestWait+probePatience, decisions.String())
		}
	}
	return w.state(), decisions.String()
}

// state describes the sandboxes, containers, directories and numbers of starts, without times. The
// containers of a sandbox are sorted by name and attempt.
func (w *world) state() string {
	var b strings.Builder
	for _, inc := range w.machine {
		fmt.Fprintf(&b, "%s %s attempt %d ready %v\n", inc.UID, inc.Annotations[runtime.AnnotationPodHash], inc.Attempt, inc.Ready)
		for _, c := range slices.SortedFunc(slices.Values(inc.Containers), compareContainers) {
			fmt.Fprintf(&b, "  %s attempt %d %s %d\n", c.Name, c.Attempt, c.State, c.ExitCode)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.starts)) {
		fmt.Fprintf(&b, "%s started %d times\n", name, w.starts[name])
	}
	fmt.Fprintln(&b, w.in.PodDirs)
	return b.String()
}
