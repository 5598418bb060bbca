package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podd/cmd/podd/internal/config"
	"podd/manifest"
	"podd/server"
)

// TestRun_FirstLogLine checks that the first line of the log contains the version, also if there are
// warnings about the configuration. The lock file cannot be created, so podd stops at once.
func TestRun_FirstLogLine(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("podd run needs root")
	}
	var log bytes.Buffer
	cfg := config.Config{}
	cfg.LockFile = filepath.Join(t.TempDir(), "missing", "lock")
	warnings := []config.Warning{{Severity: manifest.Warning, FieldPath: "hairpinMode", Message: "ignored"}}
	if err := Run(t.Context(), Options{Config: &cfg, Warnings: warnings, Version: "v1.2.3", Stderr: &log}); err == nil {
		t.Fatal("Run with a lock file in a missing directory: got no error, want one")
	}
	first, rest, _ := strings.Cut(log.String(), "\n")
	if want := "podd is starting version=v1.2.3 kubernetes=" + manifest.KubernetesVersion; !strings.HasSuffix(first, want) {
		t.Errorf("got first line %q, want one that ends in %q", first, want)
	}
	if want := "warning: hairpinMode: ignored\n"; !strings.HasPrefix(rest, want) {
		t.Errorf("got %q after the first line, want %q at its beginning", rest, want)
	}
}

// TestCountRunning checks that pods without a sandbox are not counted.
func TestCountRunning(t *testing.T) {
	v := &server.View{Pods: []*server.PodView{{SandboxID: "a", Exists: true}, {Exists: true}, {}, {SandboxID: "b"}}}
	if n := countRunning(v); n != 2 {
		t.Errorf("got %d running pods, want 2", n)
	}
}
