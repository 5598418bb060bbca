package rootdir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"podd/runtime/runtimetest/mountns"
)

// inNamespace calls f in a new mount namespace in which all mounts are private. f must not
// call t.Fatal.
func inNamespace(t *testing.T, f func()) {
	t.Helper()
	errs := make(chan error)
	go func() {
		err := mountns.Enter()
		if err == nil {
			f()
		}
		errs <- err
	}()
	if err := <-errs; err != nil {
		t.Skipf("mount namespaces are not permitted: %v", err)
	}
}

// TestShareMounts checks that the mount that contains the root directory becomes shared, and that a
// second call, as after a restart of podd, mounts nothing. A new mount must not hide mounts below the root
// directory, so ShareMounts must fail instead. The cases describe the root directory before the call.
func TestShareMounts(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(root string) error
		want    string // part of the error; "" if there is no error
		mounts  int    // number of mounts at root after the call
		shared  bool   // whether the mount that contains root is shared after the call
	}{
		"in a private mount": {mounts: 1, shared: true},
		"mount point": {
			prepare: func(root string) error { return unix.Mount("tmpfs", root, "tmpfs", 0, "") },
			mounts:  1, shared: true,
		},
		"in a shared mount": {
			prepare: func(string) error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "") },
			mounts:  0, shared: true,
		},
		"in a private mount, with a mount below it": {
			prepare: func(root string) error {
				dir := filepath.Join(root, "pods")
				if err := os.Mkdir(dir, 0o750); err != nil {
					return err
				}
				return unix.Mount("tmpfs", dir, "tmpfs", 0, "")
			},
			want: "podd down", mounts: 0, shared: false,
		},
		"mount point, with a mount below it": {
			prepare: func(root string) error {
				if err := unix.Mount("tmpfs", root, "tmpfs", 0, ""); err != nil {
					return err
				}
				dir := filepath.Join(root, "pods")
				if err := os.Mkdir(dir, 0o750); err != nil {
					return err
				}
				return unix.Mount("tmpfs", dir, "tmpfs", 0, "")
			},
			mounts: 1, shared: true,
		},
	} {
		root, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		inNamespace(t, func() {
			if c.prepare != nil {
				if err := c.prepare(root); err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
			}
			for range 2 { // the second call is that of a restarted podd
				err := ShareMounts(root)
				if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), root)) {
					t.Errorf("%s: got error %v, want one that contains %q and the root directory (\"\": no error)", name, err, c.want)
				}
			}
			table, err := mountinfo.GetMounts(nil)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			mounts := 0
			for _, m := range table {
				if m.Mountpoint == root {
					mounts++
				}
			}
			if shared := isShared(findMount(root, table)); mounts != c.mounts || shared != c.shared {
				t.Errorf("%s: got %d mounts at the root directory, shared: %t; want %d mounts, shared: %t", name, mounts, shared, c.mounts, c.shared)
			}
		})
	}
}
