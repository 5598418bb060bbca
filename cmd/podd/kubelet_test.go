package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSystemLogs: what a container planted among the logs is not there.
func TestSystemLogs(t *testing.T) {
	dir := t.TempDir()
	logs := systemLogs{filepath.Join(dir, "log")}
	for _, err := range []error{
		os.MkdirAll(filepath.Join(logs.dir, "pods"), 0o700),
		os.WriteFile(filepath.Join(dir, "shadow"), []byte("secret"), 0o600),
		os.WriteFile(filepath.Join(logs.dir, "syslog"), []byte("line"), 0o600),
		os.Symlink("syslog", filepath.Join(logs.dir, "latest")),
		os.Symlink("../shadow", filepath.Join(logs.dir, "out")),
		unix.Mkfifo(filepath.Join(logs.dir, "fifo"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"syslog": "line", "latest": "line", "out": "", "fifo": "", "nothing": "", "pods/../../shadow": ""} {
		got, err := fs.ReadFile(logs, name)
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	if entries, err := fs.ReadDir(logs, "pods"); err != nil || len(entries) != 0 {
		t.Errorf("pods: %v, %v", entries, err)
	}
}
