//go:build e2e

package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/server"
)

// sharedMount returns a directory of the host with shared mount propagation and a mount at its
// subdirectory sub.
func sharedMount(d *daemon) string {
	d.t.Helper()
	dir := d.t.TempDir()
	must := func(err error) {
		d.t.Helper()
		if err != nil {
			d.t.Fatal(err)
		}
	}
	must(unix.Mount("tmpfs", dir, "tmpfs", 0, ""))
	d.t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	must(unix.Mount("", dir, "", unix.MS_SHARED, ""))
	must(os.MkdirAll(filepath.Join(dir, "sub"), 0o755))
	must(os.MkdirAll(filepath.Join(dir, "late"), 0o755))
	must(unix.Mount("tmpfs", filepath.Join(dir, "sub"), "tmpfs", 0, ""))
	return dir
}

// withHostPath mounts a path of the host into all containers. The parameter at is the path in the
// containers. The function edit may change the volume mount.
func withHostPath(p *v1.Pod, path, at string, edit func(*v1.VolumeMount)) {
	withVolume(p, "host", at, v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: path}})
	mounts := p.Spec.Containers[0].VolumeMounts
	edit(&mounts[len(mounts)-1])
}

func TestMountPropagation(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	dir := sharedMount(d)
	d.start()
	sees := d.pod("sees", shell("main", "while ! [ -e /host/late/x ]; do sleep 0.05; done; "+writeTrace("late", "cat /host/late/x")+serve("sees")))
	withHostPath(sees, dir, "/host", func(m *v1.VolumeMount) { m.MountPropagation = new(v1.MountPropagationHostToContainer) })
	gives := d.pod("gives", shell("main", "mkdir /host/own; mount -t tmpfs own /host/own && echo given >/host/own/x; "+writeTrace("gave", "true")+
		"while ! [ -e /trace/enough ]; do sleep 0.05; done; umount /host/own; "+writeTrace("took", "true")+serve("gives")))
	gives.Spec.Containers[0].SecurityContext = &v1.SecurityContext{Privileged: new(true)}
	withHostPath(gives, dir, "/host", func(m *v1.VolumeMount) { m.MountPropagation = new(v1.MountPropagationBidirectional) })
	d.apply(sees, gives)
	d.untilApplied("sees")
	d.untilApplied("gives")

	late := filepath.Join(dir, "late")
	if err := unix.Mount("tmpfs", late, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	// The container reads the file as soon as it exists, so it must be complete then.
	err := errors.Join(os.WriteFile(filepath.Join(late, "x.tmp"), []byte("seen\n"), 0o644), os.Rename(filepath.Join(late, "x.tmp"), filepath.Join(late, "x")))
	if err != nil {
		t.Fatal(err)
	}
	if got := d.readTrace("late"); got != "seen" {
		t.Errorf("file on a mount that was added to the host later, read in the container: got %q, want %q", got, "seen")
	}
	d.readTrace("gave")
	if text, err := os.ReadFile(filepath.Join(dir, "own", "x")); err != nil || string(text) != "given\n" {
		t.Errorf("file on a mount of the container, read on the host: got %q, error %v; want %q", text, err, "given\n")
	}
	if err := os.WriteFile(filepath.Join(d.traceDir(), "enough"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.readTrace("took")
}

// supportsRecursiveReadOnly reports whether the runtime supports recursive read-only mounts.
func (d *daemon) supportsRecursiveReadOnly() bool {
	d.t.Helper()
	r, err := cri.NewRuntimeServiceClient(d.dial()).Status(d.t.Context(), &cri.StatusRequest{})
	if err != nil {
		d.t.Fatal(err)
	}
	for _, h := range r.GetRuntimeHandlers() {
		if h.GetName() == "" {
			return h.GetFeatures().GetRecursiveReadOnlyMounts()
		}
	}
	return false
}

func TestRecursiveReadOnly(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	dir := sharedMount(d)
	d.start()
	pod := func(name string, mode v1.RecursiveReadOnlyMode) *v1.Pod {
		p := d.pod(name, shell("main", writeTrace(name+".wrote", "touch /host/sub/"+name+" && echo yes || echo no")+serve(name)))
		withHostPath(p, dir, "/host", func(m *v1.VolumeMount) { m.ReadOnly, m.RecursiveReadOnly = true, &mode })
		return p
	}
	d.apply(pod("never", v1.RecursiveReadOnlyDisabled), pod("maybe", v1.RecursiveReadOnlyIfPossible))
	effective := func(p *server.PodView) v1.RecursiveReadOnlyMode {
		for _, m := range p.Pod.Status.ContainerStatuses[0].VolumeMounts {
			if m.Name == "host" && m.RecursiveReadOnly != nil {
				return *m.RecursiveReadOnly
			}
		}
		return ""
	}
	want, wrote := v1.RecursiveReadOnlyDisabled, "yes"
	if d.supportsRecursiveReadOnly() {
		want, wrote = v1.RecursiveReadOnlyEnabled, "no"
	}
	if got := effective(d.untilApplied("never")); got != v1.RecursiveReadOnlyDisabled || !strings.HasSuffix(d.readTrace("never.wrote"), "yes") {
		t.Errorf("mode Disabled: got status %s, submount written: %s; want status %s, submount written: yes", got, d.readTrace("never.wrote"), v1.RecursiveReadOnlyDisabled)
	}
	if got := effective(d.untilApplied("maybe")); got != want || !strings.HasSuffix(d.readTrace("maybe.wrote"), wrote) {
		t.Errorf("mode IfPossible: got status %s, submount written: %s; want status %s, submount written: %s", got, d.readTrace("maybe.wrote"), want, wrote)
	}
	if want == v1.RecursiveReadOnlyEnabled {
		d.apply(pod("must", v1.RecursiveReadOnlyEnabled))
		if got := effective(d.untilApplied("must")); got != want || !strings.HasSuffix(d.readTrace("must.wrote"), "no") {
			t.Errorf("mode Enabled: got status %s, submount written: %s; want status %s, submount written: no", got, d.readTrace("must.wrote"), want)
		}
		return
	}
	d.apply(pod("must", v1.RecursiveReadOnlyEnabled))
	d.untilProblem("must", `volume "host"`, "recursiveReadOnly", "does not support it")
	// If the runtime does not support recursive read-only mounts, an edit that requires one does not stop
	// the container.
	was := d.container("maybe", "main")
	d.apply(pod("maybe", v1.RecursiveReadOnlyEnabled))
	d.untilProblem("maybe", "the new version of the pod cannot start yet", "recursiveReadOnly")
	if now := d.container("maybe", "main"); now != was {
		t.Errorf("container after the edit: got %+v, want %+v", now, was)
	}
}
