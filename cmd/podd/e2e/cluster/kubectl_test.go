//go:build e2e

package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/e2e/harness"
	"podd/runtime/runtimetest/stack/tools"
)

// kubectlPath returns the path of kubectl, which it builds if the host has none.
var kubectlPath = sync.OnceValues(func() (string, error) {
	return harness.FindOrBuildKubectl(context.Background(), "../../../../testdata/controlplane", filepath.Join(plane.dir, "kubectl"))
})

// kubectl runs kubectl as the administrator and returns its output.
func kubectl(t *testing.T, words ...string) (string, error) {
	t.Helper()
	return kubectlWith(t, filepath.Join(plane.dir, "admin.kubeconfig"), words...)
}

// kubectlWith runs kubectl with a kubeconfig and returns its output.
func kubectlWith(t *testing.T, kubeconfig string, words ...string) (string, error) {
	t.Helper()
	path, err := kubectlPath()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{"--kubeconfig", kubeconfig}, words...)...)
	cmd.Env = []string{"HOME=" + plane.dir, "PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestKubectl checks that kubectl copies files into a pod and back, and that it debugs the pod
// with an ephemeral container. kubectl debug adds this container to the pod at the API server. podd
// must run it and report it in the pod's status.
func TestKubectl(t *testing.T) {
	t.Parallel()
	a, _ := newServingAgent(t, "n14")
	a.start().untilReady()
	const name = "n14-web"
	createBoundPod(t, a.node, name, nil, sleepingContainer("main"))
	a.untilStatus(name, "is ready", isReady)

	dir := t.TempDir()
	there, back := filepath.Join(dir, "there"), filepath.Join(dir, "back")
	text := strings.Repeat("some text\n", 100_000)
	if err := os.WriteFile(there, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{{"cp", there, "default/" + name + ":/tmp/copy"}, {"cp", "default/" + name + ":/tmp/copy", back}} {
		if out, err := kubectl(t, words...); err != nil {
			t.Fatalf("%v: %v: %s", words, err, out)
		}
	}
	if got, err := os.ReadFile(back); err != nil || string(got) != text {
		t.Errorf("copying a file into the pod and back: got error %v and %d bytes, want the same %d bytes", err, len(got), len(text))
	}

	debug := []string{"debug", name, "--image=podd.test/busybox:1", "--container=debugger", "--target=main", "--profile=general", "--attach=false", "--", "sh", "-c", "echo sees; ps; sleep 1000000"}
	if out, err := kubectl(t, debug...); err != nil {
		t.Fatalf("%v: %v: %s", debug, err, out)
	}
	a.eventually("the debugger sees the processes of its target", func() error {
		out, err := kubectl(t, "logs", name, "-c", "debugger")
		if err == nil && strings.Count(out, "sleep 1000000") < 2 {
			err = fmt.Errorf("got %s, want two processes \"sleep 1000000\", one in each container", out)
		}
		return err
	})
	a.eventually("the status has the ephemeral container", func() error {
		p, err := plane.pod("default", name)
		if err == nil && (len(p.Status.EphemeralContainerStatuses) != 1 || p.Status.EphemeralContainerStatuses[0].State.Running == nil || p.Status.ContainerStatuses[0].RestartCount != 0) {
			err = fmt.Errorf("got pod status %+v, want one running ephemeral container and no restart", p.Status)
		}
		return err
	})
}

// TestTop checks that kubectl top shows the values that metrics-server reads from podd: the
// memory of each container of a pod, and the memory of the node.
func TestTop(t *testing.T) {
	program, err := tools.EnsureMetricsServer(t.Context(), slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		t.Fatal(err)
	}
	plane.command(t, "metrics "+program)
	a, _ := newServingAgent(t, "n16")
	a.start().untilReady()
	const name = "n16-holds"
	holds := v1.Container{Name: "holds", Image: "podd.test/busybox:1", Command: []string{"sh", "-c", "dd if=/dev/zero of=/dev/shm/held bs=1M count=40; trap 'exit 3' TERM; sleep 1000000 & wait"}}
	createBoundPod(t, a.node, name, nil, holds, sleepingContainer("sleeps"))
	a.untilStatus(name, "is ready", isReady)
	for _, top := range []struct {
		words   []string
		want    string
		minimum int // MiB
	}{
		{[]string{"pod", name, "--containers"}, `(?m)^n16-holds +holds +\d+m +(\d+)Mi`, 40},
		{[]string{"pod", name, "--containers"}, `(?m)^n16-holds +sleeps +\d+m +(\d+)Mi`, 0},
		{[]string{"node", a.node}, `(?m)^n16 +\d+m +\d+% +(\d+)Mi +\d+%`, 40},
	} {
		want := regexp.MustCompile(top.want)
		a.eventually(fmt.Sprintf("kubectl top %v shows %s", top.words, top.want), func() error {
			out, err := kubectl(t, append([]string{"top"}, top.words...)...)
			found := want.FindStringSubmatch(out)
			if err != nil || found == nil {
				return fmt.Errorf("got error %v, output %s; want a line that matches %s", err, out, top.want)
			}
			if mebi, err := strconv.Atoi(found[1]); err != nil || mebi < top.minimum {
				return fmt.Errorf("got %s MiB, error %v; want %d MiB or more in %s", found[1], err, top.minimum, out)
			}
			return nil
		})
	}
}
