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

// A faultStory is a story with the CRI calls that faults happen to.
type faultStory struct {
	story
	flags []string // of podd
	// pod returns the pod of the story.
	pod func(*daemon) *v1.Pod
	// methods are the methods of which the first call meets a fault.
	methods []string
	// later are further calls that meet a fault.
	later []call
	// unlimited are the methods that podd calls without a deadline. If such a call hangs,
	// the pod waits until it is removed.
	unlimited []string
}

// faultStories make every kind of call that package runtime/cri has: see
// TestFaultStories_EveryMethod.
var faultStories = []faultStory{life, use}

// life starts and removes a pod with an init container, volumes and hooks.
var life = faultStory{
	story: story{
		name:  "stop",
		first: func(d *daemon) { d.apply(d.lifePod()); d.untilApplied("web") },
		act:   func(d *daemon) { d.remove("web") },
		ends:  func(d *daemon) { d.untilGone("web") },
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
	// The first container is an init container, the second one is not.
	later:     []call{{Method: "CreateContainer", Nth: 2}, {Method: "StartContainer", Nth: 2}},
	unlimited: []string{"ExecSync"}, // of a hook
}

func (d *daemon) lifePod() *v1.Pod {
	p := d.storyPod("one")
	c := p.Spec.Containers[0]
	c.Command = []string{"sh", "-c", "echo one >>/kept/x; " + up("one")}
	p.Spec.Containers[0] = withHooks(c, onceUp(note("one postStart")), runsHook(note("one preStop")))
	return p
}

// use pulls the image of a pod, probes, measures and resizes the pod and rotates its log.
// Users execute a command in it, attach to it, forward a port to it and restart it.
var use = faultStory{
	story: story{
		name:  "use",
		first: func(d *daemon) { d.apply(d.usePod()); d.untilApplied("web") },
		act: func(d *daemon) {
			d.eventually("the log is rotated", d.isRotated)
			d.eventually("podd exec runs a command", d.canExec)
			d.eventually("podd attach prints what the container writes", d.canAttach)
			d.eventually("podd port-forward leads to the pod", d.canForward)
			d.eventually("the pod's disk usage is measured", d.isMeasured)
			for range 2 {
				d.verb("restart", "web")
			}
			d.write("web", strings.ReplaceAll(d.manifest("web"), "memory: 32Mi", "memory: 24Mi"))
		},
		ends: func(d *daemon) {
			d.untilApplied("web")
			if got := cgroupValue(d.t, d.runs("web", "main").PID, "memory", "memory.limit_in_bytes", "memory.max"); got != fmt.Sprint(24<<20) {
				d.t.Errorf("the memory limit is %s, want 24Mi", got)
			}
			d.eventually("one exited container is kept", d.keepsOneExited)
		},
		noted: []string{"one runs", "one TERM", "one runs", "one TERM", "one runs"},
	},
	flags: []string{"--container-log-max-size=100Ki", "--container-log-max-files=3"},
	pod:   (*daemon).usePod,
	methods: []string{
		"PullImage", "ExecSync", "ReopenContainerLog", "Exec", "Attach", "PortForward", "ListContainerStats", "RemoveContainer", "ContainerStats",
		"UpdateContainerResources",
	},
	unlimited: []string{"PullImage"},
}

// usePod has an image that only a registry of its own has. It serves /trace on port 8080
// and writes a log that must be rotated.
func (d *daemon) usePod() *v1.Pod {
	_, ref := withRegistry(d, registry.Options{})
	main := from(ref, shell("main", "trap '"+note("one TERM")+"exit 0' TERM; httpd -p 8080 -h /trace; "+note("one runs")+
		"seq 4000; while :; do echo tick; sleep 0.2; done"))
	main.ReadinessProbe = every(executes("wget -q -O /dev/null http://127.0.0.1:8080/journal"))
	// podd gives up a probe that hangs before the test gives up.
	main.ReadinessProbe.TimeoutSeconds = 20
	return d.pod("web", needs(main, "20m", "200m", "32Mi"))
}

// manifest returns the text of a pod's file.
func (d *daemon) manifest(name string) string {
	d.t.Helper()
	text, err := os.ReadFile(d.file(name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

// isRotated returns an error unless the runtime writes to a new log file.
func (d *daemon) isRotated() error {
	dir := filepath.Join(d.logs(), "default_"+d.full("web")+"_*", "main")
	old, err := filepath.Glob(filepath.Join(dir, "0.log.*"))
	if err != nil || len(old) == 0 {
		return fmt.Errorf("no log was rotated: %v", err)
	}
	current, err := filepath.Glob(filepath.Join(dir, "0.log"))
	if err != nil || len(current) != 1 {
		return fmt.Errorf("there are the logs %q: %v", current, err)
	}
	text, err := os.ReadFile(current[0])
	if err == nil && (len(text) == 0 || len(text) > 100<<10) {
		err = fmt.Errorf("the log has %d bytes", len(text))
	}
	return err
}

// keepsOneExited returns an error unless the pod has one container that runs and one that
// has exited.
func (d *daemon) keepsOneExited() error {
	now, err := d.look(d.t.Context())
	if err == nil && len(now.containers) != 2 {
		err = fmt.Errorf("the pod has %d containers", len(now.containers))
	}
	return err
}

func (d *daemon) canExec() error {
	if out, talk, code := d.outcome(nil, "exec", "-q", "web", "--", "echo", "hello"); out != "hello\n" || code != 0 {
		return fmt.Errorf("got %q, %q, code %d, want hello", out, talk, code)
	}
	return nil
}

func (d *daemon) canAttach() error {
	return d.whileRunning(func(line string) error {
		if line != "tick\n" {
			return fmt.Errorf("got %q, want tick", line)
		}
		return nil
	}, "attach", "-q", "web")
}

var forwarding = regexp.MustCompile(`^Forwarding from (\S+) -> 8080\n$`)

func (d *daemon) canForward() error {
	return d.whileRunning(func(line string) error {
		found := forwarding.FindStringSubmatch(line)
		if found == nil {
			return fmt.Errorf("got %q, want an address", line)
		}
		client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
		reply, err := client.Get("http://" + found[1] + "/journal")
		if err != nil {
			return err
		}
		defer reply.Body.Close()
		if text, err := io.ReadAll(reply.Body); string(text) != "one runs\n" {
			return fmt.Errorf("the pod responds %q: %v", text, err)
		}
		return nil
	}, "port-forward", "web", ":8080", "--address", "127.0.0.1")
}

// whileRunning starts a verb, calls do with the first line that it prints, and kills it.
func (d *daemon) whileRunning(do func(line string) error, words ...string) error {
	cmd := d.command(words...)
	var talk strings.Builder
	cmd.Stderr = &talk
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
		return fmt.Errorf("podd %s: %w; stderr %q", strings.Join(words, " "), err, talk.String())
	}
	return nil
}

// isMeasured returns an error unless the summary has the image file system and the layer of
// the container, both of which the runtime measures.
func (d *daemon) isMeasured() error {
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
		return errors.New("the summary lacks the pod or the image file system")
	}
	if c := containerStats(&s.Pods[0], "main"); c == nil || c.Rootfs == nil || c.Rootfs.UsedBytes == nil {
		return errors.New("the summary lacks the container's layer")
	}
	return nil
}

// daemon prepares a podd for the story, through a proxy.
func (s faultStory) daemon(d *daemon) *proxy {
	d.args = append(d.args, s.flags...)
	return d.throughProxy()
}

// firstCalls returns the first call of each of the story's methods.
func (s faultStory) firstCalls() []call {
	var all []call
	for _, m := range s.methods {
		all = append(all, call{Method: m, Nth: 1})
	}
	return all
}

// around runs two parallel subtests for each call: with a fault before and after it.
func (s faultStory) around(t *testing.T, calls []call, test func(t *testing.T, s faultStory, c call, at moment)) {
	for _, c := range calls {
		for _, at := range []moment{before, after} {
			t.Run(fmt.Sprintf("%s: %s %s", s.name, at, c), func(t *testing.T) {
				t.Parallel()
				test(t, s, c, at)
			})
		}
	}
}

// made tells the story without a fault and returns the methods that podd calls, sorted.
func (s faultStory) made(t *testing.T) []string {
	d := newDaemon(t, shared)
	p := s.daemon(d)
	d.start()
	s.begin(d)
	s.act(d)
	s.ends(d)
	s.check(d, mercy{})
	var all []string
	for _, c := range p.record() {
		all = append(all, c.Method)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// A fault happens to one call.
type fault struct {
	at moment
	// strike is called by the goroutine of the call. If it returns true, the call goes no
	// further and podd gets an error.
	strike func() bool
}

// suffer tells the story with a fault of one call.
func (s faultStory) suffer(d *daemon, c call, f fault) {
	p := s.daemon(d)
	struck := p.strikeOnce(c, f)
	d.start()
	s.begin(d)
	s.act(d)
	s.ends(d)
	if !struck.Load() {
		d.t.Errorf("podd made no call %s", c)
	}
	s.check(d, mercy{twice: s.hooks, unasked: c.Method == "StopContainer", restarted: c.Method == "ExecSync" && s.hooks})
}

// sufferUntilRemoved removes the pod while a call of it hangs. Another pod starts meanwhile.
func (s faultStory) sufferUntilRemoved(d *daemon, c call, f fault) {
	p := s.daemon(d)
	struck := p.strikeOnce(c, f)
	d.start()
	d.apply(s.pod(d))
	d.eventually("the call hangs", func() error {
		if !struck.Load() {
			return fmt.Errorf("podd made no call %s", c)
		}
		return nil
	})
	d.apply(d.pod("other", shell("main", serve("other"))))
	d.untilApplied("other")
	d.remove("web")
	d.untilGone("web")
}

// strikeOnce makes a fault happen to one call. It returns whether that has happened.
func (p *proxy) strikeOnce(c call, f fault) *atomic.Bool {
	struck := &atomic.Bool{}
	p.onCall(func(at moment, now call) (stop bool) {
		return at == f.at && now.String() == c.String() && struck.CompareAndSwap(false, true) && f.strike()
	})
	return struck
}
