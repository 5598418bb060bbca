//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// story is something podd does in several calls. However often it is killed
// in between, what comes of it is the same.
type story struct {
	name  string
	first func(*daemon) // brings about where it begins; podd is not killed
	act   func(*daemon) // changes what is wanted
	ends  func(*daemon) // waits for the end
	noted []string      // by the pods, in the end, in order
	kept  string        // lines that their claim holds then
	// hooks says that it has some: one that podd was killed amid is made again.
	hooks bool
}

var stories = []story{
	{
		name: "start",
		act:  func(d *daemon) { d.apply(d.storyPod("one")) },
		ends: func(d *daemon) { d.untilApplied("web") },
		noted: []string{
			"one init", "one runs",
		},
		kept: "one",
	},
	{
		name:  "stop",
		first: func(d *daemon) { d.apply(d.storyPod("one")); d.untilApplied("web"); d.untilJournal("one runs") },
		act:   func(d *daemon) { d.remove("web") },
		ends:  func(d *daemon) { d.untilGone("web") },
		noted: []string{"one init", "one runs", "one TERM"},
		kept:  "one",
	},
	{
		name:  "replace",
		first: func(d *daemon) { d.apply(d.storyPod("one")); d.untilApplied("web"); d.untilJournal("one runs") },
		act:   func(d *daemon) { d.apply(d.storyPod("two")) },
		ends:  func(d *daemon) { d.untilApplied("web") },
		noted: []string{"one init", "one runs", "one TERM", "two init", "two runs"},
		kept:  "one two",
	},
	{
		name:  "start hook",
		act:   func(d *daemon) { d.apply(d.hookedPod()) },
		ends:  func(d *daemon) { d.untilApplied("web") },
		noted: []string{"one runs", "one postStart"},
		hooks: true,
	},
	{
		name:  "stop hook",
		first: func(d *daemon) { d.apply(d.hookedPod()); d.untilApplied("web") },
		act:   func(d *daemon) { d.remove("web") },
		ends:  func(d *daemon) { d.untilGone("web") },
		noted: []string{"one runs", "one postStart", "one preStop", "one TERM"},
		hooks: true,
	},
	{
		name: "finish",
		act: func(d *daemon) {
			p := once(d.pod("web", shell("main", note("one runs"))), v1.RestartPolicyNever)
			withVolume(p, "data", "/data", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
			d.withSecret(p)
			d.apply(p)
		},
		ends: func(d *daemon) {
			d.untilPod("succeeded", "web", inPhase(v1.PodSucceeded))
			d.untilWoundDown("web")
		},
		noted: []string{"one runs"},
	},
}

// storyPod has an init container, volumes and a container that serves.
func (d *daemon) storyPod(version string) *v1.Pod {
	p := d.pod("web", shell("main", "echo "+version+" >>/kept/x; "+serve(version)))
	p.Spec.TerminationGracePeriodSeconds = new(int64(20))
	p.Spec.InitContainers = []v1.Container{shell("init", note(version+" init"))}
	withVolume(p, "data", "/data", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
	d.withSecret(p)
	d.write("claim", text(d, claim("data", v1.ReadWriteOncePod)))
	withVolume(p, "kept", "/kept", v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}})
	withPart(p, "data", "/part", "a/b")
	withPart(p, "key", "/pass", "pass")
	return p
}

// hookedPod has a hook at either end.
func (d *daemon) hookedPod() *v1.Pod {
	p := d.pod("web", withHooks(shell("main", up("one")), onceUp(note("one postStart")), runsHook(note("one preStop"))))
	p.Spec.TerminationGracePeriodSeconds = new(int64(20))
	return p
}

// withSecret mounts a Secret, and so a file system, and writes it beside p.
func (d *daemon) withSecret(p *v1.Pod) {
	d.t.Helper()
	d.write("secret", text(d, secret("key", "", map[string]string{"pass": password})))
	withVolume(p, "key", "/key", v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "key"}})
}

func TestKillAtEveryCall(t *testing.T) {
	t.Parallel()
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			calls := s.calls(t)
			last := lastEffect(calls)
			if last.Method == "" {
				t.Fatal("the story has no effect")
			}
			for _, c := range calls {
				for _, m := range moments(c) {
					t.Run(fmt.Sprintf("%s %s", m, c), func(t *testing.T) {
						t.Parallel()
						s.tell(t, m, c, last)
					})
				}
			}
		})
	}
}

// effects are the calls that change something.
var effects = []string{
	"RunPodSandbox", "StopPodSandbox", "RemovePodSandbox", "CreateContainer", "StartContainer", "StopContainer", "RemoveContainer", "ExecSync",
}

