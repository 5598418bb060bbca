//go:build e2e

package stack_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/tools"
)

// patience is how long what must come is waited for.
const patience = time.Minute

// both runs a test over the new and the old end of what podd supports.
func both(t *testing.T, test func(t *testing.T, s *stack.Stack)) {
	for _, flavor := range []tools.Flavor{tools.Pinned, tools.Debian} {
		t.Run(string(flavor), func(t *testing.T) { test(t, stack.ForTest(t, stack.Options{Flavor: flavor})) })
	}
}

func TestPodAnswersAndLeavesNothing(t *testing.T) {
	both(t, func(t *testing.T, s *stack.Stack) {
		client := connect(t, s)
		pod := runPod(t, client, "web", stack.WebImage)
		want := "hello from web\n"
		if got := get(t, "http://"+pod.ip+":8080/"); got != want {
			t.Errorf("the pod answers %q, want %q", got, want)
		}
		if l, err := s.Leftovers(t.Context()); err != nil || l.Sandboxes != 1 || l.Containers != 1 || l.Shims != 1 || l.NetNS != 1 || l.Addresses != 1 || l.Mounts == 0 || l.Cgroups == 0 || l.Rules == 0 {
			t.Errorf("while the pod runs: got %s, %v", l, err)
		}
		pod.remove(t, client)
		wantNothing(t, s)
	})
}

func TestSeccompProfileIsApplied(t *testing.T) {
	both(t, func(t *testing.T, s *stack.Stack) {
		pod := runPod(t, connect(t, s), "web", stack.WebImage)
		pid, err := os.ReadFile(filepath.Join(s.Dir, "stack/run/io.containerd.runtime.v2.task/k8s.io", pod.container, "init.pid"))
		if err != nil {
			t.Fatal(err)
		}
		status, err := os.ReadFile(filepath.Join("/proc", string(pid), "status"))
		if err != nil || !strings.Contains(string(status), "\nSeccomp:\t2\n") {
			t.Errorf("got %s, %v; want Seccomp 2, filtered", status, err)
		}
	})
}

func TestHostPort(t *testing.T) {
	both(t, func(t *testing.T, s *stack.Stack) {
		client := connect(t, s)
		pod := runPod(t, client, "web", stack.WebImage, &runtimev1.PortMapping{ContainerPort: 8080, HostPort: 18080})
		get(t, "http://"+pod.ip+":8080/")
		// The host's own address: from 127.0.0.1 it would need route_localnet.
		if got, want := get(t, "http://"+hostAddress(t)+":18080/"), "hello from web\n"; got != want {
			t.Errorf("the host port answers %q, want %q", got, want)
		}
		pod.remove(t, client)
		wantNothing(t, s)
	})
}

