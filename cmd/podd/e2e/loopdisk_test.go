//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podd/runtime/runtimetest/loopdisk"
	"podd/runtime/runtimetest/stack"
)

// A loopDisk is an ext4 file system in a file. It is mounted in a directory of a daemon, and
// unmounted after the daemon has exited.
type loopDisk struct {
	d       *daemon
	image   string
	dir     string
	options string // mount options
	hidden  string // the directory to which the method hide has moved the mount
}

// newLoopDisk creates the file system with additional flags of mkfs.ext4. It does not mount the
// file system.
func newLoopDisk(d *daemon, image, dir, options string, size int64, flags ...string) *loopDisk {
	d.t.Helper()
	k := &loopDisk{d: d, image: image, dir: dir, options: options}
	if err := loopdisk.Create(image, size, flags...); err != nil {
		d.t.Fatal(err)
	}
	d.closers = append(d.closers, func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }) // the error is ignored, because the file system may not be mounted
	return k
}

// onSmallDisk prepares a podd on a runtime. Its root directory is a file system of 24 MiB with
// 512 inodes and the given mount options. The file system reserves no blocks for root, and
// becomes read-only after an error.
func onSmallDisk(t testing.TB, on *stack.Stack, options ...string) (*daemon, *loopDisk) {
	t.Helper()
	// These directories are created before the daemon. Cleanup functions run in reverse order, so the
	// directories are removed after the daemon has unmounted the file system.
	image, dir := filepath.Join(t.TempDir(), "image"), t.TempDir()
	d := newDaemon(t, on)
	d.rootDir = dir
	options = append([]string{"errors=remount-ro"}, options...)
	k := newLoopDisk(d, image, dir, strings.Join(options, ","), 24<<20, "-m", "0", "-N", "512", "-E", "lazy_itable_init=0")
	k.mount()
	return d, k
}

// command runs a program, which must succeed.
func (k *loopDisk) command(program string, args ...string) {
	k.d.t.Helper()
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		k.d.t.Fatalf("%s %s: %v: %s", program, strings.Join(args, " "), err, out)
	}
}

func (k *loopDisk) mount() {
	k.d.t.Helper()
	if err := loopdisk.Mount(k.image, k.dir, k.options); err != nil {
		k.d.t.Fatal(err)
	}
}

// unmount unmounts the file system and waits until the kernel has released it. The kernel may release it
// late, because a process uses it or because a container of another test has copied the mount to its
// mount namespace. If the file were mounted again before that, the kernel would reuse the file system,
// which stays read-only after an error.
func (k *loopDisk) unmount() {
	k.d.t.Helper()
	backing := filepath.Join("/sys/block", k.device(), "loop/backing_file")
	k.d.unmount(k.dir)
	k.d.eventually("the kernel has released the file system of "+k.dir, func() error {
		if image, err := os.ReadFile(backing); err == nil && strings.TrimSpace(string(image)) == k.image {
			return fmt.Errorf("backing file in %s: got %s, want another one or none", backing, image)
		}
		return nil
	})
}

// hide moves the mount to another directory until show moves it back. This works although
// containers use the file system.
func (k *loopDisk) hide() {
	k.d.t.Helper()
	k.hidden = k.d.t.TempDir()
	k.d.closers = append(k.d.closers, func() { _ = unix.Unmount(k.hidden, unix.MNT_DETACH) })
	if err := errors.Join(unix.Mount(k.dir, k.hidden, "", unix.MS_BIND, ""), unix.Unmount(k.dir, unix.MNT_DETACH)); err != nil {
		k.d.t.Fatal(err)
	}
}

// show moves the mount back after hide.
func (k *loopDisk) show() {
	k.d.t.Helper()
	if err := errors.Join(unix.Mount(k.hidden, k.dir, "", unix.MS_BIND, ""), unix.Unmount(k.hidden, unix.MNT_DETACH)); err != nil {
		k.d.t.Fatal(err)
	}
}

// device returns the name of the loop device, such as loop0.
func (k *loopDisk) device() string {
	k.d.t.Helper()
	device, err := exec.Command("findmnt", "--noheadings", "--output", "SOURCE", k.dir).Output()
	if err != nil {
		k.d.t.Fatal(err)
	}
	return filepath.Base(strings.TrimSpace(string(device)))
}

// unmount unmounts path.
func (d *daemon) unmount(path string) {
	d.t.Helper()
	d.eventually(path+" is unmounted", func() error { return unix.Unmount(path, 0) })
}

// leaveFree allocates a file, so that the disk has only the given number of free bytes.
func (k *loopDisk) leaveFree(free int64) {
	k.d.t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(k.dir, &st); err != nil {
		k.d.t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(k.dir, "allocated"))
	if err == nil {
		err = errors.Join(unix.Fallocate(int(f.Fd()), 0, 0, int64(st.Bfree)*st.Bsize-free), f.Close())
	}
	if err != nil {
		k.d.t.Fatal(err)
	}
}

// untilFree waits until the disk has free blocks and inodes again.
func (k *loopDisk) untilFree() {
	k.d.t.Helper()
	k.d.eventually("the disk has free space", func() error {
		var st unix.Statfs_t
		if err := unix.Statfs(k.dir, &st); err != nil {
			return err
		}
		if st.Bfree < 1000 || st.Ffree < 100 {
			return fmt.Errorf("got %d free blocks and %d free inodes, want at least 1000 blocks and 100 inodes", st.Bfree, st.Ffree)
		}
		return nil
	})
}

// fail syncs all writes and then reports an error to ext4, which makes the file system
// read-only.
func (k *loopDisk) fail() {
	k.d.t.Helper()
	k.command("sync", "--file-system", k.dir)
	trigger := filepath.Join("/sys/fs/ext4", k.device(), "trigger_fs_error")
	if err := os.WriteFile(trigger, []byte("test"), 0o200); err != nil {
		k.d.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(k.dir, "x"), nil, 0o600); err == nil {
		k.d.t.Fatal("writing to the failed file system: got success, want an error")
	}
}

// repair makes the file system writable again. podd must not be running.
func (k *loopDisk) repair() {
	k.d.t.Helper()
	k.unmount()
	if out, err := exec.Command("e2fsck", "-fy", k.image).CombinedOutput(); err != nil && !strings.Contains(string(out), "FILE SYSTEM WAS MODIFIED") {
		k.d.t.Fatalf("e2fsck: %v: %s", err, out)
	}
	k.mount()
}

// cutPower kills podd and discards all data that was not synced and that the kernel has not
// written back.
func (k *loopDisk) cutPower() {
	k.d.t.Helper()
	// The page cache of the image contains everything that the kernel has written to the loop device.
	// Therefore a copy is complete, even if the host has not written the image to its disk yet.
	k.command("cp", "--sparse=always", k.image, k.image+".cut")
	k.d.kill()
	k.unmount()
	if err := os.Rename(k.image+".cut", k.image); err != nil {
		k.d.t.Fatal(err)
	}
	k.mount()
}
