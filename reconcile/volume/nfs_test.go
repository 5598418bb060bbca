package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

func nfsVolume(name, server, path string, readOnly bool) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{NFS: &v1.NFSVolumeSource{Server: server, Path: path, ReadOnly: readOnly}}}
}

// writeScript writes a shell script with this text, which replaces mount.nfs or umount, and returns
// its path.
func writeScript(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	// If another test forks a process while the script is open for writing, that process inherits
	// the open file. The script cannot be executed before the process closes the file
	// (go.dev/issue/22315).
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	return path
}

// enodevMessage returns the message for the error ENODEV, which depends on the kernel of this host.
func enodevMessage(t *testing.T) string {
	kernel, err := os.ReadFile("/proc/filesystems")
	must(t, err)
	if strings.Contains(string(kernel), "\tnfs") {
		return "No such device"
	}
	return "No such device; the kernel of the host does not support NFS: load the module nfs"
}

// TestNFS_MountFails checks the errors for failures of mount.nfs.
func TestNFS_MountFails(t *testing.T) {
	for _, tt := range []struct{ name, script, want string }{
		{"refused", "echo 'mount.nfs: access denied by server' >&2; echo 'mount.nfs: access denied by server' >&2; exit 32", `"data" of pod default/web-node1: files.example:/a b: access denied by server`},
		{"no kernel", "echo 'mount.nfs: No such device' >&2; exit 32", enodevMessage(t)},
		{"timeout", "exec sleep 1000", "files.example:/a b: the server did not respond within 300ms; check that it runs"},
		{"no mount", "exit 0", "the mount table has no mount at"},
		{"no output", "exit 3", "exit status 3"},
		{"long output", "printf 'a\\033[1mb\\n%01000d' 7; exit 1", "a[1mb; 0000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDir(t)
			d.NFS = NFSOptions{MountPath: writeScript(t, tt.script), Timeout: 300 * time.Millisecond}
			if tt.name != "timeout" {
				d.NFS.Timeout = time.Hour
			}
			pod := newPod(nfsVolume("data", "files.example", "/a b", false))
			_, err := d.Prepare(t.Context(), pod, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 700 {
				t.Errorf("got error %v, want %q and at most 700 bytes", err, tt.want)
			}
			if e, ok := errors.AsType[*Error](err); !ok || e.Volume != "data" {
				t.Errorf("got error %+v, want an *Error with the volume data", e)
			}
			must(t, d.Remove(t.Context(), uid))
		})
	}
}

// TestNFS_Canceled checks that Prepare does not wait for the server after its context is canceled.
func TestNFS_Canceled(t *testing.T) {
	d := newDir(t)
	began := filepath.Join(t.TempDir(), "began")
	d.NFS.MountPath = writeScript(t, "touch "+began+"; trap '' TERM; while :; do sleep 1000; done")
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := d.Prepare(ctx, newPod(nfsVolume("data", "s", "/", false)), nil)
		failed <- err
	}()
	for _, err := os.Stat(began); err != nil; _, err = os.Stat(began) {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
	must(t, d.Remove(t.Context(), uid))
}

// TestNFS_NoProgram checks that the error for a missing program has a remedy.
func TestNFS_NoProgram(t *testing.T) {
	_, err := findProgram("", "mount.nothing", "install something")
	if want := "the host has no program mount.nothing; install something"; err == nil || err.Error() != want {
		t.Errorf("findProgram: got error %v, want %q", err, want)
	}
	if _, err := (NFSOptions{}).mountProgram(); err != nil && !strings.Contains(err.Error(), "install the package nfs-common") {
		t.Errorf("mountProgram: got error %v, want one with the package nfs-common", err)
	}
}

