package daemon

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"podd/cmd/podd/internal/config"
)

// TestShareMounts_Mode checks that podd makes the root directory a shared mount only if it replaces
// a kubelet or runs in a cluster. The test mounts in its own mount namespace.
func TestShareMounts_Mode(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounts need root")
	}
	for _, asKubelet := range []bool{true, false} {
		root, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		var cfg config.Config
		cfg.RootDir, cfg.ActsAsKubelet = root, asKubelet
		var log bytes.Buffer
		isMount, errs := false, make(chan error)
		go func() {
			runtime.LockOSThread() // not unlocked, so that the thread and its namespace are destroyed
			err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS)
			if err == nil {
				err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
			}
			if err == nil {
				shareMounts(&cfg, slog.New(slog.NewTextHandler(&log, nil)))
				isMount, err = mountinfo.Mounted(root)
			}
			errs <- err
		}()
		if err := <-errs; err != nil {
			t.Skipf("mount namespaces are not permitted: %v", err)
		}
		if isMount != asKubelet {
			t.Errorf("ActsAsKubelet is %t: root directory is a mount point: got %t, want %t", asKubelet, isMount, asKubelet)
		}
		if log.Len() > 0 {
			t.Errorf("ActsAsKubelet is %t: got log %q, want none", asKubelet, log.String())
		}
	}
}
