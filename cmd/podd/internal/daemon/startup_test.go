package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"podd/cmd/podd/internal/check"
)

// newStartup returns a startup with one failed check, and the number of times that the checks were
// made.
func newStartup(runDir string) (s *startup, made *int) {
	made = new(int)
	return &startup{runDir: runDir, check: func(context.Context) check.Report {
		*made++
		return check.Report{Outcome: check.Failed, Checks: []check.Result{
			{Check: "clock", Outcome: check.Warning, Problems: []check.Problem{{Outcome: check.Warning, Cause: "late", Remedy: "wait"}}},
			{Check: "ports", Outcome: check.Failed, Problems: []check.Problem{{Outcome: check.Failed, Cause: "in use by \x1b[31m", Remedy: "stop it"}}},
		}}
	}}, made
}

var errStart = errors.New("listening failed")

const explained = "listening failed\nfailed checks of this host (\"podd check\" repeats the checks):\n  ports: in use by \\x1b[31m; stop it"

// TestStartup checks that each new process makes the checks only for a new error.
func TestStartup(t *testing.T) {
	runDir := filepath.Join(t.TempDir(), "run")
	path := filepath.Join(runDir, startErrorFileName)
	for _, step := range []struct {
		name  string
		after func(s *startup) // called before the start fails; may be nil
		err   error
		want  string
		made  int
	}{
		{"first failure", nil, errStart, explained, 1},
		{"same failure", nil, errStart, "listening failed", 0},
		{"same failure again", nil, errStart, "listening failed", 0},
		{"other failure", nil, errors.New("locking failed"), "locking failed" + explained[len("listening failed"):], 1},
		{"first failure again", nil, errStart, explained, 1},
		{"same failure much later", func(*startup) { setAge(t, path, repeatedStartWindow) }, errStart, explained, 1},
		{"same failure after the clock went back", func(*startup) { setAge(t, path, -time.Hour) }, errStart, explained, 1},
		{"failure after a successful start", func(s *startup) { s.succeed(slog.New(slog.DiscardHandler)) }, errStart, "listening failed", 0},
		{"failure of the start after a successful start", nil, errStart, explained, 1},
	} {
		s, made := newStartup(runDir) // a new process
		if step.after != nil {
			step.after(s)
		}
		err := s.explain(t.Context(), step.err)
		if err.Error() != step.want || !errors.Is(err, step.err) || *made != step.made {
			t.Errorf("%s: got %q after %d checks, want %q after %d", step.name, err, *made, step.want, step.made)
		}
	}
}

// setAge sets the modification time of a file.
func setAge(t *testing.T, path string, age time.Duration) {
	t.Helper()
	at := time.Now().Add(-age)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// TestStartup_NoChecks checks that podd makes no checks if it was stopped or did not fail.
func TestStartup_NoChecks(t *testing.T) {
	s, made := newStartup(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.explain(ctx, errStart); err != errStart {
		t.Errorf("stopped: got %v, want %v", err, errStart)
	}
	if err := s.explain(t.Context(), nil); err != nil || *made != 0 {
		t.Errorf("without an error: got %v and %d checks, want none", err, *made)
	}
}

// TestStartup_InvalidRunDir checks that podd makes the checks if it cannot store the error.
func TestStartup_InvalidRunDir(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s, made := newStartup(file)
		if err := s.explain(t.Context(), errStart); err.Error() != explained || *made != 1 {
			t.Errorf("got %q after %d checks, want %q after 1", err, *made, explained)
		}
	}
}