// looks are those that a pod needs; the others ask for the node.
var looks = []string{"ImageStatus", "PodSandboxStatus", "ContainerStatus", "ListPodSandbox", "ListContainers"}

func moments(c call) []moment {
	if c.Method == "RunPodSandbox" || c.Method == "StartContainer" {
		return []moment{before, amid, after, asked}
	}
	if slices.Contains(effects, c.Method) {
		return []moment{before, amid, after}
	}
	return []moment{before, after}
}

// calls tells the story undisturbed and returns the calls that it takes, of those
// that only look the first of a kind.
func (s story) calls(t *testing.T) []call {
	d := newDaemon(t, shared)
	p := d.throughProxy()
	d.start()
	s.begin(d)
	p.onCall(nil)
	s.act(d)
	s.ends(d)
	s.check(d, mercy{})
	var calls []call
	for _, c := range p.record() {
		if slices.Contains(effects, c.Method) || slices.Contains(looks, c.Method) && c.Nth == 1 {
			calls = append(calls, c)
		}
	}
	return calls
}

func lastEffect(calls []call) (last call) {
	for _, c := range calls {
		if slices.Contains(effects, c.Method) {
			last = c
		}
	}
	return last
}

func (s story) begin(d *daemon) {
	if s.first != nil {
		s.first(d)
	}
}

// tell tells the story and kills podd at one moment of one call. podd looks when
// it has to: it may be over with the last effect and not have looked.
func (s story) tell(t *testing.T, m moment, at, last call) {
	d := newDaemon(t, shared)
	p := d.throughProxy()
	d.start()
	s.begin(d)
	killed := make(chan bool, 1)
	podd := d.proc
	var mu sync.Mutex // guards over, and that nobody is killed then
	over := false
	p.onCall(func(now moment, c call) bool {
		mu.Lock()
		defer mu.Unlock()
		if over || c.String() != at.String() {
			return false
		}
		switch {
		case now == amid && m == asked:
			// Asked, it lets the runtime finish.
			podd.signal(syscall.SIGTERM)
			killed <- false
		case now == m:
			cut := p.starting()
			podd.signal(syscall.SIGKILL)
			killed <- cut
		}
		return now == m
	})
	s.act(d)
	cut := false
	d.eventually("podd is killed", func() error {
		select {
		case cut = <-killed:
			d.start()
			return nil
		default:
		}
		mu.Lock()
		defer mu.Unlock()
		over = len(killed) == 0 && slices.Contains(looks, at.Method) && p.made(last)
		if !over {
			return fmt.Errorf("it makes no call %s", at)
		}
		return nil
	})
	s.ends(d)
	s.check(d, mercy{twice: cut || s.hooks, unasked: m == amid && at.Method == "StopContainer"})
}

// mercy is what containerd may make of a call whose caller is gone.
type mercy struct {
	// twice: a start or a hook that was cut short may have begun to run.
	twice bool
	// unasked: it may count TERM as sent that was not, and never sends it again.
	unasked bool
	// restarted: a postStart hook failed, so that its container started again.
	restarted bool
}

// check sees what has come of the story.
func (s story) check(d *daemon, m mercy) {
	d.t.Helper()
	isTERM := func(line string) bool { return strings.HasSuffix(line, " TERM") }
	d.eventually("the pods have noted everything once", func() error {
		got, want := d.journal(), slices.Clone(s.noted)
		if m.twice {
			got = slices.Compact(got)
		}
		if from := len(got) - len(want) + 1; m.restarted && from > 1 {
			got = slices.Delete(got, 1, from) // the init container did not run again
		}
		if m.unasked && !slices.ContainsFunc(got, isTERM) {
			want = slices.DeleteFunc(want, isTERM)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("got %q, want %q", d.journal(), s.noted)
		}
		return nil
	})
	if text, err := os.ReadFile(filepath.Join(d.root(), "claims/default/data/x")); s.kept != "" {
		got := strings.Fields(string(text))
		if m.twice {
			got = slices.Compact(got)
		}
		if strings.Join(got, " ") != s.kept {
			d.t.Errorf("the claim holds %q, %v; want %s", text, err, s.kept)
		}
	}
	if s.name == "stop" || s.name == "stop hook" || s.name == "finish" {
		// A podd that has only just begun shows no pod yet.
		d.eventually("nothing runs", func() error {
			if all := d.allRunning("web", ""); len(all) > 0 {
				return fmt.Errorf("%+v runs", all)
			}
			return nil
		})
		return
	}
	if all := d.allRunning("web", ""); len(all) != 1 {
		d.t.Errorf("%+v runs, want one container", all)
	}
	d.until("podd is content", func(v *server.View) error {
		if all := problems(v); len(all) > 0 {
			return fmt.Errorf("%q", all)
		}
		return nil
	})
}
