package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"podd/runtime"
)

// A DeviceGrant contains the devices of a resource that are allocated to a container.
type DeviceGrant struct {
	Resource string
	IDs      []string
	// Response is the plugin's response to Allocate; it may be nil.
	Response *v1beta1.ContainerAllocateResponse
}

// SupportsCDI reports whether a runtime supports CDI devices. It decides by the version,
// because older versions ignore such devices silently. It returns true for an unknown runtime
// or version.
func SupportsCDI(n runtime.Node) bool {
	minVersions := map[string][2]int{"containerd": {1, 7}, "cri-o": {1, 27}}
	var major, minor int
	minVersion, isKnown := minVersions[n.Name]
	if _, err := fmt.Sscanf(strings.TrimPrefix(n.Version, "v"), "%d.%d", &major, &minor); err != nil || !isKnown {
		return true
	}
	return major > minVersion[0] || major == minVersion[0] && minor >= minVersion[1]
}

// A pluginDevices contains the combined responses of all device plugins for a container. As in the
// kubelet, if two responses set the same variable, path or annotation, the first response is used.
// Values in the manifest replace values of plugins.
type pluginDevices struct {
	envs        []*cri.KeyValue
	mounts      []*cri.Mount
	devices     []*cri.Device
	annotations map[string]string
	cdi         []*cri.CDIDevice
}

func newPluginDevices(devices []DeviceGrant) pluginDevices {
	p := pluginDevices{annotations: map[string]string{}}
	seen := map[[2]string]bool{}
	isFirst := func(kind, name string) bool {
		isSeen := seen[[2]string{kind, name}]
		seen[[2]string{kind, name}] = true
		return !isSeen
	}
	for _, d := range devices {
		r := d.Response
		for _, name := range slices.Sorted(maps.Keys(r.GetEnvs())) {
			if isFirst("env", name) {
				p.envs = append(p.envs, &cri.KeyValue{Key: name, Value: []byte(r.Envs[name])})
			}
		}
		for _, m := range r.GetMounts() {
			if isFirst("mount", m.ContainerPath) {
				p.mounts = append(p.mounts, &cri.Mount{ContainerPath: m.ContainerPath, HostPath: m.HostPath, Readonly: m.ReadOnly})
			}
		}
		for _, dev := range r.GetDevices() {
			if isFirst("device", dev.ContainerPath) {
				p.devices = append(p.devices, &cri.Device{ContainerPath: dev.ContainerPath, HostPath: dev.HostPath, Permissions: dev.Permissions})
			}
		}
		for _, c := range r.GetCdiDevices() {
			if isFirst("cdi", c.Name) {
				p.cdi = append(p.cdi, &cri.CDIDevice{Name: c.Name})
			}
		}
		for name, value := range r.GetAnnotations() {
			if isFirst("annotation", name) {
				p.annotations[name] = value
			}
		}
	}
	return p
}

// deviceIDs returns the IDs of a container's devices by resource.
func deviceIDs(devices []DeviceGrant) map[string][]string {
	ids := map[string][]string{}
	for _, d := range devices {
		ids[d.Resource] = d.IDs
	}
	return ids
}

// mergeInto copies b into a, replacing equal keys, and returns a.
func mergeInto(a, b map[string]string) map[string]string {
	maps.Copy(a, b)
	return a
}
