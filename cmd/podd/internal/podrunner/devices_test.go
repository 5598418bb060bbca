package podrunner

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// TestRequestsDevices checks which resources are devices of device plugins.
func TestRequestsDevices(t *testing.T) {
	for name, want := range map[v1.ResourceName]bool{"example.com/gpu": true, v1.ResourceCPU: false, "hugepages-2Mi": false} {
		p := &manifest.Pod{Object: &v1.Pod{}}
		p.Object.Spec.InitContainers = []v1.Container{{Resources: v1.ResourceRequirements{Requests: v1.ResourceList{name: resource.MustParse("1")}}}}
		s := &manifest.Set{Pods: map[types.NamespacedName]*manifest.Pod{{Name: "p"}: p}}
		if got := RequestsDevices(s); got != want {
			t.Errorf("%s: got %t, want %t", name, got, want)
		}
	}
}

// TestLockDevicePlugins checks that a run does not use the directory of device plugins while another
// program serves the registration in it, and that it uses a directory with the socket of a program
// that has exited.
func TestLockDevicePlugins(t *testing.T) {
	root := t.TempDir()
	socket := filepath.Join(root, "device-plugins", "kubelet.sock")
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		t.Fatal(err)
	}
	kubelet, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer kubelet.Close()
	noWait := func() { t.Error("waited for a lock that no process has") }
	if _, err := LockDevicePlugins(t.Context(), root, noWait); err == nil || !strings.Contains(err.Error(), "another node agent, such as a kubelet, which serves "+socket) {
		t.Errorf("with a kubelet: got %v, want an error about the kubelet", err)
	}
	kubelet.SetUnlinkOnClose(false)
	kubelet.Close()
	release, err := LockDevicePlugins(t.Context(), root, noWait)
	if err != nil {
		t.Fatalf("without a kubelet: got %v, want nil", err)
	}
	release()
}
