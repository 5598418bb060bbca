//go:build e2e

package e2e

import (
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"podd/runtime/runtimetest/stack/tools"
)

// writeControlPlane loads the images of kubeadm's static pods and then writes the manifests of
// these pods.
func (d *daemon) writeControlPlane() {
	d.t.Helper()
	// kubeadm creates this directory, and keys and kubeconfigs in it.
	if err := os.MkdirAll(d.faultDir(), 0o700); err != nil {
		d.t.Fatal(err)
	}
	commands, ports := map[string]string{}, d.freePorts(len(controlPlane))
	var pods []*v1.Pod
	for name, port := range controlPlane {
		p := d.kubeadmPod(name, port, ports[len(pods)])
		commands[p.Spec.Containers[0].Image] = name
		pods = append(pods, p)
	}
	tarball := filepath.Join(d.dir, "images", "images.tar")
	if err := os.Mkdir(filepath.Dir(tarball), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := tools.WriteImages(d.t.Context(), tarball, "component", commands); err != nil {
		d.t.Fatal(err)
	}
	if err := d.on.LoadImages(d.t.Context(), tarball, slices.Collect(maps.Keys(commands))...); err != nil {
		d.t.Fatal(err)
	}
	d.apply(pods...)
}

// controlPlaneRoot returns the directory that replaces / in the host paths of the control plane.
func (d *daemon) controlPlaneRoot() string { return filepath.Join(d.dir, "host") }

// faultDir returns the directory from which the program component reads which requests must
// fail.
func (d *daemon) faultDir() string {
	return filepath.Join(d.controlPlaneRoot(), "etc/kubernetes/pki/faults")
}

// failHealthChecks makes the API server respond with an error to the next health checks of a kind. The
// parameter responses is the number of these health checks.
func (d *daemon) failHealthChecks(kind string, responses int) {
	d.t.Helper()
	temp := filepath.Join(d.dir, "fault")
	if err := os.WriteFile(temp, []byte(strconv.Itoa(responses)), 0o600); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Rename(temp, filepath.Join(d.faultDir(), kind)); err != nil {
		d.t.Fatal(err)
	}
}

// kubeadmPod returns the pod in a manifest that kubeadm writes. Only the address of the host, the port
// of the probes and the root directory of the host paths are replaced.
func (d *daemon) kubeadmPod(name string, port, free int32) *v1.Pod {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../testdata/manifests/kubeadm", name+".yaml"))
	if err != nil {
		d.t.Fatal(err)
	}
	from, to := strconv.Itoa(int(port)), strconv.Itoa(int(free))
	changed := strings.NewReplacer("192.0.2.10", hostAddress(d.t), from, to).Replace(string(text))
	p := &v1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(changed), p); err != nil {
		d.t.Fatal(err)
	}
	if c := &p.Spec.Containers[0]; !strings.Contains(strings.Join(c.Command, " "), to) {
		c.Command = append(c.Command, "--secure-port="+to) // kubeadm uses the default port and omits the flag
	}
	for _, v := range p.Spec.Volumes {
		v.HostPath.Path = filepath.Join(d.controlPlaneRoot(), v.HostPath.Path)
	}
	return p
}

// freePorts returns n free ports of the host. The ports depend on the stack's number, which is
// unique on the host. Therefore no test of another process uses them.
func (d *daemon) freePorts(n int) []int32 {
	d.t.Helper()
	const each = 16
	first := 22000 + each*d.on.Reservation.Number
	var free []int32
	for port := first; port < first+each && len(free) < n; port++ {
		l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
		if err == nil {
			l.Close()
			free = append(free, int32(port))
		}
	}
	if len(free) < n {
		d.t.Fatalf("searching free ports from %d: got %d ports, want %d", first, len(free), n)
	}
	return free
}
