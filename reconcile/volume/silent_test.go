package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile/render"
)

// silent mounts a file system whose server never says a word: whoever asks it
// waits until the test ends.
func silent(t *testing.T, at string) {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	must(t, unix.Mount("silent", at, "fuse.silent", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd)))
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
}

func bindPart(ctx context.Context, d Dir, pod *manifest.Pod, volume string) error {
	_, err := d.BindSubPaths(ctx, pod, "main", map[string]string{"data": volume}, []render.SubPath{part("data", "a")})
	return err
}

// TestSubPathOfASilentServer checks the timeout of a subPath on a server that does not
// respond, and that there is only one attempt for repeated starts.
func TestSubPathOfASilentServer(t *testing.T) {
	d := newDir(t)
	d.Attempts, d.NFS.Patience = &Attempts{}, 100*time.Millisecond
	top := t.TempDir()
	silent(t, top)
	pod := podOf(host("data", top, v1.HostPathUnset))
	if err := bindPart(t.Context(), d, pod, top); err == nil || !strings.Contains(err.Error(), "the volume did not answer within 100ms") {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	d.NFS.Patience = time.Hour
	for range 20 {
		err := bindPart(t.Context(), d, pod, top)
		if err == nil || !strings.Contains(err.Error(), "still waiting for the server of "+top+", which did not answer") {
			t.Fatal(err)
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines have become %d", before, after)
	}
	must(t, bindPart(t.Context(), d, pod, t.TempDir())) // another volume is as good as ever
	must(t, d.Remove(t.Context(), uid))
}

// TestSubPathEndsWithItsContext checks that the wait for a server ends with the context.
func TestSubPathEndsWithItsContext(t *testing.T) {
	d := newDir(t)
	top := t.TempDir()
	silent(t, top)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := bindPart(ctx, d, podOf(host("data", top, v1.HostPathUnset)), top); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// TestSubPathWhereASilentServerWas checks that a mount of an earlier container, from a server
// that no longer responds, prevents neither the next start nor the removal of the pod.
func TestSubPathWhereASilentServerWas(t *testing.T) {
	for _, again := range []bool{true, false} {
		d := newDir(t)
		top := t.TempDir()
		pod := podOf(host("data", top, v1.HostPathDirectory))
		at, err := boundAt(t, d, pod, part("data", "a"))
		must(t, err)
		must(t, unix.Unmount(at, 0))
		silent(t, at)
		if again {
			must(t, bindPart(t.Context(), d, pod, top))
			want, err := os.Stat(filepath.Join(top, "a"))
			must(t, err)
			if have, err := os.Stat(at); err != nil || !os.SameFile(want, have) {
				t.Errorf("%s is something else: %v", at, err)
			}
		}
		must(t, d.Remove(t.Context(), uid))
		if n := mountCount(t, d.Root); n > 0 {
			t.Errorf("%d mounts are left", n)
		}
	}
}

// TestAttemptsTakeTurns checks that an attempt waits for one that has not timed out.
func TestAttemptsTakeTurns(t *testing.T) {
	var a Attempts
	began, ends := make(chan struct{}), make(chan struct{})
	first := make(chan error)
	go func() {
		first <- a.do(t.Context(), time.Hour, "x", func(context.Context) error { close(began); <-ends; return nil })
	}()
	<-began
	second := make(chan error)
	ran := false
	go func() {
		second <- a.do(t.Context(), time.Hour, "x", func(context.Context) error { ran = true; return nil })
	}()
	must(t, a.do(t.Context(), time.Hour, "y", func(context.Context) error { return nil }))
	close(ends)
	if err := errors.Join(<-first, <-second); err != nil || !ran {
		t.Error(err)
	}
}
