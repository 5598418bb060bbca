package reconcile_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/reconcile/plan"
	"podd/runtime/runtimetest"
)

// addPodd returns another podd on the runtime of m, with its own root directory.
func (m *machine) addPodd() *machine {
	other := newMachineWithRuntime(m.t, m.Runtime)
	other.instance = "other-" + instance
	return other
}

// runningIn returns the number of running containers of all pods with this name.
func (m *machine) runningIn(name string) (n int) {
	for _, c := range m.Containers() {
		if strings.HasPrefix(c, "default/"+name) && strings.Contains(strings.ToLower(c), "running") {
			n++
		}
	}
	return n
}

// TestConcurrentInstances checks that containers are started once if two instances of podd
// create the same pod at the same time.
func TestConcurrentInstances(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testTwoStartTogether(t, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func testTwoStartTogether(t *testing.T, r *rand.Rand) {
	a := newMachine(t)
	b := a.addPodd()
	defer a.finish()
	defer b.finish()
	upTo := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }
	for n := range 12 { // the delay differs for each sandbox
		a.Inject(runtimetest.Fault{Method: "RunPodSandbox", Nth: n + 1, Delay: upTo(20 * time.Second), IgnoresCancel: true})
	}
	one, two := pod(t, "web", web), pod(t, "web", web)
	if r.IntN(2) == 0 { // the second pod is from another file
		two = podAt(t, "web", web, source+"/b.yaml")
	}
	a.start()
	b.start()
	a.setPods(one)
	b.advance(upTo(12 * time.Second))
	b.setPods(two)
	killed := r.IntN(3) == 0
	for range 600 {
		a.advance(500 * time.Millisecond)
		if n := a.runningIn("web"); n > 1 {
			t.Fatalf("running containers of the pod: got %d, want at most one:\n%s", n, strings.Join(slices.Concat(a.Sandboxes(), a.Containers()), "\n"))
		}
		if killed && a.runningIn("web") == 0 && r.IntN(10) == 0 {
			killed = false
			a.kill()
			a.start()
		}
	}
	if n := a.runningIn("web"); n != 1 {
		t.Fatalf("running containers of the pod: got %d, want 1\n%s\n%s", n, a.state(), b.state())
	}
	rules := []plan.RuleID{a.rule("web"), b.rule("web")}
	slices.Sort(rules)
	if want := []plan.RuleID{plan.RuleNameInUse, plan.RuleRun}; !slices.Equal(rules, want) {
		t.Errorf("rules of the last decisions of the two podds, sorted: got %q, want %q", rules, want)
	}
}

// podAt returns a pod of another file, so that the pod has another UID.
func podAt(t *testing.T, name, spec, path string) *manifest.Pod {
	t.Helper()
	text := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {%s}\n", name, spec)
	file := decode.File([]byte(text), decode.Options{Source: source, Path: path})
	if len(file.Pods) != 1 {
		t.Fatalf("decoded pods: got %d, want one: %v", len(file.Pods), file.Problems)
	}
	return file.Pods[0]
}
