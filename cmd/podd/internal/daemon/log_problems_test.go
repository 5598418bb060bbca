package daemon

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podd/cmd/podd/internal/logging"
	"podd/manifest"
)

// TestLogProblems checks that a problem is logged once when it appears, and again when it moves to
// another line. The correction or removal of a file with errors must also be logged once.
func TestLogProblems(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(logging.NewLineHandler(&out, slog.LevelInfo))
	typo := manifest.Problem{Severity: manifest.Warning, Path: "a.yaml", Position: manifest.Position{Line: 4, Column: 2}, FieldPath: "spec.imagee", Message: "unknown field"}
	broken := manifest.Problem{Severity: manifest.Error, Path: "b.yaml", Message: "not YAML"}
	unreadable := manifest.Problem{Severity: manifest.Error, Path: "/etc/podd", Message: "not a directory"}
	moved := broken
	moved.Position.Line = 9
	a, b := manifest.FileState{Path: "a.yaml"}, manifest.FileState{Path: "b.yaml"}
	missing := manifest.FileState{Path: "b.yaml", IsMissing: true}
	both := []manifest.FileState{a, b}
	var previous fileReport
	for _, current := range []fileReport{
		{[]manifest.Problem{typo}, both},
		{[]manifest.Problem{typo}, both}, // unchanged, so nothing is logged
		{[]manifest.Problem{broken, typo}, both},
		{[]manifest.Problem{moved}, both}, // the end of a warning is not logged
		{nil, both},
		{[]manifest.Problem{broken}, both},
		{nil, []manifest.FileState{a, missing}},
		{nil, []manifest.FileState{a}}, // the removal has already been logged
		{[]manifest.Problem{moved, unreadable}, both},
		{nil, []manifest.FileState{a}},
	} {
		logProblems(log, current, previous)
		previous = current
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		got = append(got, rest)
	}
	want := []string{
		`WARN manifest problem found at=a.yaml:4:2 problem="spec.imagee: unknown field"`,
		`ERROR manifest problem found at=b.yaml problem="not YAML"`,
		`ERROR manifest problem found at=b.yaml:9 problem="not YAML"`,
		`all errors in a manifest were corrected file=b.yaml`,
		`ERROR manifest problem found at=b.yaml problem="not YAML"`,
		`a manifest with errors was removed file=b.yaml`,
		`ERROR manifest problem found at=b.yaml:9 problem="not YAML"`,
		`ERROR manifest problem found at=/etc/podd problem="not a directory"`,
		`a manifest with errors was removed file=b.yaml`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}
