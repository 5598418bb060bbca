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

// newStartup returns a startup whose report has one warning and one failed check. It also returns the
// number of reports that the startup has requested.
func newStartup(runDir string) (s *startup, reports *int) {
	reports = new(int)
	return &startup{runDir: runDir, check: func(context.Context) check.Report {
		*reports++
		return check.Report{Outcome: check.Failed, Checks: []check.Result{
			{Check: "clock", Outcome: check.Warning, Problems: []check.Problem{{Outcome: check.Warning, Cause: "late", Remedy: "wait"}}},
			{Check: "ports", Outcome: check.Failed, Problems: []check.Problem{{Outcome: check.Failed, Cause: "in use by \x1b[31m", Remedy: "stop it"}}},
		}}
	}}, reports
}

var errStart = errors.New("listening failed")

// explained is the message for errStart with the failed check of newStartup. It does not contain the
// warning. The escape character in the cause is escaped.
const explained = "listening failed\nfailed checks of this host (\"podd check\" repeats the checks):\n  ports: in use by \\x1b[31m; stop it"

// TestStartup checks when podd checks the host. podd must check the host if podd fails to start, unless
// the previous process has recently failed with the same error. If podd fails after its start, it must
// not check the host. Each step is a new process.
func TestStartup(t *testing.T) {
	runDir := filepath.Join(t.TempDir(), "run")
	path := filepath.Join(runDir, startErrorFileName)
	for _, step := range []struct {
		name    string
		prepare func(s *startup) // called before the process fails; may be nil
		err     error            // the error of the process
		want    string           // the message that explain returns
		reports int              // how often the process checks the host
	}{
		{"first failure", nil, errStart, explained, 1},
		{"same failure", nil, errStart, "listening failed", 0},
		{"same failure again", nil, errStart, "listening failed", 0},
		{"other failure", nil, errors.New("locking failed"), "locking failed" + explained[len("listening failed"):], 1},
		{"first failure again", nil, errStart, explained, 1},
		{"same failure much later", func(*startup) { setAge(t, path, repeatedStartWindow) }, errStart, explained, 1},
		{"same failure after the clock went back", func(*startup) { setAge(t, path, -time.Hour) }, errStart, explained, 1},
		{"failure of a process that had started", func(s *startup) { s.succeed(slog.New(slog.DiscardHandler)) }, errStart, "listening failed", 0},
		{"first failure after a successful start", nil, errStart, explained, 1},
	} {
		s, reports := newStartup(runDir)
		if step.prepare != nil {
			step.prepare(s)
		}
		err := s.explain(t.Context(), step.err)
		if err.Error() != step.want || !errors.Is(err, step.err) {
			t.Errorf("%s: got error %q, want %q", step.name, err, step.want)
		}
		if *reports != step.reports {
			t.Errorf("%s: host checked %d times, want %d", step.name, *reports, step.reports)
		}
	}
}

// setAge sets the modification time of a file to now minus age.
func setAge(t *testing.T, path string, age time.Duration) {
	t.Helper()
	at := time.Now().Add(-age)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// TestStartup_NoChecks checks that podd does not check the host if podd was stopped or did not fail.
func TestStartup_NoChecks(t *testing.T) {
	s, reports := newStartup(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.explain(ctx, errStart); err != errStart {
		t.Errorf("stopped: got error %v, want %v", err, errStart)
	}
	if err := s.explain(t.Context(), nil); err != nil {
		t.Errorf("without an error: got error %v, want none", err)
	}
	if *reports != 0 {
		t.Errorf("host checked %d times, want 0", *reports)
	}
}

// TestStartup_InvalidRunDir checks that podd checks the host after each failure if it cannot store the
// error in the run directory.
func TestStartup_InvalidRunDir(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s, reports := newStartup(file)
		if err := s.explain(t.Context(), errStart); err.Error() != explained || *reports != 1 {
			t.Errorf("got error %q, %d checks of the host; want error %q, 1 check", err, *reports, explained)
		}
	}
}
