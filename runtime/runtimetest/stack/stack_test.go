//go:build e2e

package stack_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/reservation"
	"podd/runtime/runtimetest/stack/tools"
)

// maxWait is the maximum time that a test waits for an event.
const maxWait = time.Minute

// onEveryRuntime runs a test on every runtime: the newest and the oldest containerd that podd
// supports, and CRI-O.
func onEveryRuntime(t *testing.T, test func(t *testing.T, s *stack.Stack)) {
	for _, flavor := range tools.Flavors() {
		t.Run(string(flavor), func(t *testing.T) { test(t, stack.ForTest(t, stack.Options{Flavor: flavor, Masquerade: true})) })
	}
}

func TestPod_LeavesNothing(t *testing.T) {
	onEveryRuntime(t, func(t *testing.T, s *stack.Stack) {
		client := connect(t, s)
		pod := runPod(t, client, "web", stack.WebImage)
		want := "hello from web\n"
		if got := get(t, "http://"+pod.ip+":8080/"); got != want {
			t.Errorf("response of the pod: got %q, want %q", got, want)
		}
		if l, err := s.Leftovers(t.Context()); err != nil || l.Sandboxes != 1 || l.Containers != 1 || l.Shims != 1 || l.NetNS != 1 || l.Addresses != 1 || l.Mounts == 0 || l.Cgroups == 0 || l.Rules == 0 {
			t.Errorf("while the pod runs: got leftovers %s (error %v), want at least one of each kind, and one sandbox, container, shim, network namespace and address", l, err)
		}
		pod.remove(t, client)
		waitUntilNoLeftovers(t, s)
	})
}

