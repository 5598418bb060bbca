package daemon

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/moby/sys/mountinfo"

	"podd/cmd/podd/internal/config"
	"podd/runtime/runtimetest/mountns"
)

// TestShareMounts_Mode checks that podd makes the root directory a shared mount only if it replaces
// a kubelet or runs in a cluster. The test mounts in its own mount namespace.
func TestShareMounts_Mode(t *testing.T) {
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
			err := mountns.Enter()
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
