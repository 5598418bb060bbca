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

// probePatience is what the probes of a pod may take to pass, one after the other.
const probePatience = 20 * time.Minute

// TestClockJumps: the same story, once by a clock that is right and once by one
// that jumps by ten years back and forth between any two steps, ends the same:
// as many starts, the same containers, no wait longer.
func TestClockJumps(t *testing.T) {
	kinds := []string{"want", "want", "exit", "exit", "exit", "die", "remove", "pass", "restarts", "unknown", "restart"}
	rapid.Check(t, func(t *rapid.T) {
		pods := genPods(t)
		var ops []op
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			ops = append(ops, genOp(t, kinds))
		}
		jumps := rapid.SliceOfN(rapid.IntRange(0, 3), len(ops), len(ops)).Draw(t, "jumps")
		right, _ := relive(t, pods, ops, make([]int, len(ops)))
		wrong, story := relive(t, pods, ops, jumps)
		if right != wrong {
			t.Fatalf("by a right clock:\n%s\nby one that jumps:\n%s\n%s", right, wrong, story)
		}
	})
}

// relive is one life of a world; it settles after each step.
func relive(t *rapid.T, pods []*manifest.Pod, ops []op, jumps []int) (end, story string) {
	w := newWorld()
	var told strings.Builder
	for i, o := range ops {
		happenings["jump"](w, op{m: jumps[i]}, nil)
		happenings[o.kind](w, o, pods)
		w.observe()
		before := w.in.Now
		fmt.Fprintf(&told, "%s\n", o)
		_, quiet := w.settle(time.Hour, func(d Decision) { fmt.Fprint(&told, d) }, func(Action) {})
		if waited := w.in.Now.Sub(before); !quiet || waited > longestWait+probePatience {
			t.Fatalf("waited %s\n%s", waited, told.String())
		}
	}
	return w.outcome(), told.String()
}

// outcome is what there is, and what it took, without any time.
func (w *world) outcome() string {
	var b strings.Builder
	for _, inc := range w.machine {
		fmt.Fprintf(&b, "%s %s attempt %d ready %v\n", inc.UID, inc.Annotations[runtime.AnnotationHash], inc.Attempt, inc.Ready)
		for _, c := range inc.Containers {
			fmt.Fprintf(&b, "  %s attempt %d %s %d\n", c.Name, c.Attempt, c.State, c.ExitCode)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.starts)) {
		fmt.Fprintf(&b, "%s started %d times\n", name, w.starts[name])
	}
	fmt.Fprintln(&b, w.in.Dirs)
	return b.String()
}