func TestPodsOutliveContainerd(t *testing.T) {
	both(t, func(t *testing.T, s *stack.Stack) {
		pod := runPod(t, connect(t, s), "web", stack.WebImage)
		url := "http://" + pod.ip + ":8080/"
		get(t, url)
		for name, end := range map[string]func(context.Context) error{"Stop": s.Stop, "Kill": s.Kill} {
			if err := end(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s.Running() {
				t.Errorf("after %s containerd runs", name)
			}
			get(t, url)
			if err := s.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			get(t, url)
		}
		pod.remove(t, connect(t, s))
		wantNothing(t, s)
	})
}

func TestDestroyWhileEverythingRuns(t *testing.T) {
	for _, alive := range []bool{true, false} {
		t.Run(fmt.Sprintf("containerd alive %v", alive), func(t *testing.T) {
			both(t, func(t *testing.T, s *stack.Stack) {
				client := connect(t, s)
				runPod(t, client, "web", stack.WebImage)
				runPod(t, client, "more", stack.WebImage, &runtimev1.PortMapping{ContainerPort: 8080, HostPort: 18081})
				if !alive {
					if err := s.Kill(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				traces := tracesOf(t, s)
				if err := s.Destroy(t.Context()); err != nil {
					t.Fatal(err)
				}
				wantGone(t, s, traces)
			})
		})
	}
}

func TestReapAfterTheOwnerWasKilled(t *testing.T) {
	if dir := os.Getenv("PODD_STACK_TEST_OWNER"); dir != "" {
		own(t, dir) // this is the process to be killed
		return
	}
	for _, flavor := range []tools.Flavor{tools.Pinned, tools.Debian} {
		t.Run(string(flavor), func(t *testing.T) {
			dir, err := os.MkdirTemp("", "podd-")
			if err != nil {
				t.Fatal(err)
			}
			owner := exec.Command(os.Args[0], "-test.run=^TestReapAfterTheOwnerWasKilled$")
			owner.Env = append(os.Environ(), "PODD_STACK_TEST_OWNER="+dir, "RUNTIME="+string(flavor))
			stdout, err := owner.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			owner.Stderr = t.Output()
			if err := owner.Start(); err != nil {
				t.Fatal(err)
			}
			line := make([]byte, len("up\n"))
			_, readErr := io.ReadFull(stdout, line)
			_ = owner.Process.Kill()
			_ = owner.Wait() // it was killed
			if readErr != nil {
				t.Fatalf("the owner brought no stack up: %v", readErr)
			}
			s, err := stack.Open(dir, nil)
			if err != nil || !s.Running() {
				t.Fatalf("after its owner's death the stack should run: %v", err)
			}
			traces := tracesOf(t, s)
			if err := stack.Reap(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			waitGone(t, dir)
			wantGone(t, s, traces)
		})
	}
}

// own brings a stack with a pod up and waits to be killed.
func own(t *testing.T, dir string) {
	s, err := stack.Start(t.Context(), stack.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	runPod(t, connect(t, s), "web", stack.WebImage)
	fmt.Println("up")
	<-t.Context().Done()
}

func TestStacksRunSideBySide(t *testing.T) {
	a := stack.ForTest(t, stack.Options{Flavor: tools.Pinned})
	b := stack.ForTest(t, stack.Options{Flavor: tools.Debian})
	if a.Claim.Subnet.Overlaps(b.Claim.Subnet) || a.Claim.Bridge() == b.Claim.Bridge() {
		t.Errorf("two stacks share %s and %s", a.Claim.Subnet, a.Claim.Bridge())
	}
	pod := runPod(t, connect(t, b), "web", stack.WebImage)
	runPod(t, connect(t, a), "web", stack.WebImage)
	if err := a.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	get(t, "http://"+pod.ip+":8080/") // the other one's pod is untouched
}

type pod struct{ id, container, ip string }

func connect(t testing.TB, s *stack.Stack, options ...grpc.DialOption) runtimev1.RuntimeServiceClient {
	t.Helper()
	return runtimev1.NewRuntimeServiceClient(dial(t, s, options...))
}

func dial(t testing.TB, s *stack.Stack, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(s.Endpoint(), append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// runPod starts a pod of one container by bare CRI calls.
func runPod(t testing.TB, client runtimev1.RuntimeServiceClient, name, image string, ports ...*runtimev1.PortMapping) pod {
	t.Helper()
	config := &runtimev1.PodSandboxConfig{
		Metadata:     &runtimev1.PodSandboxMetadata{Name: name, Namespace: "default", Uid: name},
		Hostname:     name,
		PortMappings: ports,
		Linux:        &runtimev1.LinuxPodSandboxConfig{},
	}
	sandbox, err := client.RunPodSandbox(t.Context(), &runtimev1.RunPodSandboxRequest{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	container, err := client.CreateContainer(t.Context(), &runtimev1.CreateContainerRequest{
		PodSandboxId:  sandbox.GetPodSandboxId(),
		SandboxConfig: config,
		Config: &runtimev1.ContainerConfig{
			Metadata: &runtimev1.ContainerMetadata{Name: name},
			Image:    &runtimev1.ImageSpec{Image: image},
			Linux: &runtimev1.LinuxContainerConfig{SecurityContext: &runtimev1.LinuxContainerSecurityContext{
				Seccomp: &runtimev1.SecurityProfile{ProfileType: runtimev1.SecurityProfile_RuntimeDefault},
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.StartContainer(t.Context(), &runtimev1.StartContainerRequest{ContainerId: container.GetContainerId()}); err != nil {
		t.Fatal(err)
	}
	status, err := client.PodSandboxStatus(t.Context(), &runtimev1.PodSandboxStatusRequest{PodSandboxId: sandbox.GetPodSandboxId()})
	if err != nil {
		t.Fatal(err)
	}
	return pod{sandbox.GetPodSandboxId(), container.GetContainerId(), status.GetStatus().GetNetwork().GetIp()}
}

func (p pod) remove(t testing.TB, client runtimev1.RuntimeServiceClient) {
	t.Helper()
	if _, err := client.StopPodSandbox(t.Context(), &runtimev1.StopPodSandboxRequest{PodSandboxId: p.id}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.RemovePodSandbox(t.Context(), &runtimev1.RemovePodSandboxRequest{PodSandboxId: p.id}); err != nil {
		t.Fatal(err)
	}
}

// get asks until it is answered: the program has just been started.
func get(t testing.TB, url string) string {
	t.Helper()
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(patience); ; <-again.C {
		reply, err := client.Get(url)
		if err == nil {
			defer reply.Body.Close()
			body, err := io.ReadAll(reply.Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		}
		if time.Now().After(deadline) {
			t.Fatalf("no answer within %s: %v", patience, err)
		}
	}
}

// hostAddress is an address of the host that is not a pod's gateway.
func hostAddress(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "hostname", "-I").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range strings.Fields(string(out)) {
		if !strings.HasPrefix(a, "10.88.") && !strings.HasPrefix(a, "10.188.") && strings.Contains(a, ".") {
			return a
		}
	}
	t.Skip("the host has no address of its own")
	return ""
}

// wantNothing waits until no trace of any pod is left.
func wantNothing(t *testing.T, s *stack.Stack) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(patience); ; <-again.C {
		l, err := s.Leftovers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if l == (stack.Leftovers{}) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left over: %s", l)
		}
	}
}

// tracesOf lists what a stack with pods has on the host outside its directory.
func tracesOf(t *testing.T, s *stack.Stack) []string {
	t.Helper()
	traces := []string{s.Dir, "/sys/class/net/" + s.Claim.Bridge()}
	bundles, err := filepath.Glob(filepath.Join(s.Dir, "stack/run/io.containerd.runtime.v2.task/k8s.io/*"))
	if err != nil || len(bundles) < 2 {
		t.Fatalf("got bundles %v, %v; want those of a pod", bundles, err)
	}
	for _, bundle := range bundles {
		if address, err := os.ReadFile(filepath.Join(bundle, "address")); err == nil {
			traces = append(traces, strings.TrimPrefix(string(address), "unix://"))
		}
		results, err := filepath.Glob("/var/lib/cni/results/*-" + filepath.Base(bundle) + "-*")
		if err != nil {
			t.Fatal(err)
		}
		traces = append(traces, results...)
	}
	return traces
}

// waitGone waits for a directory to go: another process may have been faster
// in taking a dead stack over, and be at it.
func waitGone(t *testing.T, dir string) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-again.C {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return
		}
	}
}

// wantGone checks that a destroyed stack has left nothing on the host.
func wantGone(t *testing.T, s *stack.Stack, traces []string) {
	t.Helper()
	if l, err := s.Leftovers(t.Context()); err != nil || l != (stack.Leftovers{}) {
		t.Errorf("left over: %s, %v", l, err)
	}
	for _, trace := range traces {
		if _, err := os.Lstat(trace); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", trace, err)
		}
	}
}

func TestReapAfterTheStateWasRemoved(t *testing.T) {
	both(t, func(t *testing.T, s *stack.Stack) {
		dir, err := os.MkdirTemp("", "podd-")
		if err != nil {
			t.Fatal(err)
		}
		lost, err := stack.Start(t.Context(), stack.Options{Dir: dir, Flavor: s.Tools.Flavor, Detach: true})
		if err != nil {
			t.Fatal(err)
		}
		pod := runPod(t, connect(t, lost), "web", stack.WebImage)
		get(t, "http://"+pod.ip+":8080/")
		traces := tracesOf(t, lost)
		if out, err := exec.CommandContext(t.Context(), "rm", "-rf", dir).CombinedOutput(); err == nil {
			t.Errorf("mounts should keep a part of %s: %s", dir, out)
		}
		if err := stack.Reap(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		waitGone(t, dir)
		wantGone(t, lost, traces)
	})
}

func TestDetachedStackIsOpenedByAnother(t *testing.T) {
	for _, flavor := range []tools.Flavor{tools.Pinned, tools.Debian} {
		dir := filepath.Join(t.TempDir(), strings.Repeat("long", 6)) // shim sockets do not fit
		t.Run(string(flavor), func(t *testing.T) { openAnother(t, stack.Options{Dir: dir, Flavor: flavor, Detach: true}) })
	}
}

func openAnother(t *testing.T, o stack.Options) {
	detached, err := stack.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	pod := runPod(t, connect(t, detached), "web", stack.WebImage)
	if err := stack.Reap(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := stack.Start(t.Context(), stack.Options{Dir: o.Dir}); err == nil {
		t.Error("a second stack was started in the same directory")
	}
	s, err := stack.Open(o.Dir, nil)
	if err != nil || !s.Running() {
		t.Fatalf("opening it: %v", err)
	}
	get(t, "http://"+pod.ip+":8080/")
	traces := append(tracesOf(t, s), fmt.Sprintf("/run/podd-stack/%d.s", s.Claim.Number))
	if err := s.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantGone(t, s, traces)
}

func TestNetworkGoesAndComes(t *testing.T) {
	both(t, func(t *testing.T, s *stack.Stack) {
		client := connect(t, s)
		for _, step := range []struct {
			change func() error
			want   bool
		}{{s.DisconnectNetwork, false}, {s.ConnectNetwork, true}} {
			if err := step.change(); err != nil {
				t.Fatal(err)
			}
			for got := !step.want; got != step.want; {
				status, err := client.Status(t.Context(), &runtimev1.StatusRequest{})
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range status.GetStatus().GetConditions() {
					if c.GetType() == runtimev1.NetworkReady {
						got = c.GetStatus()
					}
				}
			}
		}
	})
}

func TestConfigIsMergedOver(t *testing.T) {
	s := stack.ForTest(t, stack.Options{Flavor: tools.Pinned, Config: `version = 3
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.other]
runtime_type = "io.containerd.runc.v2"
`})
	status, err := connect(t, s).Status(t.Context(), &runtimev1.StatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, h := range status.GetRuntimeHandlers() {
		names = append(names, h.GetName())
	}
	if !slices.Contains(names, "other") || !slices.Contains(names, "runc") {
		t.Errorf("runtime handlers %q, want runc and other among them", names)
	}
	runPod(t, connect(t, s), "web", stack.WebImage) // runc's options are still there
}
