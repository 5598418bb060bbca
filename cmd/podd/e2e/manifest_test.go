//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"podd/runtime/runtimetest/stack"
)

// pod returns a pod of the given containers. The trace directory is a hostPath volume of the pod.
// Containers that the function shell has returned mount this volume at /trace. The grace period of the
// pod is long enough for slow hosts. A test should set a shorter one for containers that ignore SIGTERM.
func (d *daemon) pod(name string, containers ...v1.Container) *v1.Pod {
	p := &v1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(10)),
			Containers:                    containers,
		},
	}
	p.Spec.Volumes = []v1.Volume{{Name: "trace", VolumeSource: v1.VolumeSource{
		HostPath: &v1.HostPathVolumeSource{Path: d.traceDir()},
	}}}
	return p
}

// shell returns a container that runs a script.
func shell(name, script string) v1.Container {
	return v1.Container{
		Name: name, Image: stack.BusyboxImage, Command: []string{"sh", "-c", script},
		VolumeMounts: []v1.VolumeMount{{Name: "trace", MountPath: "/trace"}},
	}
}

// sidecar returns a restartable init container that runs a script.
func sidecar(name, script string) v1.Container {
	c := shell(name, script)
	c.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
	return c
}

// note returns a script that appends a line to the file /trace/notes, which the method notes reads.
func note(line string) string { return fmt.Sprintf("echo %q >>/trace/notes; ", line) }

// serve returns a script that runs until SIGTERM. It notes "NAME runs" at its start and "NAME TERM" when
// it receives SIGTERM.
func serve(name string) string {
	return "trap '" + note(name+" TERM") + "exit 0' TERM; " + note(name+" runs") + "sleep 3600 & wait"
}

// ignoreTerm returns a script like that of serve, but this script does not exit after SIGTERM.
func ignoreTerm(name string) string {
	return "trap '" + note(name+" TERM") + "' TERM; " + note(name+" runs") + "while :; do sleep 3600 & wait; done"
}

// notes returns all lines that the pods of the test have appended to the file /trace/notes, oldest
// first.
func (d *daemon) notes() []string {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.traceDir(), "notes"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// untilNote waits until one of the notes equals the parameter line.
func (d *daemon) untilNote(line string) {
	d.t.Helper()
	d.eventually("a pod notes "+line, func() error {
		if got := d.notes(); !slices.Contains(got, line) {
			return fmt.Errorf("got the notes %q, want %q among them", got, line)
		}
		return nil
	})
}

// untilNoted waits until the notes equal want.
func (d *daemon) untilNoted(want ...string) {
	d.t.Helper()
	d.eventually("the pods have noted exactly the expected lines", func() error {
		if got := d.notes(); strings.Join(got, "\n") != strings.Join(want, "\n") {
			return fmt.Errorf("got notes %q, want %q", got, want)
		}
		return nil
	})
}

func (d *daemon) manifestFile(name string) string {
	return filepath.Join(d.manifestDir(), name+".yaml")
}

// apply writes the manifest of each pod atomically, to a file with the pod's name.
func (d *daemon) apply(pods ...*v1.Pod) {
	d.t.Helper()
	for _, p := range pods {
		d.write(p.Name, manifestText(d, p))
	}
}

// manifestText returns the text of a manifest with these objects.
func manifestText(d *daemon, objects ...any) string {
	d.t.Helper()
	var all []string
	for _, o := range objects {
		t, err := yaml.Marshal(o)
		if err != nil {
			d.t.Fatal(err)
		}
		all = append(all, string(t))
	}
	return strings.Join(all, "---\n")
}

// write replaces a manifest atomically, like editors that write to a temporary file.
func (d *daemon) write(name, text string) {
	d.t.Helper()
	temp := filepath.Join(d.dir, "next")
	if err := os.WriteFile(temp, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Rename(temp, d.manifestFile(name)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *daemon) remove(names ...string) {
	d.t.Helper()
	for _, name := range names {
		if err := os.Remove(d.manifestFile(name)); err != nil {
			d.t.Fatal(err)
		}
	}
}

// touch creates an empty file in /trace.
func (d *daemon) touch(name string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.traceDir(), name), nil, 0o600); err != nil {
		d.t.Fatal(err)
	}
}
