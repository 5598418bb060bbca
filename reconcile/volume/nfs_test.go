package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

func served(name, server, path string, readOnly bool) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{NFS: &v1.NFSVolumeSource{Server: server, Path: path, ReadOnly: readOnly}}}
}

// script is a program that does what a server's faults make of mount.nfs.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	return path
}

// noKernel is what is said of ENODEV on this very machine.
func noKernel(t *testing.T) string {
	kernel, err := os.ReadFile("/proc/filesystems")
	must(t, err)
	if strings.Contains(string(kernel), "\tnfs") {
		return "No such device"
	}
	return "No such device; this machine's kernel has no NFS: load its module"
}

func TestNFSFaults(t *testing.T) {
	for _, tt := range []struct{ name, script, want string }{
		{"refused", "echo 'mount.nfs: access denied by server' >&2; echo 'mount.nfs: access denied by server' >&2; exit 32", `"data" of pod default/web-node1: files.example:/a b: access denied by server`},
		{"no kernel", "echo 'mount.nfs: No such device' >&2; exit 32", noKernel(t)},
		{"silent", "exec sleep 1000", "files.example:/a b: the server did not answer within 300ms; see that it runs"},
		{"does nothing", "exit 0", "the mount table has no mount at"},
		{"says nothing", "exit 3", "exit status 3"},
		{"says too much", "printf 'a\\033[1mb\\n%01000d' 7; exit 1", "a[1mb; 0000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDir(t)
			d.NFS = NFS{Mount: script(t, tt.script), Patience: 300 * time.Millisecond}
			if tt.name != "silent" {
				d.NFS.Patience = time.Minute
			}
			pod := podOf(served("data", "files.example", "/a b", false))
			_, err := d.Prepare(t.Context(), pod, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 700 {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if e, ok := errors.AsType[*Error](err); !ok || e.Field != "spec.volumes[0].nfs" {
				t.Errorf("it is about %+v", e)
			}
			must(t, d.Remove(t.Context(), uid))
		})
	}
}

// TestNFSIsGivenUp checks that a canceled mount does not wait for the server.
func TestNFSIsGivenUp(t *testing.T) {
	d := newDir(t)
	began := filepath.Join(t.TempDir(), "began")
	d.NFS.Mount = script(t, "touch "+began+"; trap '' TERM; while :; do sleep 1000; done")
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := d.Prepare(ctx, podOf(served("data", "s", "/", false)), nil)
		failed <- err
	}()
	for _, err := os.Stat(began); err != nil; _, err = os.Stat(began) {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	must(t, d.Remove(t.Context(), uid))
}

func TestNFSWithoutItsProgram(t *testing.T) {
	_, err := program("", "mount.nothing", "install something")
	if err == nil || err.Error() != "this machine has no mount.nothing; install something" {
		t.Error(err)
	}
	if _, err := (NFS{}).mounter(); err != nil && !strings.Contains(err.Error(), "install the package nfs-common") {
		t.Error(err)
	}
}

// TestNFSWords checks the arguments of mount.nfs.
func TestNFSWords(t *testing.T) {
	said := filepath.Join(t.TempDir(), "said")
	d, _ := newClaims(t)
	d.NFS.Mount = script(t, `echo "$@" >>`+said+"; exit 1")
	pv := localVolume("share", "")
	pv.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{Server: "::1", Path: "/x/", ReadOnly: true}}
	pv.Spec.MountOptions = []string{"nfsvers=4.2,noatime", "retry=1"}
	own := claiming().Spec.Spec.Volumes[0]
	own.PersistentVolumeClaim.ReadOnly = true
	pod := podOf(served("a", "10.0.0.1", "/", true), served("b", "fe80::1", "/b", false), own)
	must(t, d.Check(t.Context(), pod, claimOf("file", pv), nil))
	if _, err := d.Prepare(t.Context(), pod, claimOf("file", pv)); err == nil {
		t.Error("it is mounted")
	}
	got, err := os.ReadFile(said)
	must(t, err)
	at := filepath.Join(d.Root, uid, "volumes", "kubernetes.io~nfs")
	want := "10.0.0.1:/ " + at + "/a -o ro,retry=0\n" +
		"[fe80::1]:/b " + at + "/b -o retry=0\n" +
		"[::1]:/x/ " + at + "/data -o nfsvers=4.2,noatime,retry=1,ro\n"
	if string(got) != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestNFSWhereSomethingElseIs(t *testing.T) {
	d := newDir(t)
	d.NFS.Mount = script(t, "exit 1")
	at := filepath.Join(d.Root, uid, "volumes", nfsPlugin, "data")
	must(t, os.MkdirAll(at, 0o755))
	must(t, unix.Mount("tmpfs", at, "tmpfs", 0, ""))
	_, err := d.Prepare(t.Context(), podOf(served("data", "s", "/", false)), nil)
	if err == nil || !strings.Contains(err.Error(), "tmpfs is mounted where a volume of nfs belongs; umount "+at) {
		t.Error(err)
	}
	if known, ok := errors.AsType[*MountError](d.Remove(t.Context(), uid)); !ok || known.Busy {
		t.Errorf("%+v", known)
	}
	must(t, unix.Unmount(at, 0))
	must(t, d.Remove(t.Context(), uid))
}

// TestUnmountByProgram checks that mounts in use are unmounted, and that a program that
// hangs is killed. A tmpfs stands for the file system of a server.
func TestUnmountByProgram(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		inUse, goes  bool
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
				d.NFS = NFS{Unmount: script(t, tt.script), Patience: time.Second}
			}
			err = d.unmountRemote(t.Context(), mounts[0])
			if left := mountCount(t, d.Root); (err == nil) != tt.goes || (left == 0) != tt.goes || err != nil && !isRetryable(err) {
				t.Errorf("%v, and %d mounts are left", err, left)
			}
		})
	}
}
