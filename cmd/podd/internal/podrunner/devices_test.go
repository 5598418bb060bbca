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

// TestRequestsDevices checks for which requested resources a run needs a device plugin.
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
// program, such as a kubelet, serves the registration on the socket in this directory. It must use the
// directory if the program has exited, even if the socket still exists.
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
	noWait := func() { t.Error("LockDevicePlugins waited for the lock, but no process holds it") }
	if _, err := LockDevicePlugins(t.Context(), root, noWait); err == nil || !strings.Contains(err.Error(), "another node agent, such as a kubelet, which serves "+socket) {
		t.Errorf("with a kubelet: got error %v, want one that names the kubelet and %s", err, socket)
	}
	kubelet.SetUnlinkOnClose(false)
	kubelet.Close()
	release, err := LockDevicePlugins(t.Context(), root, noWait)
	if err != nil {
		t.Fatalf("after the kubelet has exited: got error %v, want none", err)
	}
	release()
}
