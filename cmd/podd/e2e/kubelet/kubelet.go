// Package kubelet configures a kubelet that runs on the same host as podd. This kubelet changes as
// little of the host as possible, and the package can undo the changes.
package kubelet

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"podd/cmd/podd/e2e/freeport"
	"podd/reconcile/cgroup"
	"podd/reconcile/render"
	"podd/runtime/runtimetest/stack"
)

// Options describe the node of a kubelet. Dir, Name and Stack are required.
type Options struct {
	Dir   string // directory of the kubelet's files
	Name  string // name of the node
	Stack *stack.Stack

	// Pressure contains settings of evictions, image garbage collection and reservations in YAML. ""
	// means that the kubelet evicts pods only if nearly no memory is available, and removes no images.
	Pressure     string
	ManifestDir  string // the directory of static pods
	Kubeconfig   string // "" means a standalone kubelet
	ReadOnlyPort int    // 0 means that the kubelet does not serve this port
}

// baseConfig is a configuration with which a kubelet changes as little of the host as possible.
// WriteConfig adds the paths, the cgroup, the endpoint of the runtime and the port.
const baseConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {webhook: {enabled: false}, anonymous: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
makeIPTablesUtilChains: false
healthzPort: 0
address: 127.0.0.1
fileCheckFrequency: 1s
`

// noPressure is the default of Options.Pressure. A test host may be short of disk space.
const noPressure = `enforceNodeAllocatable: [none]
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 1Mi}
`

// WriteConfig writes the configuration and returns the kubelet's flags.
func (o Options) WriteConfig() ([]string, error) {
	cgroups := o.Stack.CgroupParent() + "/" + o.Name
	if err := cgroup.Create(render.Cgroup{Path: cgroups}); err != nil {
		return nil, err
	}
	port, err := freeport.Find()
	if err != nil {
		return nil, err
	}
	text := baseConfig + cmp.Or(o.Pressure, noPressure) + fmt.Sprintf("cgroupRoot: %s\npodLogsDir: %s\ncontainerRuntimeEndpoint: %s\nport: %d\n", cgroups, o.path("logs"), o.Stack.Endpoint(), port)
	if o.ManifestDir != "" {
		text += "staticPodPath: " + o.ManifestDir + "\n"
	}
	if o.ReadOnlyPort != 0 {
		text += fmt.Sprintf("readOnlyPort: %d\n", o.ReadOnlyPort)
	}
	if err := os.WriteFile(o.path("config.yaml"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	flags := []string{"--config", o.path("config.yaml"), "--root-dir", o.path("root"), "--cert-dir", o.path("pki"),
		"--hostname-override", o.Name, "--v", "2"}
	if o.Kubeconfig != "" {
		return append(flags, "--kubeconfig", o.Kubeconfig), nil
	}
	// Only a standalone kubelet gets this address, because an API server rejects a loopback
	// address.
	return append(flags, "--node-ip", "127.0.0.1"), nil
}

func (o Options) path(name string) string { return filepath.Join(o.Dir, name) }

// Unmount unmounts all mounts below dir. Pods of a kubelet still have mounts there if the kubelet
// was killed.
func Unmount(dir string) {
	mounts, _ := mountinfo.GetMounts(mountinfo.PrefixFilter(filepath.Join(dir, "root")))
	for _, m := range slices.Backward(mounts) {
		_ = unix.Unmount(m.Mountpoint, unix.MNT_DETACH)
	}
}
