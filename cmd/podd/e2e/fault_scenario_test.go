//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
	api "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"podd/runtime/runtimetest/stack/registry"
)

// A faultScenario is a scenario with lists of CRI calls. Tests repeat the scenario with a fault in one
// of these calls.
type faultScenario struct {
	scenario
	flags []string // additional flags of podd
	// pod returns the pod of the scenario.
	pod func(*daemon) *v1.Pod
	// methods lists CRI methods. Tests inject a fault into the first call of each method.
	methods []string
	// later lists further calls, such as the second call of a method. Tests inject a fault into each of
	// them.
	later []call
	// unlimited are the methods that podd calls without a deadline. If such a call hangs, podd does
	// nothing more with the pod until the pod is removed.
	unlimited []string
}

// faultScenarios together call every CRI method that package runtime/cri uses; see
// TestFaultScenarios_EveryMethod.
var faultScenarios = []faultScenario{lifeScenario, useScenario}

// lifeScenario starts and removes a pod with an init container, volumes and hooks.
var lifeScenario = faultScenario{
	scenario: scenario{
		name:  "stop",
		first: func(d *daemon) { d.apply(d.lifePod()); d.untilApplied("web") },
		act:   func(d *daemon) { d.remove("web") },
		wait:  func(d *daemon) { d.untilGone("web") },
		noted: []string{"one init", "one runs", "one postStart", "one preStop", "one TERM"},
		kept:  "one",
		hooks: true,
	},
	pod: (*daemon).lifePod,
	methods: []string{
		"Version", "RuntimeConfig", "Status", "ImageFsInfo", "ListImages", "GetContainerEvents", "ListContainers", "ListPodSandbox",
		"ImageStatus", "RunPodSandbox", "PodSandboxStatus", "CreateContainer", "StartContainer", "ContainerStatus", "ExecSync",
		"StopContainer", "StopPodSandbox", "RemovePodSandbox",
	},
	// The first container is the init container.
	later:     []call{{Method: "CreateContainer", Nth: 2}, {Method: "StartContainer", Nth: 2}},
	unlimited: []string{"ExecSync"}, // of a hook
}

// lifePod returns the pod of lifeScenario.
func (d *daemon) lifePod() *v1.Pod {
	p := d.scenarioPod("one")
	c := p.Spec.Containers[0]
	c.Command = []string{"sh", "-c", "echo one >>/kept/x; " + scriptWithUp("one")}
	p.Spec.Containers[0] = withHooks(c, hookAfterUp(note("one postStart")), execHook(note("one preStop")))
	return p
}

// useScenario pulls the image of a pod, probes, measures and resizes the pod, and rotates its log. Users
// execute a command in the pod, attach to the pod, forward a port to the pod and restart the pod.
var useScenario = faultScenario{
	scenario: scenario{
		name:  "use",
		first: func(d *daemon) { d.apply(d.usePod()); d.untilApplied("web") },
		act: func(d *daemon) {
			d.eventually("the log is rotated", d.checkRotated)
			d.eventually("podd exec runs a command", d.checkExec)
			d.eventually("podd attach prints the container's output", d.checkAttach)
			d.eventually("podd port-forward connects to the pod", d.checkForward)
			d.eventually("the pod's disk usage is measured", d.checkMeasured)
			for range 2 {
				d.verb("restart", "web")
			}
			d.write("web", strings.ReplaceAll(d.manifest("web"), "memory: 32Mi", "memory: 24Mi"))
		},
		wait: func(d *daemon) {
			d.untilApplied("web")
			if got := cgroupValue(d.t, d.container("web", "main").PID, "memory", "memory.limit_in_bytes", "memory.max"); got != fmt.Sprint(24<<20) {
				d.t.Errorf("memory limit after the resize: got %s bytes, want 24Mi", got)
			}
			d.eventually("one exited container is kept", d.checkOneExited)
		},
		noted: []string{"one runs", "one TERM", "one runs", "one TERM", "one runs"},
	},
	flags: []string{"--container-log-max-size=100Ki", "--container-log-max-files=3"},
	pod:   (*daemon).usePod,
	methods: []string{
		"PullImage", "ExecSync", "ReopenContainerLog", "Exec", "Attach", "PortForward", "ListContainerStats", "RemoveContainer", "ContainerStats",
		"UpdateContainerResources", "UpdatePodSandboxResources",
	},
	unlimited: []string{"PullImage"},
}

