//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"podd/reconcile/device/plugin/plugintest"
	"podd/server"
)

const fancy = "example.com/fancy"

// newTestPlugin returns a device plugin. Each container gets a variable, a mount and, for each
// allocated device, a device node of /dev/null.
func newTestPlugin(d *daemon) *plugintest.Plugin {
	lib := filepath.Join(d.dir, "lib")
	if err := os.MkdirAll(lib, 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(lib, "driver"), []byte("the driver"), 0o644); err != nil {
		d.t.Fatal(err)
	}
	p := &plugintest.Plugin{Dir: filepath.Join(d.root(), "device-plugins"), Resource: fancy}
	p.Options.PreStartRequired = true
	p.AllocateFunc = func(ids []string) (*v1beta1.ContainerAllocateResponse, error) {
		r := &v1beta1.ContainerAllocateResponse{
			Envs:   map[string]string{"FANCY": strings.Join(ids, ",")},
			Mounts: []*v1beta1.Mount{{HostPath: lib, ContainerPath: "/usr/lib/fancy", ReadOnly: true}},
		}
		for _, id := range ids {
			r.Devices = append(r.Devices, &v1beta1.DeviceSpec{HostPath: "/dev/null", ContainerPath: "/dev/fancy-" + id, Permissions: "rw"})
		}
		return r, nil
	}
	p.SetDevices("one", "two")
	return p
}

// withDevices returns a container that requests n devices.
func withDevices(c v1.Container, n string) v1.Container {
	c.Resources.Limits = v1.ResourceList{fancy: resource.MustParse(n)}
	return c
}

