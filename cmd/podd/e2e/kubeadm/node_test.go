//go:build e2e

package kubeadm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
	"podd/runtime/runtimetest/child"
	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/tools"
)

// A node is a set of namespaces in which kubeadm sets up a node of a cluster.
type node struct {
	name, address string
	dir           string // a tmpfs
	programs      string // the directory with the programs of Kubernetes
	podd          string // a symlink to podd named kubelet
	runtime       *stack.Stack
}

// prepare sets up this process's namespaces as the node.
func (n *node) prepare(podd string) error {
	if err := setUpNamespaces(n.name, n.dir); err != nil {
		return err
	}
	n.address = firstAddress
	var err error
	if n.name == second {
		n.address = secondAddress
		err = waitForUplink()
	} else {
		err = ip("link", "add", uplink, "type", "veth", "peer", "name", "unused")
	}
	if err != nil {
		return err
	}
	n.podd = filepath.Join(n.dir, "bin", "kubelet")
	return errors.Join(addUplink(n.address), os.Mkdir(filepath.Dir(n.podd), 0o700), os.Symlink(podd, n.podd))
}

// images returns the images that kubeadm uses, and the path of the program in each image. Images
// that no phase runs contain an arbitrary program.
func (n *node) images(ctx context.Context) (map[string]string, error) {
	list := exec.CommandContext(ctx, filepath.Join(n.programs, "kubeadm"), "config", "images", "list", "--kubernetes-version", manifest.KubernetesVersion)
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", list, err)
	}
	all := map[string]string{}
	for _, image := range strings.Fields(string(out)) {
		name, _, _ := strings.Cut(path.Base(image), ":")
		all[image] = filepath.Join(n.programs, name)
		if _, err := os.Stat(all[image]); err != nil {
			all[image] = filepath.Join(n.runtime.Tools.CNI, "loopback")
		}
	}
	return all, nil
}

func (n *node) loadImages(ctx context.Context) error {
	images, err := n.images(ctx)
	if err != nil {
		return err
	}
	tarball := filepath.Join(n.dir, "images.tar")
	defer os.Remove(tarball)
	if err := tools.WriteProgramImages(tarball, images); err != nil {
		return err
	}
	var names []string
	for name := range images {
		names = append(names, name)
	}
	return n.runtime.LoadImages(ctx, tarball, names...)
}

// config writes kubeadm's configuration and returns the path of the file. The configuration
// contains no setting of podd except the cgroup driver and root.
func (n *node) config(t *testing.T, kinds ...string) string {
	t.Helper()
	text := strings.NewReplacer("NODE", n.name, "ADDRESS", n.address, "SOCKET", n.runtime.Endpoint(), "CGROUP", n.runtime.CgroupParent(), "SERVER", firstAddress).
		Replace(strings.Join(kinds, "---\n"))
	file := filepath.Join(n.dir, "kubeadm.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// kubeadm runs kubeadm, which must succeed, and returns its output.
func (n *node) kubeadm(t *testing.T, words ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(n.programs, "kubeadm"), words...)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(n.podd)+":"+os.Getenv("PATH"))
	out, err := child.CombinedOutput(cmd)
	t.Logf("kubeadm %s:\n%s", strings.Join(words, " "), out)
	if err != nil {
		t.Fatalf("kubeadm %s: %v", strings.Join(words, " "), err)
	}
	return string(out)
}

// flags returns the flags in the systemd unit of kubeadm's package, the flags that kubeadm has
// written for the kubelet, and flags that disable evictions and image garbage collection for lack of
// disk space. kubeadm configures the cgroup root of the first node for all nodes. Each node needs its own,
// because a kubelet, or podd in its place, kills the processes of unknown pods in its cgroup root.
func (n *node) flags(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("/var/lib/kubelet/kubeadm-flags.env")
	if err != nil {
		t.Fatal(err)
	}
	written := strings.Trim(strings.TrimPrefix(strings.TrimSpace(string(text)), "KUBELET_KUBEADM_ARGS="), `"`)
	return append([]string{
		"--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf", "--kubeconfig=/etc/kubernetes/kubelet.conf",
		"--config=/var/lib/kubelet/config.yaml", "--cgroup-root=" + n.runtime.CgroupParent(),
		"--eviction-hard=memory.available<1Mi", "--image-gc-high-threshold=100", // a test host may be short of disk space
	}, strings.Fields(written)...)
}

// start starts podd or a kubelet as the node's agent, until the test ends.
func (n *node) start(t *testing.T, name string) *agent {
	t.Helper()
	program, flags := n.podd, append(n.flags(t), "--run-dir="+filepath.Join(n.dir, "run"))
	if name != "podd" {
		program, flags = filepath.Join(n.programs, name), n.flags(t)
	}
	log, err := os.CreateTemp(n.dir, "agent.log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	a := &agent{name: name, cmd: exec.Command(program, flags...), log: log.Name(), began: time.Now(), ended: make(chan struct{})}
	a.cmd.Stdout, a.cmd.Stderr = log, log
	if err := child.Start(a.cmd); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = a.cmd.Wait()
		close(a.ended)
	}()
	t.Cleanup(func() { a.end(t) })
	return a
}

// An agent is the process that runs the node's pods.
type agent struct {
	name  string
	cmd   *exec.Cmd
	log   string
	began time.Time
	ended chan struct{}
}

// exited returns an error if the agent has exited.
func (a *agent) exited() error {
	select {
	case <-a.ended:
		return fmt.Errorf("the agent exited: %s", a.cmd.ProcessState)
	default:
		return nil
	}
}

func (a *agent) kill() {
	_ = a.cmd.Process.Kill()
	<-a.ended
}

func (a *agent) end(t *testing.T) {
	a.kill()
	if text, err := os.ReadFile(a.log); err == nil && t.Failed() {
		t.Logf("end of the agent's log:\n%s", text[max(0, len(text)-20000):])
	}
}

// createCgroups creates the parent cgroup of the pods, because the kubelet does not create it.
func (n *node) createCgroups() error {
	const mounts = "/sys/fs/cgroup"
	if _, err := os.Stat(mounts + "/cgroup.controllers"); err == nil {
		return os.MkdirAll(mounts+n.runtime.CgroupParent(), 0o755)
	}
	all, err := filepath.Glob(mounts + "/*/tasks")
	for _, tasks := range all {
		err = errors.Join(err, os.MkdirAll(filepath.Dir(tasks)+n.runtime.CgroupParent(), 0o755))
	}
	return err
}

// containers returns the IDs of the running containers by name.
func (n *node) containers(t *testing.T) map[string]string {
	t.Helper()
	conn, err := grpc.NewClient(n.runtime.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	running := &runtimev1.ContainerFilter{State: &runtimev1.ContainerStateValue{State: runtimev1.ContainerState_CONTAINER_RUNNING}}
	reply, err := runtimev1.NewRuntimeServiceClient(conn).ListContainers(t.Context(), &runtimev1.ListContainersRequest{Filter: running})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, c := range reply.GetContainers() {
		all[c.GetMetadata().GetName()] = c.GetId()
	}
	return all
}

// reset removes everything that a test has left on a node.
func (n *node) reset(t *testing.T) {
	err := n.runtime.RemovePods(context.WithoutCancel(t.Context()))
	for range 2 { // the kubelet mounts its directory onto itself
		_ = unix.Unmount("/var/lib/kubelet", unix.MNT_DETACH)
	}
	for _, dir := range []string{"/etc/kubernetes", "/var/lib/kubelet", "/var/lib/etcd", "/var/log/pods"} {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		t.Errorf("resetting the node: %v", err)
	}
}