// TestNFS_Arguments checks the arguments of mount.nfs.
func TestNFS_Arguments(t *testing.T) {
	arguments := filepath.Join(t.TempDir(), "arguments")
	d, _ := newDirWithClaims(t)
	d.NFS.MountPath = writeScript(t, `echo "$@" >>`+arguments+"; exit 1")
	pv := localVolume("share", "")
	pv.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{Server: "::1", Path: "/x/", ReadOnly: true}}
	pv.Spec.MountOptions = []string{"nfsvers=4.2,noatime", "retry=1"}
	own := newClaimPod().Object.Spec.Volumes[0]
	own.PersistentVolumeClaim.ReadOnly = true
	pod := newPod(nfsVolume("a", "10.0.0.1", "/", true), nfsVolume("b", "fe80::1", "/b", false), own)
	must(t, d.Check(t.Context(), pod, newClaim("file", pv), nil))
	if _, err := d.Prepare(t.Context(), pod, newClaim("file", pv)); err == nil {
		t.Error("Prepare with a failing mount.nfs: got no error, want one")
	}
	got, err := os.ReadFile(arguments)
	must(t, err)
	at := filepath.Join(d.Root, uid, "volumes", "kubernetes.io~nfs")
	want := "10.0.0.1:/ " + at + "/a -o ro,retry=0\n" +
		"[fe80::1]:/b " + at + "/b -o retry=0\n" +
		"[::1]:/x/ " + at + "/data -o nfsvers=4.2,noatime,retry=1,ro\n"
	if string(got) != want {
		t.Errorf("arguments: got\n%swant\n%s", got, want)
	}
}

// TestNFS_OtherMount checks that a mount of another program at the directory of an NFS volume
// prevents Prepare and Remove, and is not unmounted.
func TestNFS_OtherMount(t *testing.T) {
	d := newDir(t)
	d.NFS.MountPath = writeScript(t, "exit 1")
	at := filepath.Join(d.Root, uid, "volumes", nfsPlugin, "data")
	must(t, os.MkdirAll(at, 0o755))
	must(t, unix.Mount("tmpfs", at, "tmpfs", 0, ""))
	_, err := d.Prepare(t.Context(), newPod(nfsVolume("data", "s", "/", false)), nil)
	if err == nil || !strings.Contains(err.Error(), "tmpfs is mounted at the directory of this NFS volume; unmount "+at) {
		t.Errorf("Prepare: got error %v, want one with \"unmount %s\"", err, at)
	}
	if e, ok := errors.AsType[*remainingMountsError](d.Remove(t.Context(), uid)); !ok || e.Busy {
		t.Errorf("Remove: got error %+v, want a *remainingMountsError that is not busy", e)
	}
	must(t, unix.Unmount(at, 0))
	must(t, d.Remove(t.Context(), uid))
}

// TestUnmountRemote checks that idle mounts and mounts in use are unmounted, and that an umount program
// that hangs is killed. A tmpfs replaces the network file system.
func TestUnmountRemote(t *testing.T) {
	for _, tt := range []struct {
		name, script     string
		inUse, unmounted bool
	}{
		{"idle", "", false, true},
		{"in use", "", true, true},
		{"hangs", "exec sleep 1000", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDir(t)
			at := filepath.Join(d.Root, uid, "volumes", nfsPlugin, "data")
			must(t, os.MkdirAll(at, 0o755))
			must(t, unix.Mount("tmpfs", at, "tmpfs", 0, ""))
			mounts, err := d.mountsBelow(uid)
			must(t, err)
			if tt.inUse {
				user, err := os.Open(at)
				must(t, err)
				defer user.Close()
			}
			if tt.script != "" {
				d.NFS = NFSOptions{UnmountPath: writeScript(t, tt.script), Timeout: time.Second}
			}
			err = d.unmountRemote(t.Context(), mounts[0])
			if n := mountCount(t, d.Root); (err == nil) != tt.unmounted || (n == 0) != tt.unmounted || err != nil && !isRetryable(err) {
				t.Errorf("got error %v and %d mounts; want unmounted: %v", err, n, tt.unmounted)
			}
		})
	}
}
