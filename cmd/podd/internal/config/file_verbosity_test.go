package config

import "testing"

func TestFileVerbosity_Matches(t *testing.T) {
	for _, c := range []struct {
		pattern, file string
		want          bool
	}{
		{"next", "podd/reconcile/plan/next.go", true},
		{"ne*", "podd/reconcile/plan/next.go", true},
		{"next.go", "podd/reconcile/plan/next.go", false},
		{"plan", "podd/reconcile/plan/next.go", false},
		{"plan/next", "podd/reconcile/plan/next.go", true},
		{"plan/*", "podd/reconcile/plan/next.go", true},
		{"lan/next", "podd/reconcile/plan/next.go", false},
		{"reconcile/*", "podd/reconcile/plan/next.go", false},
		{"reconcile/*/*", "podd/reconcile/plan/next.go", true},
		{"podd/reconcile/plan/next", "podd/reconcile/plan/next.go", true},
		{"x/podd/reconcile/plan/next", "podd/reconcile/plan/next.go", false},
		{"/next", "/next.go", true},
		{"next", "next.go", true},
		{"[", "next.go", false},
	} {
		if got := (FileVerbosity{Pattern: c.pattern}).Matches(c.file); got != c.want {
			t.Errorf("pattern %q matches %s: got %t, want %t", c.pattern, c.file, got, c.want)
		}
	}
}

// TestFileVerbosity_MatchesAnyFile checks that a pattern can match each source file of this program, also
// the files whose functions are at the beginning and at the end of the code in the binary.
func TestFileVerbosity_MatchesAnyFile(t *testing.T) {
	for pattern, want := range map[string]bool{
		"file_verbosity": true, "internal/config/load": true, "manifest/*": true, "runtime/proc": true, "load_tests": false, "manifest/load": false,
	} {
		if got := (FileVerbosity{Pattern: pattern}).matchesAnyFile(); got != want {
			t.Errorf("pattern %q matches a file of this program: got %t, want %t", pattern, got, want)
		}
	}
}
