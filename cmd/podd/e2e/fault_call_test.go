//go:build e2e

package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestFaultCallFails makes the first call of each method fail, once before and once after the runtime
// has executed the call. podd must retry, so that the pod starts and stops nevertheless.
func TestFaultCallFails(t *testing.T) {
	t.Parallel()
	lifeScenario.runAroundCalls(t, lifeScenario.firstCalls(), testCallFails)
}

func testCallFails(t *testing.T, s faultScenario, c call, at moment) {
	s.runWithFault(newDaemon(t, shared), c, fault{at: at, apply: func() bool { return true }})
}

// noScenario contains the methods of package runtime/cri that no scenario calls, with the
// reason.
var noScenario = map[string]string{
	"CheckpointContainer": "it needs CRIU, and the runc of the tests is built without it",
	"RemoveImage":         "podd removes images only if they are damaged or the disk is full",
	"UpdateRuntimeConfig": "podd calls it only if a pod CIDR is set, and TestNodeObserver_PodCIDR makes it fail",
}

// TestFaultScenarios_EveryMethod checks that podd calls all methods of each scenario. It also
// checks that the scenarios cover all methods that package runtime/cri calls.
func TestFaultScenarios_EveryMethod(t *testing.T) {
	t.Parallel()
	covered := slices.Collect(maps.Keys(noScenario))
	for _, s := range faultScenarios {
		covered = append(covered, s.methods...)
	}
	slices.Sort(covered)
	if got, want := slices.Compact(covered), calledMethods(t); !slices.Equal(got, want) {
		t.Errorf("methods of the scenarios and of noScenario: got %q, want the methods that package runtime/cri calls, %q", got, want)
	}
	for _, s := range faultScenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			called := s.calledMethods(t)
			for _, m := range s.methods {
				if !slices.Contains(called, m) {
					t.Errorf("methods that podd calls in the scenario: got %q, want %s among them", called, m)
				}
			}
			for m, why := range noScenario {
				if slices.Contains(called, m) {
					t.Errorf("methods that podd calls in the scenario: got %s, want none; noScenario says: %s", m, why)
				}
			}
		})
	}
}

// callOfMethod matches a call of a CRI method by its generated client or by its full name.
var callOfMethod = regexp.MustCompile(`\bc\.(?:runtime|images)\.([A-Z]\w*)|Service_(\w+)_FullMethodName`)

// calledMethods returns the CRI methods that package runtime/cri calls, sorted.
func calledMethods(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../../runtime/cri/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("package runtime/cri has no files: %v", err)
	}
	var all []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range callOfMethod.FindAllStringSubmatch(string(text), -1) {
			all = append(all, m[1]+m[2])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
