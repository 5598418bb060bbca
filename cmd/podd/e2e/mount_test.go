//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/server"
)

// sharedMount is a directory of the host whose mounts others see, with a mount
// in it at "sub".
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
	sees := d.pod("sees", shell("main", "while ! [ -e /host/late/x ]; do sleep 0.05; done; "+tell("late", "cat /host/late/x")+serve("sees")))
	withHostPath(sees, dir, "/host", func(m *v1.VolumeMount) { m.MountPropagation = new(v1.MountPropagationHostToContainer) })
	gives := d.pod("gives", shell("main", "mkdir /host/own; mount -t tmpfs own /host/own && echo given >/host/own/x; "+tell("gave", "true")+
		"while ! [ -e /trace/enough ]; do sleep 0.05; done; umount /host/own; "+tell("took", "true")+serve("gives")))
	gives.Spec.Containers[0].SecurityContext = &v1.SecurityContext{Privileged: new(true)}
	withHostPath(gives, dir, "/host", func(m *v1.VolumeMount) { m.MountPropagation = new(v1.MountPropagationBidirectional) })
	d.apply(sees, gives)
	d.untilApplied("sees")
	d.untilApplied("gives")

	late := filepath.Join(dir, "late")
	if err := unix.Mount("tmpfs", late, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(late, "x"), []byte("seen\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := d.told("late"); got != "seen" {
		t.Errorf("it sees %q of what was mounted later", got)
	}
	d.told("gave")
	if text, err := os.ReadFile(filepath.Join(dir, "own", "x")); err != nil || string(text) != "given\n" {
		t.Errorf("of what the container mounted the host sees %q, %v", text, err)
	}
	if err := os.WriteFile(filepath.Join(d.shared(), "enough"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.told("took")
}

// servesRecursive asks the runtime.
func (d *daemon) servesRecursive() bool {
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
		p := d.pod(name, shell("main", tell(name+".wrote", "touch /host/sub/"+name+" && echo yes || echo no")+serve(name)))
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
	if d.servesRecursive() {
		want, wrote = v1.RecursiveReadOnlyEnabled, "no"
	}
	if got := effective(d.untilApplied("never")); got != v1.RecursiveReadOnlyDisabled || !strings.HasSuffix(d.told("never.wrote"), "yes") {
		t.Errorf("Disabled is %s, wrote: %s", got, d.told("never.wrote"))
	}
	if got := effective(d.untilApplied("maybe")); got != want || !strings.HasSuffix(d.told("maybe.wrote"), wrote) {
		t.Errorf("IfPossible is %s, wrote: %s; want %s", got, d.told("maybe.wrote"), want)
	}
	if want == v1.RecursiveReadOnlyEnabled {
		d.apply(pod("must", v1.RecursiveReadOnlyEnabled))
		if got := effective(d.untilApplied("must")); got != want || !strings.HasSuffix(d.told("must.wrote"), "no") {
			t.Errorf("Enabled is %s, wrote: %s", got, d.told("must.wrote"))
		}
		return
	}
	d.apply(pod("must", v1.RecursiveReadOnlyEnabled))
	d.untilProblem("must", `volume "host"`, "recursiveReadOnly", "does not support it")
	// An edit that asks for it stops nothing.
	was := d.runs("maybe", "main")
	d.apply(pod("maybe", v1.RecursiveReadOnlyEnabled))
	d.untilProblem("maybe", "the edit waits", "recursiveReadOnly")
	if now := d.runs("maybe", "main"); now != was {
		t.Errorf("it is now %+v, was %+v", now, was)
	}
}
