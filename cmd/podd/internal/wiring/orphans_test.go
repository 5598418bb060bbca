package wiring

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/config"
)

// TestNewOrphanOptions_HasDir checks that the directories of pods of the daemon and of podd run --runonce
// are found. A pod may have a directory if podd cannot read the directories.
func TestNewOrphanOptions_HasDir(t *testing.T) {
	root := t.TempDir()
	hasDir := NewOrphanOptions(&config.Config{Paths: config.Paths{RootDir: root}}, nil, slog.New(slog.DiscardHandler)).HasDir
	expect := func(name string, uid types.UID, want bool) {
		t.Helper()
		if got := hasDir(uid); got != want {
			t.Errorf("%s: HasDir(%s): got %t, want %t", name, uid, got, want)
		}
	}
	expect("empty root directory", "pod", false)
	for _, dir := range []string{"pods/pod", "once/1-2-a", "once/1-2-b/pods/run"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "once/file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expect("pod of the daemon", "pod", true)
	expect("pod of a run", "run", true)
	expect("pod without a directory", "none", false)
	if err := os.RemoveAll(filepath.Join(root, "once")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("once", filepath.Join(root, "once")); err != nil { // reading it fails with ELOOP
		t.Fatal(err)
	}
	expect("directory of the runs cannot be read", "none", true)
}
