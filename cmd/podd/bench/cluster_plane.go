package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/cmd/podd/e2e/controlplane"
	"podd/cmd/podd/e2e/kubelet"
	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/tools"
)

// kubeletName is the name of the kubelet's node.
const kubeletName = "kubelet"

// cluster is a cluster with the nodes podd and kubelet.
type cluster struct {
	b        *bench
	plane    *controlplane.Plane
	programs tools.ControlPlane
}

// joinCluster makes podd a node of the cluster until leaveCluster is called. It starts the
// cluster if necessary.
func (b *bench) joinCluster(ctx context.Context) (*cluster, error) {
	if b.cluster == nil {
		printProgress("cluster", "starting etcd and kube-apiserver")
		programs, err := tools.EnsureControlPlane(ctx, slog.Default())
		if err != nil {
			return nil, err
		}
		plane, err := controlplane.Start(ctx, programs, filepath.Join(b.dir, "plane"), nodeName, kubeletName)
		if err != nil {
			return nil, err
		}
		b.cluster = &cluster{b, plane, programs}
		if err := b.cluster.createRootCA(); err != nil {
			return nil, err
		}
	}
	// The iptables chains would stay on the host.
	b.daemon.extraFlags = []string{"--kubeconfig", b.cluster.kubeconfig(nodeName), "--make-iptables-util-chains=false"}
	return b.cluster, nil
}

// leaveCluster stops podd. The next podd is started without the kubeconfig, so that it is not a
// node of the cluster.
func (b *bench) leaveCluster() error {
	b.daemon.extraFlags = nil
	return b.daemon.stop()
}

// createRootCA creates the ConfigMap with the cluster's CA. Every pod mounts this ConfigMap. The
// controller manager, which usually creates the ConfigMap, is not running.
func (c *cluster) createRootCA() error {
	ca, err := os.ReadFile(filepath.Join(c.plane.Dir, "ca.crt"))
	if err != nil {
		return err
	}
	root := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kube-root-ca.crt"}, Data: map[string]string{"ca.crt": string(ca)}}
	return c.plane.Do(http.MethodPost, defaultNamespacePath+"configmaps", root, nil)
}

func (c *cluster) close() error { return c.plane.Stop() }

func (c *cluster) kubeconfig(node string) string {
	return filepath.Join(c.plane.Dir, node+".kubeconfig")
}

// startPodd starts podd. It returns when podd has renewed its lease.
func (c *cluster) startPodd(ctx context.Context) error {
	startTime := time.Now()
	if err := c.b.daemon.startAndSettle(ctx); err != nil {
		return err
	}
	return c.waitForLeaseRenewal(ctx, nodeName, startTime)
}

// waitForLeaseRenewal waits until a node has renewed its lease. It ignores renewals before the time
// notBefore.
func (c *cluster) waitForLeaseRenewal(ctx context.Context, node string, notBefore time.Time) error {
	for {
		var l coordination.Lease
		err := c.plane.Do(http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"+node, nil, &l)
		if err == nil && l.Spec.RenewTime.After(notBefore) {
			return sleep(ctx, podRoundPause)
		}
		if err != nil && !errors.Is(err, controlplane.ErrNotFound) {
			return err
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("waiting until node %s renews its lease: %w", node, err)
		}
	}
}

// agentOptions describe a node of the cluster with its own containerd.
type agentOptions struct {
	name     string   // name of the node
	dir      string   // directory for all files of the node
	program  string   // path of the kubelet, or of podd under the name kubelet
	flags    []string // additional flags
	pressure string   // see kubelet.Options.Pressure
}

// agentNode is a kubelet, or a podd that replaces it, with its own containerd.
type agentNode struct {
	name, dir   string
	stack       *stack.Stack
	cmd         *exec.Cmd
	exited      chan struct{}
	restoreHost func()
}

// startKubeletNode starts a kubelet. It has its own containerd, because a kubelet stops all
// containers of its runtime that are not in its pods.
func (c *cluster) startKubeletNode(ctx context.Context) (*agentNode, error) {
	return c.startAgentNode(ctx, agentOptions{name: kubeletName, dir: filepath.Join(c.b.dir, "k"), program: filepath.Join(c.programs.Programs, "kubelet")})
}

// startAgentNode starts a containerd and the program of a node. It returns when the program has
// renewed its lease.
func (c *cluster) startAgentNode(ctx context.Context, o agentOptions) (k *agentNode, err error) {
	printProgress(o.name, "starting "+o.program+" with a separate containerd")
	k = &agentNode{name: o.name, dir: o.dir, restoreHost: kubelet.SaveHost(o.dir)}
	defer func() {
		if err != nil {
			err = errors.Join(err, k.close())
		}
	}()
	if err = os.MkdirAll(o.dir, 0o755); err != nil {
		return k, err
	}
	if k.stack, err = stack.Start(ctx, stack.Options{Dir: filepath.Join(o.dir, "s"), Masquerade: true}); err != nil {
		return k, err
	}
	flags, err := kubelet.Options{Dir: o.dir, Name: k.name, Stack: k.stack, Kubeconfig: c.kubeconfig(k.name), Pressure: o.pressure}.WriteConfig()
	if err != nil {
		return k, err
	}
	log, err := os.OpenFile(filepath.Join(c.b.dir, o.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return k, err
	}
	defer log.Close() // the program has its own copy of the file descriptor
	cmd := exec.Command(o.program, append(flags, o.flags...)...)
	cmd.Stdout, cmd.Stderr = log, log
	startTime, exited, err := launch(cmd)
	if err != nil {
		return k, fmt.Errorf("starting %s: %w", o.program, err)
	}
	k.cmd, k.exited = cmd, exited
	return k, c.waitForLeaseRenewal(ctx, k.name, startTime)
}

// close stops the program and removes its pods and files.
func (k *agentNode) close() (err error) {
	if k.cmd != nil {
		err = k.cmd.Process.Kill()
		<-k.exited
	}
	kubelet.Unmount(k.dir)
	if k.stack != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // long, because the node may have many pods
		defer cancel()
		err = errors.Join(err, k.stack.Destroy(ctx))
	}
	k.restoreHost()
	return err
}
