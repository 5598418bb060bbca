package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
)

// nodeAddress is the node's in recordings.
const nodeAddress = "192.0.2.10"

// nodeName is what the kubelet takes the machine's name for.
const nodeName = "node1"

// cgroupRoot keeps the pods' cgroups apart from those of anybody else here: a
// kubelet removes every pod cgroup below its own that it does not know.
const cgroupRoot = "podd-requests"

// evictMiB is how little free memory makes it evict pods.
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

// resolvConf is the node's.
const resolvConf = "nameserver 192.0.2.53\nsearch lan.example\noptions rotate\n"

// kubelet is one that runs on its own below a directory.
type kubelet struct {
	dir        string
	kubeconfig string // "" for one on its own
	address    string // the node's; one that is known to an API server must have it
	cmd        *exec.Cmd
	log        *os.File
	machine    []restore
}

// restore puts something of the machine back as it was.
type restore func()

// tunables are what a kubelet sets in /proc/sys, and elsewhere what it makes
// wherever it is told to be, what is in a directory behind it.
var (
	tunables  = []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"}
	elsewhere = []string{
		"/var/lib/kubelet", "/var/lib/kubelet/device-plugins", "/var/lib/kubelet/device-plugins/kubelet.sock", "/var/log/containers",
		"/usr/libexec/kubernetes", "/usr/libexec/kubernetes/kubelet-plugins", "/usr/libexec/kubernetes/kubelet-plugins/volume", "/usr/libexec/kubernetes/kubelet-plugins/volume/exec",
	}
)

// remember sees how the machine is before a kubelet changes it.
func remember() (all []restore) {
	for _, t := range tunables {
		path := "/proc/sys/" + t
		if value, err := os.ReadFile(path); err == nil {
			all = append(all, func() { _ = os.WriteFile(path, value, 0o644) })
		}
	}
	for _, path := range elsewhere {
		if _, err := os.Lstat(path); err != nil {
			all = append(all, func() { _ = os.Remove(path) }) // not when others use it by now
		}
	}
	return all
}

func (k *kubelet) root() string      { return filepath.Join(k.dir, "root") }
func (k *kubelet) logs() string      { return filepath.Join(k.dir, "logs") }
func (k *kubelet) manifests() string { return filepath.Join(k.dir, "manifests") }
func (k *kubelet) manifest(pod string) string {
	return filepath.Join(k.manifests(), pod+".json")
}

// known is the name that it has for a pod.
func (k *kubelet) known(pod map[string]any) string {
	if k.kubeconfig == "" {
		return name(pod) + "-" + nodeName
	}
	return name(pod)
}

// machineRoot is a directory for what pods have of the machine's own files.
func (k *kubelet) machineRoot() string { return filepath.Join(k.dir, "machine") }

func (k *kubelet) socket() string { return filepath.Join(k.dir, "cri.sock") }

// start runs the program at path.
func (k *kubelet) start(path string) error {
	for _, dir := range []string{k.root(), k.logs(), k.manifests(), filepath.Join(k.root(), "seccomp")} {
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
	text := config + fmt.Sprintf("evictionHard: {memory.available: %dMi}\nstaticPodPath: %s\nresolvConf: %s\npodLogsDir: %s\ncontainerRuntimeEndpoint: unix://%s\n", evictMiB, k.manifests(), resolv, k.logs(), k.socket())
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
	k.machine = remember()
	args := []string{"--config", file, "--root-dir", k.root(), "--cert-dir", filepath.Join(k.dir, "pki"),
		"--hostname-override", nodeName, "--node-ip", k.address, "--runtime-cgroups", "/", "--v", "2"}
	if k.kubeconfig != "" {
		args = append(args, "--kubeconfig", k.kubeconfig)
	}
	k.cmd = exec.Command(unshare[0], append(append(slices.Clone(unshare[1:]), path), args...)...)
	k.cmd.Stdout, k.cmd.Stderr = k.log, k.log
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return k.cmd.Start()
}

// stop ends the kubelet, with which its mounts go, takes away its cgroups and puts
// the machine back as it was.
func (k *kubelet) stop() {
	_ = k.cmd.Process.Kill()
	_ = k.cmd.Wait()
	_ = k.log.Close()
	for _, dir := range cgroups() {
		removeCgroup(dir)
	}
	for _, put := range slices.Backward(k.machine) {
		put()
	}
}

// cgroups are the root's directories in every hierarchy.
func cgroups() []string {
	found, _ := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	var all []string
	for _, path := range found {
		all = append(all, filepath.Join(filepath.Dir(path), cgroupRoot))
	}
	return all
}

// removeCgroup removes a cgroup without processes, and those in it.
func removeCgroup(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			removeCgroup(filepath.Join(dir, e.Name()))
		}
	}
	_ = os.Remove(dir)
}