func TestSeccomp(t *testing.T) {
	onEveryRuntime(t, func(t *testing.T, s *stack.Stack) {
		pod := runPod(t, connect(t, s), "web", stack.WebImage)
		pid, err := s.ContainerPID(pod.container)
		if err != nil {
			t.Fatal(err)
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil || !strings.Contains(string(status), "\nSeccomp:\t2\n") {
			t.Errorf("/proc/PID/status of the container: got %s (error %v), want Seccomp mode 2", status, err)
		}
	})
}

func TestHostPort(t *testing.T) {
	onEveryRuntime(t, func(t *testing.T, s *stack.Stack) {
		client := connect(t, s)
		pod := runPod(t, client, "web", stack.WebImage, &runtimev1.PortMapping{ContainerPort: 8080, HostPort: 18080})
		get(t, "http://"+pod.ip+":8080/")
		// The test uses an address of the host other than 127.0.0.1, which would require the sysctl
		// route_localnet.
		if got, want := get(t, "http://"+hostAddress(t)+":18080/"), "hello from web\n"; got != want {
			t.Errorf("response on the host port: got %q, want %q", got, want)
		}
		pod.remove(t, client)
		waitUntilNoLeftovers(t, s)
	})
}

func TestRuntimeStopped_PodsKeepRunning(t *testing.T) {
	onEveryRuntime(t, func(t *testing.T, s *stack.Stack) {
		pod := runPod(t, connect(t, s), "web", stack.WebImage)
		url := "http://" + pod.ip + ":8080/"
		get(t, url)
		for name, end := range map[string]func(context.Context) error{"Stop": s.Stop, "Kill": s.Kill} {
			if err := end(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s.IsRunning() {
				t.Errorf("after %s: got a running runtime, want a stopped one", name)
			}
			get(t, url)
			if err := s.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			get(t, url)
		}
		pod.remove(t, connect(t, s))
		waitUntilNoLeftovers(t, s)
	})
}

func TestDestroy_RunningPods(t *testing.T) {
	for _, alive := range []bool{true, false} {
		t.Run(fmt.Sprintf("runtime runs: %t", alive), func(t *testing.T) {
			onEveryRuntime(t, func(t *testing.T, s *stack.Stack) {
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
				checkDestroyed(t, s, traces)
			})
		})
	}
}

func TestReap_OwnerKilled(t *testing.T) {
	if dir := os.Getenv("PODD_STACK_TEST_OWNER"); dir != "" {
		runOwner(t, dir, os.Getenv("PODD_STACK_TEST_DESTROY") != "") // this is the process that the test kills
		return
	}
	for _, flavor := range tools.Flavors() {
		for _, c := range []struct {
			name    string
			destroy string // if not "", the owner destroys the stack when the stack's pods run
			until   func(t *testing.T, dir string, owner *bufio.Scanner)
		}{
			{"while the stack starts", "", func(t *testing.T, dir string, _ *bufio.Scanner) { waitUntilRuntimeRunning(t, dir, true) }},
			{"while pods run", "", func(t *testing.T, dir string, owner *bufio.Scanner) {
				waitUntilOwnerStarted(t, owner)
				obstruct(t, dir)
			}},
			{"while the stack is destroyed", "yes", func(t *testing.T, dir string, owner *bufio.Scanner) {
				waitUntilOwnerStarted(t, owner)
				waitUntilRuntimeRunning(t, dir, false)
			}},
		} {
			t.Run(string(flavor)+" "+c.name, func(t *testing.T) {
				dir, err := os.MkdirTemp("", "podd-")
				if err != nil {
					t.Fatal(err)
				}
				owner := exec.Command(os.Args[0], "-test.run=^TestReap_OwnerKilled$")
				owner.Env = append(os.Environ(), "PODD_STACK_TEST_OWNER="+dir, "PODD_STACK_TEST_DESTROY="+c.destroy, "RUNTIME="+string(flavor))
				stdout, err := owner.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				owner.Stderr = t.Output()
				if err := owner.Start(); err != nil {
					t.Fatal(err)
				}
				c.until(t, dir, bufio.NewScanner(stdout))
				_ = owner.Process.Kill()
				_ = owner.Wait() // an error is expected, because the owner was killed
				traces := processesAndMounts(dir)
				if err := stack.Reap(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				waitUntilRemoved(t, dir)
				for _, r := range processesAndMounts(dir) {
					t.Errorf("processes and mounts after Reap: got %s, want none", r)
				}
				if c.destroy == "" && len(traces) == 0 {
					t.Error("before Reap: got no processes and mounts of the stack, want some")
				}
				t.Logf("Reap removed %d mounts and processes", len(traces))
			})
		}
	}
}

// runOwner starts a stack with pods. Then it destroys the stack, or waits until it is killed.
func runOwner(t *testing.T, dir string, destroy bool) {
	s, err := stack.Start(t.Context(), stack.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		runPod(t, connect(t, s), fmt.Sprintf("web-%d", i), stack.WebImage)
	}
	fmt.Println("up")
	if destroy {
		if err := s.Destroy(t.Context()); err != nil {
			t.Error(err)
		}
	}
	<-t.Context().Done()
}

func waitUntilOwnerStarted(t *testing.T, owner *bufio.Scanner) {
	t.Helper()
	for owner.Scan() {
		if owner.Text() == "up" {
			return
		}
	}
	t.Fatalf("output of the owner: got its end with error %v, want the line that it prints when it has started a stack", owner.Err())
}

// waitUntilRuntimeRunning waits until the runtime of the stack in dir is running or, if want is
// false, is not running.
func waitUntilRuntimeRunning(t *testing.T, dir string, want bool) {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(maxWait); ; <-again.C {
		s, err := stack.Open(dir, nil)
		if got := err == nil && s.IsRunning(); got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %v until the runtime of %s is running: got %t (error %v), want %t", maxWait, dir, !want, err, want)
		}
	}
}

// obstruct makes a stack hard to remove. It freezes one container, kills the monitor of a second container,
// pauses the runtime, and starts a process that belongs to no container in a cgroup of the stack.
func obstruct(t *testing.T, dir string) {
	t.Helper()
	s, err := stack.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	containers, err := connect(t, s).ListContainers(t.Context(), &runtimev1.ListContainersRequest{})
	if err != nil || len(containers.GetContainers()) != 3 {
		t.Fatalf("running containers of the stack: got %v (error %v), want 3", containers, err)
	}
	ids := containers.GetContainers()
	if err := s.Freeze(t.Context(), ids[0].GetId()); err != nil {
		t.Fatal(err)
	}
	pid, err := s.ContainerPID(ids[1].GetId())
	if err != nil {
		t.Fatal(err)
	}
	process, err := reservation.FindProcess(pid)
	if err == nil {
		err = syscall.Kill(process.Parent(), syscall.SIGKILL)
	}
	if err == nil {
		err = s.Pause()
	}
	if err == nil {
		err = startInCgroup(t, s.CgroupParent())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// startInCgroup starts a process in a new cgroup below parent, in one hierarchy.
func startInCgroup(t *testing.T, parent string) error {
	root := "/sys/fs/cgroup/pids"
	if _, err := os.Stat(root); err != nil { // only cgroup v2
		root = "/sys/fs/cgroup"
	}
	dir := filepath.Join(root, parent, "lost")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	cmd := exec.CommandContext(t.Context(), "sleep", "3600")
	if err := cmd.Start(); err != nil {
		return err
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // an error is expected, because the process was killed
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0)
}

// processesAndMounts returns the command lines that contain dir and the mounts below dir.
func processesAndMounts(dir string) []string {
	var all []string
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range lines {
		line, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(line), dir+"/") {
			all = append(all, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, dir+"/") {
			all = append(all, line)
		}
	}
	return all
}

func TestStart_TwoStacks(t *testing.T) {
	flavors := tools.Flavors()
	a := stack.ForTest(t, stack.Options{Flavor: flavors[0]})
	b := stack.ForTest(t, stack.Options{Flavor: flavors[len(flavors)-1]})
	if a.Reservation.Subnet.Overlaps(b.Reservation.Subnet) || a.Reservation.Bridge() == b.Reservation.Bridge() {
		t.Errorf("two stacks: got subnet %s or bridge %s for both; want different ones", a.Reservation.Subnet, a.Reservation.Bridge())
	}
	pod := runPod(t, connect(t, b), "web", stack.WebImage)
	runPod(t, connect(t, a), "web", stack.WebImage)
	if err := a.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	get(t, "http://"+pod.ip+":8080/") // the pod must still respond after the other stack was destroyed
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

// runPod starts a pod with one container by bare CRI calls.
func runPod(t testing.TB, client runtimev1.RuntimeServiceClient, name, image string, ports ...*runtimev1.PortMapping) pod {
	t.Helper()
	own := &runtimev1.NamespaceOption{Pid: runtimev1.NamespaceMode_CONTAINER}
	config := &runtimev1.PodSandboxConfig{
		Metadata:     &runtimev1.PodSandboxMetadata{Name: name, Namespace: "default", Uid: name},
		Hostname:     name,
		PortMappings: ports,
		Linux:        &runtimev1.LinuxPodSandboxConfig{SecurityContext: &runtimev1.LinuxSandboxSecurityContext{NamespaceOptions: own}},
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
			Image:    &runtimev1.ImageSpec{Image: image, UserSpecifiedImage: image}, // CRI-O needs both fields
			Linux: &runtimev1.LinuxContainerConfig{SecurityContext: &runtimev1.LinuxContainerSecurityContext{
				NamespaceOptions: own,
				Seccomp:          &runtimev1.SecurityProfile{ProfileType: runtimev1.SecurityProfile_RuntimeDefault},
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

// get returns the response to a GET request. It retries until there is a response, because the
// server has just been started.
func get(t testing.TB, url string) string {
	t.Helper()
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(maxWait); ; <-again.C {
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
			t.Fatalf("waited %s for a response: %v", maxWait, err)
		}
	}
}

// hostAddress returns an address of the host that is not on a pod network.
func hostAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		ip, _, err := net.ParseCIDR(a.String())
		if err == nil && ip.To4() != nil && !ip.IsLoopback() && !strings.HasPrefix(ip.String(), "10.88.") && !strings.HasPrefix(ip.String(), "10.188.") {
			return ip.String()
		}
	}
	t.Fatalf("addresses of the host: got %v, want an IPv4 address outside the pod networks", addresses)
	return ""
}

// waitUntilNoLeftovers waits until all leftovers of pods are removed.
func waitUntilNoLeftovers(t *testing.T, s *stack.Stack) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(maxWait); ; <-again.C {
		l, err := s.Leftovers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if l == (stack.Leftovers{}) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %s until nothing of pods is left: got leftovers %s", maxWait, l)
		}
	}
}

// tracesOf returns paths that exist on the host while the stack has pods: the stack's directory,
// and paths outside it.
func tracesOf(t *testing.T, s *stack.Stack) []string {
	t.Helper()
	traces := []string{s.Dir, "/sys/class/net/" + s.Reservation.Bridge()}
	addresses, err := filepath.Glob(filepath.Join(s.Dir, "stack/run/io.containerd.runtime.v2.task/k8s.io/*/address"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range addresses {
		address, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		traces = append(traces, strings.TrimPrefix(string(address), "unix://"))
	}
	results, err := filepath.Glob("/var/lib/cni/results/" + s.Reservation.Bridge() + "-*")
	if err != nil || len(results) == 0 {
		t.Fatalf("got CNI results %v (error %v), want the result of a pod", results, err)
	}
	return append(traces, results...)
}

// waitUntilRemoved waits until the directory of a stale stack is removed, at most for maxWait. The directory
// may exist after Reap, because another process may have taken over the stack and is still removing it.
func waitUntilRemoved(t *testing.T, dir string) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(maxWait); time.Now().Before(deadline); <-again.C {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return
		}
	}
}

// checkDestroyed checks that nothing of a destroyed stack is left on the host. traces is the
// result of tracesOf.
func checkDestroyed(t *testing.T, s *stack.Stack, traces []string) {
	t.Helper()
	if l, err := s.Leftovers(t.Context()); err != nil || l != (stack.Leftovers{}) {
		t.Errorf("after Destroy: got leftovers %s (error %v), want none", l, err)
	}
	for _, trace := range traces {
		if _, err := os.Lstat(trace); !os.IsNotExist(err) {
			t.Errorf("after Destroy: got path %s, error %v; want it removed", trace, err)
		}
	}
}

func TestReap_StateRemoved(t *testing.T) {
	onEveryRuntime(t, func(t *testing.T, s *stack.Stack) {
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
			t.Errorf("removing %s: got no error, want one because of its mounts: %s", dir, out)
		}
		if err := stack.Reap(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		waitUntilRemoved(t, dir)
		checkDestroyed(t, lost, traces)
	})
}

func TestOpen_DetachedStack(t *testing.T) {
	for _, flavor := range tools.Flavors() {
		dir := filepath.Join(t.TempDir(), strings.Repeat("long", 6)) // the path is too long for the sockets of shims
		t.Run(string(flavor), func(t *testing.T) { testOpenDetached(t, stack.Options{Dir: dir, Flavor: flavor, Detach: true}) })
	}
}

func testOpenDetached(t *testing.T, o stack.Options) {
	detached, err := stack.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	pod := runPod(t, connect(t, detached), "web", stack.WebImage)
	if err := stack.Reap(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := stack.Start(t.Context(), stack.Options{Dir: o.Dir}); err == nil {
		t.Error("starting a second stack in the directory: got no error, want one")
	}
	s, err := stack.Open(o.Dir, nil)
	if err != nil || !s.IsRunning() {
		t.Fatalf("opening the stack: got error %v, want a running runtime", err)
	}
	get(t, "http://"+pod.ip+":8080/")
	traces := append(tracesOf(t, s), fmt.Sprintf("/run/podd-stack/%d.s", s.Reservation.Number))
	if err := s.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkDestroyed(t, s, traces)
}

func TestDisconnectNetwork(t *testing.T) {
	onEveryRuntime(t, func(t *testing.T, s *stack.Stack) {
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

func TestConfig_Merged(t *testing.T) {
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
		t.Errorf("got runtime handlers %q, want runc and other among them", names)
	}
	runPod(t, connect(t, s), "web", stack.WebImage) // succeeds only if the merged configuration has the stack's options of runc
}
