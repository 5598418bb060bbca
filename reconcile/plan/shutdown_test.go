package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// TestGroupOf checks that a pod belongs to the highest group that its priority reaches, else
// to the lowest group.
func TestGroupOf(t *testing.T) {
	groups := []ShutdownGroup{{Priority: -5}, {Priority: 0}, {Priority: 10}, {Priority: 2000000000}}
	for priority, want := range map[int32]int{-2000000000: 0, -6: 0, -5: 0, -1: 0, 0: 1, 9: 1, 10: 2, 1999999999: 2, 2000000000: 3, 2000001000: 3} {
		if got := groupOf(groups, priority); got != want {
			t.Errorf("priority %d: got group %d, want %d", priority, got, want)
		}
	}
}

func inGroup(name string, priority int32) ShutdownPod {
	return ShutdownPod{Key: types.NamespacedName{Name: name}, Priority: priority}
}

// TestNextTurn checks that groups are stopped one after the other. The turn of a group begins when
// the pods of the previous group have stopped, or when the grace period of that group has passed.
func TestNextTurn(t *testing.T) {
	groups := []ShutdownGroup{{0, 20 * time.Second}, {100, 0}, {1000, 10 * time.Second}}
	start := time.Now()
	turn := ShutdownProgress{}
	low, mid, high := inGroup("low", 0), inGroup("mid", 100), inGroup("high", 5000)
	for i, step := range []struct {
		at   time.Duration
		pods []ShutdownPod
		want string
	}{
		{0, []ShutdownPod{low, high}, "0: low 20s; wake 20s"},
		{5 * time.Second, []ShutdownPod{low, high}, "0: low 20s; wake 20s"},
		{6 * time.Second, []ShutdownPod{high}, "2: high 10s; wake 16s"},
		{7 * time.Second, []ShutdownPod{high, low}, "2: high 10s, low 20s; wake 16s"}, // low appeared after the turn of its group
		{16 * time.Second, []ShutdownPod{high}, "3: high 10s"},
		{17 * time.Second, nil, "3:"},
	} {
		var ends []ShutdownPod
		var wake time.Time
		turn, ends, wake = AdvanceShutdown(groups, turn, step.pods, start.Add(step.at))
		if got := formatProgress(turn, ends, wake, start); got != step.want {
			t.Errorf("step %d: got %q, want %q", i, got, step.want)
		}
	}
	// A group with a grace period of zero is also stopped in its turn.
	turn, ends, wake := AdvanceShutdown(groups, ShutdownProgress{}, []ShutdownPod{mid, high}, start)
	if got, want := formatProgress(turn, ends, wake, start), "1: mid 0s; wake 0s"; got != want {
		t.Errorf("group with a grace period of zero: got %q, want %q", got, want)
	}
	turn, ends, wake = AdvanceShutdown(groups, turn, []ShutdownPod{mid, high}, start.Add(time.Millisecond))
	if got, want := formatProgress(turn, ends, wake, start), "2: mid 0s, high 10s; wake 10.001s"; got != want {
		t.Errorf("group after the one with a grace period of zero: got %q, want %q", got, want)
	}
}

// formatProgress returns "G: NAME GRACE, …; wake TIME": the index of the current group, the pods to
// stop with their grace periods, and the wake time relative to start.
func formatProgress(turn ShutdownProgress, ends []ShutdownPod, wake, start time.Time) string {
	var names []string
	for _, p := range ends {
		names = append(names, fmt.Sprintf("%s %s", p.Key.Name, p.Grace))
	}
	text := strings.TrimSpace(fmt.Sprintf("%d: %s", turn.Group, strings.Join(names, ", ")))
	if !wake.IsZero() {
		text += "; wake " + wake.Sub(start).String()
	}
	return text
}

// TestNextTurn_Properties checks that turns only move forward and that no pod is stopped before the
// turn of its group. After the sum of the grace periods, all pods are stopped.
func TestNextTurn_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var groups []ShutdownGroup
		var sum time.Duration
		for i := range rapid.IntRange(1, 4).Draw(t, "groups") {
			grace := time.Duration(rapid.IntRange(0, 30).Draw(t, "grace")) * time.Second
			groups, sum = append(groups, ShutdownGroup{int32(i * 10), grace}), sum+grace
		}
		pods := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) ShutdownPod {
			return inGroup(rapid.StringMatching("[a-z]{3}").Draw(t, "name"), rapid.Int32Range(-10, 50).Draw(t, "priority"))
		}), 0, 6).Draw(t, "pods")
		now, turn := time.Now(), ShutdownProgress{}
		begin := now
		for now.Sub(begin) <= sum+time.Second {
			next, ends, wake := AdvanceShutdown(groups, turn, pods, now)
			if next.Group < turn.Group {
				t.Fatalf("turn after that of group %d: got group %d, want the same or a later group", turn.Group, next.Group)
			}
			for _, p := range pods {
				due := slices.ContainsFunc(ends, func(e ShutdownPod) bool { return e.Key == p.Key && e.Priority == p.Priority })
				if due != (groupOf(groups, p.Priority) <= next.Group) {
					t.Fatalf("pod %v: got stopped %v in the turn of group %d, want true exactly if the group of the pod is not later", p, due, next.Group)
				}
			}
			if turn = next; wake.IsZero() {
				break
			}
			now = wake.Add(time.Nanosecond)
			if len(pods) > 0 && rapid.Bool().Draw(t, "stopped") {
				pods = pods[1:]
			}
		}
		if turn.Group < len(groups) && len(pods) > 0 {
			t.Fatalf("after %s, the sum of the grace periods: got the turn of group %d, want that all %d groups had their turn", sum, turn.Group, len(groups))
		}
	})
}
