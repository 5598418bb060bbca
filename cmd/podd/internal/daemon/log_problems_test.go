package daemon

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"podd/cmd/podd/internal/logging"
	"podd/manifest"
)

// TestLogProblems checks that a problem is logged each time it appears. When all errors of
// a file are corrected, that is logged once, unless the file was deleted.
func TestLogProblems(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(logging.NewLineHandler(&out, slog.LevelInfo))
	typo := manifest.Problem{Severity: manifest.Warning, Path: "a.yaml", Position: manifest.Position{Line: 4, Column: 2}, FieldPath: "spec.imagee", Message: "unknown field"}
	broken := manifest.Problem{Severity: manifest.Error, Path: "b.yaml", Message: "not YAML"}
	var before []manifest.Problem
	moved := broken
	moved.Position.Line = 9
	files := []manifest.FileState{{Path: "a.yaml"}, {Path: "b.yaml"}}
	for _, now := range [][]manifest.Problem{{typo}, {typo}, {broken, typo}, {moved}, {}, {}, {broken}} {
		logProblems(log, now, before, files)
		before = now
	}
	logProblems(log, nil, before, files[:1])
	var got []string
	for line := range strings.Lines(out.String()) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		got = append(got, rest)
	}
	want := `WARN manifest problem found at=a.yaml:4:2 problem="spec.imagee: unknown field"|ERROR manifest problem found at=b.yaml problem="not YAML"|ERROR manifest problem found at=b.yaml:9 problem="not YAML"|all errors in a manifest were corrected file=b.yaml|ERROR manifest problem found at=b.yaml problem="not YAML"`
	if strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", strings.Join(got, "|"), want)
	}
}
