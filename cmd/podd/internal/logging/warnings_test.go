package logging

import (
	"encoding/json"
	"strings"
	"testing"

	"podd/cmd/podd/internal/config"
	"podd/manifest"
)

// TestWriteWarnings checks that warnings about the configuration have the format of the log.
func TestWriteWarnings(t *testing.T) {
	warnings := []config.Warning{
		{Severity: manifest.Warning, FieldPath: "--adopt", Message: "ignored"},
		{Severity: manifest.Warning, Path: "k.yaml", Position: manifest.Position{Line: 3, Column: 1}, FieldPath: "maxPod", Message: "unknown field"},
	}
	var text, records strings.Builder
	WriteWarnings(&text, &config.Logging{LogFormat: "text"}, warnings)
	if want := "warning: --adopt: ignored\nk.yaml:3:1: warning: maxPod: unknown field\n"; text.String() != want {
		t.Errorf("format text: got %q, want %q", text.String(), want)
	}
	WriteWarnings(&records, &config.Logging{LogFormat: "json"}, warnings)
	type record struct{ Level, Msg, At, Problem string }
	want := []record{
		{"WARN", "configuration problem found", "", "--adopt: ignored"},
		{"WARN", "configuration problem found", "k.yaml:3:1", "maxPod: unknown field"},
	}
	lines := strings.Split(strings.TrimSpace(records.String()), "\n")
	for i, line := range lines {
		var got record
		if err := json.Unmarshal([]byte(line), &got); err != nil || len(lines) != len(want) || got != want[i] {
			t.Errorf("format json: got line %q, error %v; want the records %q", line, err, want)
		}
	}
}