// deviceAllocations returns the allocated devices in the pod resources API, each as
// "pod/container: ids".
func (d *daemon) deviceAllocations() ([]string, error) {
	conn, err := grpc.NewClient("unix://"+filepath.Join(d.root(), "pod-resources", "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	r, err := podresources.NewPodResourcesListerClient(conn).List(context.Background(), &podresources.ListPodResourcesRequest{})
	if err != nil {
		return nil, err
	}
	var all []string
	for _, p := range r.PodResources {
		for _, c := range p.Containers {
			if len(c.CpuIds)+len(c.Memory) > 0 {
				return nil, fmt.Errorf("pod %s: got the container %v, want no exclusive CPUs and no memory", p.Name, c)
			}
			var ids []string
			for _, dev := range c.Devices {
				ids = append(ids, dev.DeviceIds...)
			}
			all = append(all, strings.TrimSuffix(p.Name, "-"+d.host)+"/"+c.Name+": "+strings.Join(ids, " "))
		}
	}
	slices.Sort(all)
	return all, nil
}

// untilAllocations waits until deviceAllocations returns want.
func (d *daemon) untilAllocations(want ...string) {
	d.t.Helper()
	d.eventually("the pod resources API lists the expected devices", func() error {
		got, err := d.deviceAllocations()
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("got %q, want %q", got, want)
		}
		return err
	})
}

// wantDevices checks two lists of the pod resources API. The parameter has contains the expected
// devices of the pod's first container, and all contains the expected allocatable devices of the
// node.
func (d *daemon) wantDevices(name, has, all string) {
	d.t.Helper()
	conn, err := grpc.NewClient("unix://"+filepath.Join(d.root(), "pod-resources", "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		d.t.Fatal(err)
	}
	defer conn.Close()
	ids := func(devices []*podresources.ContainerDevices) string {
		var all []string
		for _, dev := range devices {
			all = append(all, dev.ResourceName+"="+strings.Join(dev.DeviceIds, ","))
		}
		return strings.Join(all, " ")
	}
	client := podresources.NewPodResourcesListerClient(conn)
	one, err := client.Get(d.t.Context(), &podresources.GetPodResourcesRequest{PodName: d.podName(name), PodNamespace: "default"})
	if err != nil {
		d.t.Fatal(err)
	}
	if got := ids(one.PodResources.Containers[0].Devices); got != has {
		d.t.Errorf("devices of the first container of pod %s: got %q, want %q", name, got, has)
	}
	node, err := client.GetAllocatableResources(d.t.Context(), &podresources.AllocatableResourcesRequest{})
	if err != nil {
		d.t.Fatal(err)
	}
	if got := ids(node.Devices); got != all {
		d.t.Errorf("allocatable devices: got %q, want %q", got, all)
	}
}

// untilDeviceHealth waits until the status of a pod's first container contains the given health of
// the device "one".
func (d *daemon) untilDeviceHealth(name string, health v1.ResourceHealthStatus) {
	d.t.Helper()
	want := []v1.ResourceStatus{{Name: fancy, Resources: []v1.ResourceHealth{{ResourceID: "one", Health: health}}}}
	d.untilPod("shows a device that is "+string(health), name, func(p *server.PodView) error {
		if got := p.Pod.Status.ContainerStatuses[0].AllocatedResourcesStatus; !reflect.DeepEqual(got, want) {
			return fmt.Errorf("got device health %+v, want %+v", got, want)
		}
		return nil
	})
}

// startPlugin starts a plugin, which is stopped at the end of the test.
func startPlugin(t *testing.T, p *plugintest.Plugin) {
	t.Helper()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
}

// TestDevicePlugin checks that a pod waits for a device plugin and gets a device of it, and that another
// pod waits until enough devices are free. podd must keep the allocations when it is killed or the
// plugin is stopped.
func TestDevicePlugin(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	look := "cat /usr/lib/fancy/driver; echo; echo $FANCY; ls /dev/fancy-*; echo lost >$(ls /dev/fancy-* | head -n 1) && echo written"
	web := d.pod("web", withDevices(shell("main", writeTrace("web.fancy", look)+serve("web")), "1"), shell("plain", serve("plain")))
	d.apply(web)
	d.untilReason("web", "no device plugin provides now")

	p := newTestPlugin(d)
	startPlugin(t, p)
	d.untilApplied("web")
	if got, want := d.readTrace("web.fancy"), "the driver\none\n/dev/fancy-one\nwritten"; got != want {
		t.Errorf("mount, variable and device in the container: got %q, want %q", got, want)
	}
	d.untilAllocations("web/main: one", "web/plain: ")
	d.wantDevices("web", fancy+"=one", fancy+"=one "+fancy+"=two")
	d.untilDeviceHealth("web", v1.ResourceHealthStatusHealthy)
	p.SetDevices("-one", "two")
	d.untilDeviceHealth("web", v1.ResourceHealthStatusUnhealthy)
	p.SetDevices("one", "two")
	d.untilDeviceHealth("web", v1.ResourceHealthStatusHealthy)

	big := d.pod("big", withDevices(shell("main", serve("big")), "2"))
	d.apply(big)
	d.untilProblem("big", "the pod requests 2 of "+fancy+"; the node has 2 for pods, of which other pods request 1")

	p.Stop()
	d.crash()
	d.untilAllocations("big/main: ", "web/main: one", "web/plain: ")
	d.untilReason("big", "no device plugin provides now")
	again := newTestPlugin(d)
	startPlugin(t, again)
	d.untilProblem("big", "other pods request 1")
	d.verb("restart", "web", "-c", "main")
	d.eventually("podd starts the restarted container with its device", func() error {
		if calls := again.Calls(); !slices.Equal(calls, []string{"PreStart one"}) {
			return fmt.Errorf("calls of the new plugin: got %q, want %q", calls, "PreStart one")
		}
		return nil
	})
	d.untilApplied("web")
	d.remove("web")
	d.untilApplied("big")
	d.untilAllocations("big/main: one two")
}

// TestHungDevicePlugin checks a device plugin in plugins_registry that does not respond to Allocate. It
// may delay only the pod that requests its device, and podd must be able to remove this pod.
func TestHungDevicePlugin(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	hung := make(chan struct{})
	p := &plugintest.Plugin{Dir: filepath.Join(d.root(), "plugins_registry"), Resource: fancy, WaitsForDiscovery: true}
	p.AllocateFunc = func([]string) (*v1beta1.ContainerAllocateResponse, error) {
		<-hung
		return &v1beta1.ContainerAllocateResponse{}, nil
	}
	p.SetDevices("one")
	d.eventually("podd has created the directory for plugins", func() error { _, err := os.Stat(p.Dir); return err })
	startPlugin(t, p)
	defer close(hung) // runs before the cleanup that stops the plugin, which would wait for the call
	d.apply(d.pod("stuck", withDevices(shell("main", serve("stuck")), "1")))
	d.eventually("the plugin is called", func() error {
		if calls := p.Calls(); len(calls) == 0 {
			return fmt.Errorf("got no call of the plugin, want one")
		}
		return nil
	})
	d.apply(d.pod("web", shell("main", serve("web"))))
	d.untilApplied("web")
	d.remove("stuck")
	d.untilGone("stuck")
}