// usePod returns a pod whose image exists only in a registry that usePod starts. The pod serves /trace
// on port 8080 and writes a log that must be rotated.
func (d *daemon) usePod() *v1.Pod {
	_, ref := withRegistry(d, registry.Options{})
	main := withImage(ref, shell("main", "trap '"+note("one TERM")+"exit 0' TERM; httpd -p 8080 -h /trace; "+note("one runs")+
		"seq 4000; while :; do echo tick; sleep 0.2; done"))
	main.ReadinessProbe = probeEverySecond(execHandler("wget -q -O /dev/null http://127.0.0.1:8080/notes"))
	// A hanging probe must time out before the test does.
	main.ReadinessProbe.TimeoutSeconds = 20
	return d.pod("web", withResources(main, "20m", "200m", "32Mi"))
}

// manifest returns the text of a pod's file.
func (d *daemon) manifest(name string) string {
	d.t.Helper()
	text, err := os.ReadFile(d.manifestFile(name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

// checkRotated returns an error unless a rotated log file exists and the runtime writes to a new one.
func (d *daemon) checkRotated() error {
	dir := filepath.Join(d.logDir(), "default_"+d.podName("web")+"_*", "main")
	old, err := filepath.Glob(filepath.Join(dir, "0.log.*"))
	if err != nil || len(old) == 0 {
		return fmt.Errorf("rotated logs: got %q, error %v; want at least one", old, err)
	}
	current, err := filepath.Glob(filepath.Join(dir, "0.log"))
	if err != nil || len(current) != 1 {
		return fmt.Errorf("current log: got %q, error %v; want one file", current, err)
	}
	text, err := os.ReadFile(current[0])
	if err == nil && (len(text) == 0 || len(text) > 100<<10) {
		err = fmt.Errorf("current log: got %d bytes, want 1 to %d", len(text), 100<<10)
	}
	return err
}

// checkOneExited returns an error unless the pod has one running and one exited container.
func (d *daemon) checkOneExited() error {
	now, err := d.inventory(d.t.Context())
	if err == nil && len(now.containers) != 2 {
		err = fmt.Errorf("got %d containers, want 2", len(now.containers))
	}
	return err
}

// checkExec returns an error unless podd exec runs a command in the pod.
func (d *daemon) checkExec() error {
	if out, stderr, code := d.outcome(nil, "exec", "-q", "web", "--", "echo", "hello"); out != "hello\n" || code != 0 {
		return fmt.Errorf("got stdout %q, stderr %q, exit code %d; want stdout %q, exit code 0", out, stderr, code, "hello\n")
	}
	return nil
}

// checkAttach returns an error unless podd attach prints the container's output.
func (d *daemon) checkAttach() error {
	return d.whileRunning(func(line string) error {
		if line != "tick\n" {
			return fmt.Errorf("got the line %q, want %q", line, "tick\n")
		}
		return nil
	}, "attach", "-q", "web")
}

var forwarding = regexp.MustCompile(`^Forwarding from (\S+) -> 8080\n$`)

// checkForward returns an error unless podd port-forward connects to the pod.
func (d *daemon) checkForward() error {
	return d.whileRunning(func(line string) error {
		found := forwarding.FindStringSubmatch(line)
		if found == nil {
			return fmt.Errorf("got the line %q, want one that matches %s", line, forwarding)
		}
		client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
		reply, err := client.Get("http://" + found[1] + "/notes")
		if err != nil {
			return err
		}
		defer reply.Body.Close()
		if text, err := io.ReadAll(reply.Body); string(text) != "one runs\n" {
			return fmt.Errorf("got the response %q, error %v; want %q", text, err, "one runs\n")
		}
		return nil
	}, "port-forward", "web", ":8080", "--address", "127.0.0.1")
}

// whileRunning starts a podd command, calls do with the first line that the command prints, and
// kills the command.
func (d *daemon) whileRunning(do func(line string) error, words ...string) error {
	cmd := d.command(words...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p, err := launch(cmd)
	if err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		err = do(line)
	}
	p.signal(syscall.SIGKILL)
	if err != nil {
		return fmt.Errorf("podd %s: %w; stderr %q", strings.Join(words, " "), err, stderr.String())
	}
	return nil
}

// checkMeasured returns an error unless the summary contains the image file system and the
// container's writable layer. The runtime measures both.
func (d *daemon) checkMeasured() error {
	body, err := d.get(d.t.Context(), "/stats/summary")
	if err != nil {
		return err
	}
	defer body.Close()
	var s api.Summary
	if err := json.NewDecoder(body).Decode(&s); err != nil {
		return err
	}
	if len(s.Pods) != 1 || s.Node.Runtime == nil || s.Node.Runtime.ImageFs == nil {
		return fmt.Errorf("/stats/summary: got %d pods, runtime statistics %+v; want 1 pod, statistics of the image file system", len(s.Pods), s.Node.Runtime)
	}
	if c := containerStats(&s.Pods[0], "main"); c == nil || c.Rootfs == nil || c.Rootfs.UsedBytes == nil {
		return errors.New("/stats/summary: got no usage of the container's writable layer, want one")
	}
	return nil
}

// daemon prepares a podd for the scenario, with a proxy to the runtime.
func (s faultScenario) daemon(d *daemon) *proxy {
	d.args = append(d.args, s.flags...)
	return d.throughProxy()
}

// firstCalls returns the first call of each of the scenario's methods.
func (s faultScenario) firstCalls() []call {
	var all []call
	for _, m := range s.methods {
		all = append(all, call{Method: m, Nth: 1})
	}
	return all
}

// runAroundCalls runs two parallel subtests for each call: one with a fault before the call, and one
// with a fault after it.
func (s faultScenario) runAroundCalls(t *testing.T, calls []call, test func(t *testing.T, s faultScenario, c call, at moment)) {
	for _, c := range calls {
		for _, at := range []moment{before, after} {
			t.Run(fmt.Sprintf("%s: %s %s", s.name, at, c), func(t *testing.T) {
				t.Parallel()
				test(t, s, c, at)
			})
		}
	}
}

// calledMethods runs the scenario without a fault and returns the methods that podd calls,
// sorted.
func (s faultScenario) calledMethods(t *testing.T) []string {
	d := newDaemon(t, shared)
	p := s.daemon(d)
	d.start()
	s.prepare(d)
	s.act(d)
	s.wait(d)
	s.check(d, tolerance{})
	var all []string
	for _, c := range p.recordedCalls() {
		all = append(all, c.Method)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// A fault occurs in one call.
type fault struct {
	at moment
	// apply is called in the goroutine of the call. If apply returns true, the call does not
	// continue and podd gets an error.
	apply func() bool
}

// runWithFault runs the scenario with a fault in one call.
func (s faultScenario) runWithFault(d *daemon, c call, f fault) {
	p := s.daemon(d)
	hasOccurred := p.injectOnce(c, f)
	d.start()
	s.prepare(d)
	s.act(d)
	s.wait(d)
	if !hasOccurred.Load() {
		d.t.Errorf("calls of podd: got no %s, want one with the fault", c)
	}
	s.check(d, tolerance{twice: s.hooks, noTERM: c.Method == "StopContainer", restarted: c.Method == "ExecSync" && s.hooks})
}

// runUntilRemoved removes the pod while one of podd's calls for the pod hangs. Another pod must be able
// to start during the call.
func (s faultScenario) runUntilRemoved(d *daemon, c call, f fault) {
	p := s.daemon(d)
	hasOccurred := p.injectOnce(c, f)
	d.start()
	d.apply(s.pod(d))
	d.eventually("the call hangs", func() error {
		if !hasOccurred.Load() {
			return fmt.Errorf("calls of podd: got no %s, want one that hangs", c)
		}
		return nil
	})
	d.apply(d.pod("other", shell("main", serve("other"))))
	d.untilApplied("other")
	d.remove("web")
	d.untilGone("web")
}

// injectOnce makes the fault occur in one call. The returned value becomes true when the fault
// has occurred.
func (p *proxy) injectOnce(c call, f fault) *atomic.Bool {
	hasOccurred := &atomic.Bool{}
	p.onCall(func(at moment, now call) (stop bool) {
		return at == f.at && now.String() == c.String() && hasOccurred.CompareAndSwap(false, true) && f.apply()
	})
	return hasOccurred
}
