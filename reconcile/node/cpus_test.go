package node

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestOnlineCPUs checks the format of the CPUs that are online, for this host.
func TestOnlineCPUs(t *testing.T) {
	text, err := os.ReadFile(onlineCPUsPath)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := OnlineCPUs(); err != nil || got != strings.TrimSpace(string(text)) {
		t.Errorf("got %q, error %v; want %q as in %s", got, err, text, onlineCPUsPath)
	}
}

// TestOnlineCPUs_Errors checks that a file without CPUs is an error, which names the file.
func TestOnlineCPUs_Errors(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": "", "newline": "\n", "unknown": "all\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"empty", "newline", "unknown", "missing"} {
		path := filepath.Join(dir, name)
		if got, err := onlineCPUs(path); err == nil || got != "" || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got CPUs %q, error %v; want an error with %s", name, got, err, path)
		}
	}
}

// TestCountCPUs checks that the CPUs in the file of the kernel are counted, and that the CPUs of podd
// are counted if the file cannot be used.
func TestCountCPUs(t *testing.T) {
	own := int64(runtime.NumCPU())
	for name, tt := range map[string]struct {
		text string
		want int64
	}{
		"one CPU":         {"0\n", 1},
		"one range":       {"0-191\n", 192},
		"offline CPUs":    {"0-3,6,8-9\n", 7},
		"empty file":      {"\n", own},
		"unknown content": {"all\n", own},
	} {
		path := filepath.Join(t.TempDir(), "online")
		if err := os.WriteFile(path, []byte(tt.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := countCPUs(path); got != tt.want {
			t.Errorf("%s: got %d CPUs, want %d", name, got, tt.want)
		}
	}
	if got := countCPUs(filepath.Join(t.TempDir(), "online")); got != own {
		t.Errorf("no file: got %d CPUs, want %d", got, own)
	}
}
