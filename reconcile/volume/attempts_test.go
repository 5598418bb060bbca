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

// mountSilent mounts a file system with a server that never responds. The parameter at is the mount
// point. Every access hangs until the test ends.
func mountSilent(t *testing.T, at string) {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	must(t, unix.Mount("silent", at, "fuse.silent", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd)))
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
}

func bindSubPath(ctx context.Context, d Dir, pod *manifest.Pod, volume string) error {
	_, err := d.BindSubPaths(ctx, pod, "main", map[string]string{"data": volume}, []render.SubPath{newSubPath("data", "a")})
	return err
}

// TestSubPath_Timeout checks the timeout of a subPath on a server that does not respond, and that
// repeated starts make only one attempt.
func TestSubPath_Timeout(t *testing.T) {
	d := newDir(t)
	d.CallLimiter, d.NFS.Timeout = &CallLimiter{}, 100*time.Millisecond
	top := t.TempDir()
	mountSilent(t, top)
	pod := newPod(hostPathVolume("data", top, v1.HostPathUnset))
	if err := bindSubPath(t.Context(), d, pod, top); err == nil || !strings.Contains(err.Error(), "the server of the volume did not respond within 100ms") {
		t.Fatalf("first attempt: got error %v, want one about the timeout", err)
	}
	before := runtime.NumGoroutine()
	d.NFS.Timeout = time.Hour
	for range 20 {
		err := bindSubPath(t.Context(), d, pod, top)
		if err == nil || !strings.Contains(err.Error(), "the server of "+top+" has not responded since an earlier attempt") {
			t.Fatalf("later attempt: got error %v, want one about the earlier attempt", err)
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("after 20 more attempts: got %d goroutines, want at most %d", after, before)
	}
	must(t, bindSubPath(t.Context(), d, pod, t.TempDir())) // another volume is not affected
	must(t, d.Remove(t.Context(), uid))
}

// TestSubPath_Canceled checks that the wait for a server ends with the context.
func TestSubPath_Canceled(t *testing.T) {
	d := newDir(t)
	top := t.TempDir()
	mountSilent(t, top)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := bindSubPath(ctx, d, newPod(hostPathVolume("data", top, v1.HostPathUnset)), top); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
	}
}

// TestSubPath_SilentEarlierMount checks that an earlier mount from a server that no longer responds
// prevents neither the next start nor the removal of the pod.
func TestSubPath_SilentEarlierMount(t *testing.T) {
	for _, again := range []bool{true, false} {
		d := newDir(t)
		top := t.TempDir()
		pod := newPod(hostPathVolume("data", top, v1.HostPathDirectory))
		at, err := bindOne(t, d, pod, newSubPath("data", "a"))
		must(t, err)
		must(t, unix.Unmount(at, 0))
		mountSilent(t, at)
		if again {
			must(t, bindSubPath(t.Context(), d, pod, top))
			want, err := os.Stat(filepath.Join(top, "a"))
			must(t, err)
			if got, err := os.Stat(at); err != nil || !os.SameFile(want, got) {
				t.Errorf("mount at %s: error %v, want the subPath of the volume", at, err)
			}
		}
		must(t, d.Remove(t.Context(), uid))
		if n := mountCount(t, d.Root); n > 0 {
			t.Errorf("after Remove: got %d mounts, want 0", n)
		}
	}
}

// TestAttempts checks that an attempt waits for an earlier attempt that has not timed out.
func TestAttempts(t *testing.T) {
	var a CallLimiter
	began, finish := make(chan struct{}), make(chan struct{})
	first := make(chan error)
	go func() {
		first <- a.do(t.Context(), time.Hour, "x", func(context.Context) error { close(began); <-finish; return nil })
	}()
	<-began
	second := make(chan error)
	ran := false
	go func() {
		second <- a.do(t.Context(), time.Hour, "x", func(context.Context) error { ran = true; return nil })
	}()
	must(t, a.do(t.Context(), time.Hour, "y", func(context.Context) error { return nil }))
	close(finish)
	if err := errors.Join(<-first, <-second); err != nil || !ran {
		t.Errorf("got error %v, second call run: %v; want no error, second call run: true", err, ran)
	}
}
