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

// TestFaultCallFails lets the first call of each kind fail, before and after the
// runtime has carried it out. The pod starts and ends all the same.
func TestFaultCallFails(t *testing.T) {
	t.Parallel()
	life.around(t, life.firstCalls(), testCallFails)
}

func testCallFails(t *testing.T, s faultStory, c call, at moment) {
	s.suffer(newDaemon(t, shared), c, fault{at: at, strike: func() bool { return true }})
}

// noStory has the methods of package runtime/cri that no story calls, with the reason.
var noStory = map[string]string{
	"CheckpointContainer": "it needs CRIU, which the runc of the tests is built without",
	"RemoveImage":         "no part of podd removes images",
}

// TestFaultStories_EveryMethod checks that podd calls the methods of each story, and that
// these are all methods that package runtime/cri calls.
func TestFaultStories_EveryMethod(t *testing.T) {
	t.Parallel()
	covered := slices.Collect(maps.Keys(noStory))
	for _, s := range faultStories {
		covered = append(covered, s.methods...)
	}
	slices.Sort(covered)
	if got, want := slices.Compact(covered), calledMethods(t); !slices.Equal(got, want) {
		t.Errorf("the stories and exceptions have %q, package runtime/cri calls %q", got, want)
	}
	for _, s := range faultStories {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			made := s.made(t)
			for _, m := range s.methods {
				if !slices.Contains(made, m) {
					t.Errorf("podd calls %q, not %s", made, m)
				}
			}
			for m, why := range noStory {
				if slices.Contains(made, m) {
					t.Errorf("podd calls %s, which is an exception because %s", m, why)
				}
			}
		})
	}
}

// callOfMethod matches a call of a CRI method by its generated client or by its full name.
var callOfMethod = regexp.MustCompile(`\bc\.(?:runtime|images)\.([A-Z]\w*)|Service_(\w+)_FullMethodName`)

// calledMethods returns the methods that the source of package runtime/cri calls, sorted.
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
