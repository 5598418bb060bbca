package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"podd/testdata/controlplane/cluster"
)

// nodeAddress is the address of the node in recordings.
const nodeAddress = "192.0.2.10"

// nodeName is the hostname that is given to the kubelet.
const nodeName = "node1"

// cgroupRoot is the root of the cgroups of pods. It is separate from the cgroups of other programs,
// because a kubelet removes every pod cgroup below its cgroup root that belongs to none of its
// pods.
const cgroupRoot = "podd-requests"

// evictMiB is the free memory, in MiB, below which the kubelet evicts pods.
const evictMiB = 1

const config = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {webhook: {enabled: false}, anonymous: {enabled: true}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /` + cgroupRoot + `
cgroupsPerQOS: true
enforceNodeAllocatable: [none]
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
makeIPTablesUtilChains: false
enableServer: false
healthzPort: 0
maxPods: 2000
fileCheckFrequency: 1s
localStorageCapacityIsolation: true
imageGCHighThresholdPercent: 100
allowedUnsafeSysctls: ["net.ipv4.conf.*", kernel.sem]
`

// resolvConf is the resolver configuration of the node.
const resolvConf = "nameserver 192.0.2.53\nsearch lan.example\noptions rotate\n"

// kubelet is a kubelet with files below one directory.
type kubelet struct {
	dir        string
	kubeconfig string // "" for a standalone kubelet
	address    string // address of the node; with an API server, it must be an address of the host
	cmd        *exec.Cmd
	ended      <-chan struct{} // closed after cmd has exited
	log        *os.File
	cleanup    []restore
}

// restore restores a part of the host's state.
type restore func()

// sysctls are the settings in /proc/sys that a kubelet changes. fixedPaths are the paths that a
// kubelet creates with every configuration; a directory precedes its content.
var (
	sysctls    = []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"}
	fixedPaths = []string{
		"/var/lib/kubelet", "/var/lib/kubelet/device-plugins", "/var/lib/kubelet/device-plugins/kubelet.sock", "/var/log/containers",
		"/usr/libexec/kubernetes", "/usr/libexec/kubernetes/kubelet-plugins", "/usr/libexec/kubernetes/kubelet-plugins/volume", "/usr/libexec/kubernetes/kubelet-plugins/volume/exec",
	}
)

// saveHost records the state of the host that a kubelet changes. It returns the functions that
// restore this state.
func saveHost() (restores []restore) {
	for _, t := range sysctls {
		path := "/proc/sys/" + t
		if value, err := os.ReadFile(path); err == nil {
			restores = append(restores, func() { _ = os.WriteFile(path, value, 0o644) })
		}
	}
	for _, path := range fixedPaths {
		if _, err := os.Lstat(path); err != nil {
			restores = append(restores, func() { _ = os.Remove(path) }) // fails if another process has created files in the directory
		}
	}
	return restores
}

func (k *kubelet) rootDir() string      { return filepath.Join(k.dir, "root") }
func (k *kubelet) logsDir() string      { return filepath.Join(k.dir, "logs") }
func (k *kubelet) manifestsDir() string { return filepath.Join(k.dir, "manifests") }
func (k *kubelet) manifestPath(pod string) string {
	return filepath.Join(k.manifestsDir(), pod+".json")
}

// podName returns the name that the kubelet gives to a pod.
func (k *kubelet) podName(pod map[string]any) string {
	if k.kubeconfig == "" {
		return name(pod) + "-" + nodeName
	}
	return name(pod)
}

// hostRoot returns a directory that replaces the root directory in host paths.
func (k *kubelet) hostRoot() string { return filepath.Join(k.dir, "machine") }

func (k *kubelet) socket() string { return filepath.Join(k.dir, "cri.sock") }

// start starts the kubelet with the program at path.
func (k *kubelet) start(path string) error {
	for _, dir := range []string{k.rootDir(), k.logsDir(), k.manifestsDir(), filepath.Join(k.rootDir(), "seccomp")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for _, dir := range cgroups() {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	resolv, file := filepath.Join(k.dir, "resolv.conf"), filepath.Join(k.dir, "config.yaml")
	text := config + fmt.Sprintf("evictionHard: {memory.available: %dMi}\nstaticPodPath: %s\nresolvConf: %s\npodLogsDir: %s\ncontainerRuntimeEndpoint: unix://%s\n", evictMiB, k.manifestsDir(), resolv, k.logsDir(), k.socket())
	if err := os.WriteFile(resolv, []byte(resolvConf), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	var err error
	if k.log, err = os.Create(filepath.Join(k.dir, "kubelet.log")); err != nil {
		return err
	}
	k.cleanup = saveHost()
	args := []string{"--config", file, "--root-dir", k.rootDir(), "--cert-dir", filepath.Join(k.dir, "pki"),
		"--hostname-override", nodeName, "--node-ip", k.address, "--runtime-cgroups", "/", "--v", "2"}
	if k.kubeconfig != "" {
		args = append(args, "--kubeconfig", k.kubeconfig)
	}
	k.cmd = exec.Command(unshare[0], append(append(slices.Clone(unshare[1:]), path), args...)...)
	k.cmd.Stdout, k.cmd.Stderr = k.log, k.log
	k.ended, err = cluster.StartChild(k.cmd)
	return err
}

// stop kills the kubelet, and thereby removes the kubelet's mount namespace. Then it removes the
// cgroups of pods and restores the state of the host.
func (k *kubelet) stop() {
	_ = k.cmd.Process.Kill()
	<-k.ended
	_ = k.log.Close()
	for _, dir := range cgroups() {
		removeCgroup(dir)
	}
	for _, restore := range slices.Backward(k.cleanup) {
		restore()
	}
}

// cgroups returns the directories of cgroupRoot in all hierarchies.
func cgroups() []string {
	paths, _ := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	var dirs []string
	for _, path := range paths {
		dirs = append(dirs, filepath.Join(filepath.Dir(path), cgroupRoot))
	}
	return dirs
}

// removeCgroup removes a cgroup without processes, and its children.
func removeCgroup(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			removeCgroup(filepath.Join(dir, e.Name()))
		}
	}
	_ = os.Remove(dir)
}
