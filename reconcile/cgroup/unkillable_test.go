package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

func TestParseStat(t *testing.T) {
	tests := []struct {
		text, command string
		state         byte
	}{
		{"7 (date) D 1 7 7 0 -1", "date", 'D'},
		{"7 (a) D (b)) S 1 7 7", "a) D (b)", 'S'},
		{"7 () Z 1", "", 'Z'},
		{"7 (date)", "", 0},
		{"7 )(", "", 0},
		{"", "", 0},
	}
	for _, tt := range tests {
		if command, state := parseStat([]byte(tt.text)); command != tt.command || state != tt.state {
			t.Errorf("parseStat(%q): got command %q, state %q; want command %q, state %q", tt.text, command, state, tt.command, tt.state)
		}
	}
}

func TestUninterruptible(t *testing.T) {
	dir := t.TempDir()
	write := func(thread, text string) {
		t.Helper()
		at := filepath.Join(dir, "task", thread)
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, "stat"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("7", "7 (writer) Z 1")
	if command, is := findUninterruptible(dir); is {
		t.Errorf("a zombie: got %q, want no thread in an uninterruptible wait", command)
	}
	write("8", "8 (flush) D 1")
	if command, is := findUninterruptible(dir); !is || command != "flush" {
		t.Errorf("a thread of state D: got command %q, uninterruptible: %t; want command \"flush\", uninterruptible: true", command, is)
	}
	if command, is := findUninterruptible(filepath.Join(dir, "absent")); is {
		t.Errorf("a process that has exited: got %q, want no thread", command)
	}
}
