package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/e2e/freeport"
	"podd/cmd/podd/e2e/kubelet"
	"podd/runtime/runtimetest/child"
	"podd/runtime/runtimetest/stack"
)

// node is a kubelet or a podd, with a containerd that it shares with no other node.
type node struct {
	name  string // node name, which is the suffix of the names of the node's pods
	dir   string
	stack *stack.Stack
	port  int // the read-only port
	cmd   *exec.Cmd
	log   *os.File
}

func newNode(name, dir string, s *stack.Stack) (*node, error) {
	n := &node{name: name, dir: filepath.Join(dir, name), stack: s}
	for _, dir := range []string{n.manifestDir(), n.path("root"), n.path("logs")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	var err error
	n.port, err = freeport.Find()
	return n, err
}

func (n *node) path(name string) string { return filepath.Join(n.dir, name) }
func (n *node) manifestDir() string     { return n.path("manifests") }
func (n *node) cgroup() string          { return n.stack.CgroupParent() + "/" + n.name }

func (n *node) start(program string, args ...string) error {
	var err error
	if n.log, err = os.Create(n.path("log")); err != nil {
		return err
	}
	n.cmd = exec.Command(program, args...)
	n.cmd.Stdout, n.cmd.Stderr = n.log, n.log
	return child.Start(n.cmd)
}

func (n *node) startPodd(program string) error {
	return n.start(program, "--root-dir", n.path("root"), "--run-dir", n.path("run"), "--pod-logs-dir", n.path("logs"),
		"--pod-manifest-path", n.manifestDir(), "--hostname-override", n.name, "--container-runtime-endpoint", n.stack.Endpoint(),
		"--cgroup-root", n.cgroup(), "--healthz-port", "0", "--enable-server=false", "--read-only-port", strconv.Itoa(n.port),
		"--eviction-hard", "memory.available<1Mi", "--image-gc-high-threshold", "100") // a test host may be short of disk space
}

// startKubelet starts a standalone kubelet.
func (n *node) startKubelet(program string) error {
	args, err := kubelet.Options{Dir: n.dir, Name: n.name, Stack: n.stack, ManifestDir: n.manifestDir(), ReadOnlyPort: n.port}.WriteConfig()
	if err != nil {
		return err
	}
	return n.start(program, args...)
}

// logTail returns the last 2,000 bytes of the log.
func (n *node) logTail() []byte {
	text, _ := os.ReadFile(n.path("log"))
	return text[max(0, len(text)-2000):]
}

func (n *node) writeManifests(pods []*v1.Pod) error {
	for _, p := range pods {
		text, err := json.Marshal(p)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(n.manifestDir(), p.Name+".json"), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// stop removes the manifests and waits at most 30 seconds until the pods are removed. Then it
// kills the node.
func (n *node) stop() {
	if n.cmd == nil || n.cmd.Process == nil {
		return
	}
	files, _ := filepath.Glob(filepath.Join(n.manifestDir(), "*.json"))
	for _, f := range files {
		_ = os.Remove(f)
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(time.Second) {
		if podDirs, _ := filepath.Glob(n.path("root/pods/*")); len(podDirs) == 0 {
			break
		}
	}
	_ = n.cmd.Process.Kill()
	_ = n.cmd.Wait()
	_ = n.log.Close()
	kubelet.Unmount(n.dir)
}
