package logging

import (
	"log/slog"
	"strings"
	"testing"

	"podd/cmd/podd/internal/config"
)

// logAll writes a record of each level, with the name of the level as the message.
func logAll(log *slog.Logger) {
	log = log.With("pod", "a")
	log.Debug("debug")
	log.Info("info")
	log.Warn("warning")
	log.Error("error")
}

// messages returns the messages of logAll that a log contains, separated by spaces.
func messages(log string) string {
	var all []string
	for _, m := range []string{"debug", "info", "warning", "error"} {
		if strings.Contains(log, m+" pod=a") {
			all = append(all, m)
		}
	}
	return strings.Join(all, " ")
}

// TestNew_FileVerbosity checks which messages of this source file, log_test.go, are logged with general
// and file-specific verbosities.
func TestNew_FileVerbosity(t *testing.T) {
	for _, tt := range []struct {
		name      string
		verbosity int
		files     []config.FileVerbosity
		want      string
	}{
		{"no file has a verbosity", 0, nil, "warning error"},
		{"the name of the file matches", 0, []config.FileVerbosity{{Pattern: "log_test", Verbosity: 4}}, "debug info warning error"},
		{"a pattern matches", 0, []config.FileVerbosity{{Pattern: "log_*", Verbosity: 2}}, "info warning error"},
		{"the first match is used", 0, []config.FileVerbosity{{Pattern: "log*", Verbosity: 2}, {Pattern: "log_test", Verbosity: 4}}, "info warning error"},
		{"another file matches", 0, []config.FileVerbosity{{Pattern: "split", Verbosity: 4}}, "warning error"},
		{"a pattern with a slash matches the end of the path", 0, []config.FileVerbosity{{Pattern: "logging/log_*", Verbosity: 4}}, "debug info warning error"},
		{"a pattern with a slash matches another directory", 0, []config.FileVerbosity{{Pattern: "x/log_test", Verbosity: 4}}, "warning error"},
		{"a lower verbosity of a file has no effect", 4, []config.FileVerbosity{{Pattern: "log_test", Verbosity: 1}}, "debug info warning error"},
		{"a pattern is invalid", 0, []config.FileVerbosity{{Pattern: "[", Verbosity: 4}}, "warning error"},
	} {
		var out strings.Builder
		log, _ := New(Streams{Errors: &out}, &config.Logging{Verbosity: tt.verbosity, FileVerbosity: tt.files}, slog.LevelWarn)
		logAll(log)
		if got := messages(out.String()); got != tt.want {
			t.Errorf("%s: got messages %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestNew_SplitStream checks that warnings and errors are written to standard error, and other messages
// to standard output.
func TestNew_SplitStream(t *testing.T) {
	var info, errors strings.Builder
	log, level := New(Streams{Info: &info, Errors: &errors}, &config.Logging{}, slog.LevelInfo)
	logAll(log)
	if got := messages(info.String()); got != "info" {
		t.Errorf("standard output: got messages %q, want \"info\"", got)
	}
	if got := messages(errors.String()); got != "warning error" {
		t.Errorf("standard error: got messages %q, want \"warning error\"", got)
	}
	level.SetVerbosity(4)
	logAll(log)
	if got := messages(info.String()); got != "debug info" {
		t.Errorf("standard output after SetVerbosity: got messages %q, want \"debug info\"", got)
	}
}
