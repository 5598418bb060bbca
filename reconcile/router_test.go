package reconcile_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/plan"
	"podd/runtime/runtimetest"
)

const web = `containers: [{name: app, image: "web:1", imagePullPolicy: IfNotPresent}]`

// TestLife: a pod is added, edited and removed.
func TestLife(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.want(pod(t, "web", web))
		m.settle()
		m.is("web 0 ready", "web/app 0 running")
		m.Forget()
		m.want(pod(t, "web", "terminationGracePeriodSeconds: 5\n"+web))
		m.settle()
		m.is("web 0 ready", "web/app 0 running")
		m.didBeside("RemovePodSandbox web", "StopContainer web/app", "StopPodSandbox web", "RunPodSandbox web", "CreateContainer web/app", "StartContainer web/app")
		m.want()
		m.settle()
		m.is()
		if dirs := m.dirs(); len(dirs) > 0 || m.report("web") != nil {
			t.Fatalf("left: %v, %v", dirs, m.report("web"))
		}
		m.Forget()
		m.pass(time.Hour)
		m.did()
	})
}

// TestRestartOfPodd: a new podd on the same machine starts and stops nothing,
// whatever it hears of first.
func TestRestartOfPodd(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.want(
			pod(t, "web", web),
			pod(t, "job", `restartPolicy: Never
containers: [{name: app, image: "job:1", command: [sh, -c, "exit 3"]}]`),
			pod(t, "crash", `containers: [{name: app, image: "job:1", command: [sh, -c, "exit 3"]}]`),
			pod(t, "init", `initContainers: [{name: side, image: "side:1", restartPolicy: Always}, {name: one, image: "init:1", command: [sh, -c, "exit 0"]}]
containers: [{name: app, image: "web:1"}]`),
		)
		m.pass(5 * time.Second) // crash waits for its third start
		before := strings.Join(m.Containers(), "\n")
		m.Forget()
		m.kill()
		m.start()
		m.pass(4 * time.Second)
		m.did()
		if now := strings.Join(m.Containers(), "\n"); now != before {
			t.Fatalf("before\n%s\nnow\n%s", before, now)
		}
		m.pass(2 * time.Second)
		if n := len(m.Calls("StartContainer")); n != 1 {
			t.Errorf("%d starts when the back-off was over", n)
		}
	})
}

// TestGoneWhileDown: a pod whose manifest went while no podd ran is stopped with
// its own grace once its source was seen, and not before.
func TestGoneWhileDown(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.want(pod(t, "web", "terminationGracePeriodSeconds: 7\n"+`containers: [{name: app, image: "job:1", command: [sleep, inf]}]`))
		m.settle()
		m.kill()
		m.set = &manifest.Set{Complete: map[string]bool{}} // no source was seen yet
		m.Forget()
		m.start()
		m.settle()
		m.did()
		began := time.Now()
		m.want()
		m.settle()
		m.is()
		stops := m.Calls("StopContainer")
		if took := stops[0].At.Sub(began); took > time.Second {
			t.Errorf("stopping began after %s", took)
		}
		if took := m.Calls("StopPodSandbox")[0].At.Sub(began); took < 7*time.Second || took > 8*time.Second {
			t.Errorf("killed after %s, not its grace", took)
		}
		if len(m.dirs()) > 0 {
			t.Errorf("left: %v", m.dirs())
		}
	})
}

// TestStarting: podd says that it is starting until it shows all that is on the
// machine, and who asks for the end of all meanwhile waits for what is found.
func TestStarting(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.want(pod(t, "web", "terminationGracePeriodSeconds: 7\n"+`containers: [{name: app, image: "job:1", command: [sleep, inf]}]`))
		m.settle()
		for _, lost := range []bool{false, true} {
			m.kill()
			m.set = &manifest.Set{Complete: map[string]bool{source: true}} // removed
			if lost {
				for _, dir := range m.dirs() {
					os.RemoveAll(filepath.Join(m.root, "pods", dir))
				}
			}
			m.Inject(runtimetest.Fault{Method: "ListPodSandbox", Nth: 1, Delay: time.Second})
			m.start()
			time.Sleep(2 * time.Second)
			if knew := m.known(); !slices.Equal(knew, []string{"web"}) {
				t.Errorf("journal lost %t: it knew %q", lost, knew)
			}
		}
		m.kill()
		m.start()
		if err := m.life().router.Down(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.is()
	})
}

// TestDown ends every pod, and starts none again.
func TestDown(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.want(pod(t, "a", web), pod(t, "b", web), pod(t, "job", `restartPolicy: Never
containers: [{name: app, image: "job:1", command: [sh, -c, "exit 0"]}]`))
		m.settle()
		if err := m.life().router.Down(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.is()
		if len(m.dirs()) > 0 {
			t.Errorf("left: %v", m.dirs())
		}
		m.want(pod(t, "c", web))
		m.settle()
		m.is()
		if err := m.life().router.Down(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestDownGivesUp: Down returns when its context is done, pods go on ending.
func TestDownGivesUp(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.want(pod(t, "a", `containers: [{name: app, image: "job:1", command: [sleep, inf]}]`))
		m.settle()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := m.life().router.Down(ctx); err == nil {
			t.Fatal("down before its grace was over")
		}
		m.settle()
		m.settle()
		m.is()
	})
}

// TestRestartAsked restarts what runs, once, and only of the named pod.
func TestRestartAsked(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		two := `containers: [{name: app, image: "web:1"}, {name: too, image: "web:1"}]`
		m.want(pod(t, "web", two), pod(t, "b", web))
		m.settle()
		if err := m.life().router.Restart(t.Context(), key("web"), "app"); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.is("b 0 ready", "b/app 0 running", "web 0 ready", "web/app 0 exited 143", "web/app 1 running", "web/too 0 running")
		if err := m.life().router.Restart(t.Context(), key("web"), ""); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.is("b 0 ready", "b/app 0 running", "web 0 ready", "web/app 1 exited 143", "web/app 2 running", "web/too 0 exited 143", "web/too 1 running")
		if err := m.life().router.Restart(t.Context(), key("none"), ""); err == nil {
			t.Error("restarted a pod that is not there")
		}
	})
}

// TestRestartInsteadOfWaiting: a container that is held back after a crash starts
// at once when a user asks for it.
func TestRestartInsteadOfWaiting(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.want(pod(t, "web", web))
		m.settle()
		for range 3 {
			m.Exit("default/web/app", 1)
			m.pass(time.Second)
		}
		m.is("web 0 ready", "web/app 1 exited 1")
		if err := m.life().router.Restart(t.Context(), key("web"), ""); err != nil {
			t.Fatal(err)
		}
		m.pass(time.Second)
		m.is("web 0 ready", "web/app 1 exited 1", "web/app 2 running")
	})
}

// TestRestartAskedBesideForeign: containers of others with the same name are not
// meant.
func TestRestartAskedBesideForeign(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.want(pod(t, "web", web))
		m.settle()
		m.foreign("web")
		m.settle()
		if err := m.life().router.Restart(t.Context(), key("web"), ""); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.is("web 0 ready", "web/app 0 exited 143", "web/app 1 running", "web 0 ready", "web/app 0 running")
	})
}

// TestForeignSinceTheLastLook: somebody else's pod that no observation has shown
// yet holds its name all the same.
func TestForeignSinceTheLastLook(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.MuteEvents(true)
		m.start()
		m.want(pod(t, "b", web))
		m.settle()
		m.foreign("web")
		m.want(pod(t, "b", web), pod(t, "web", web))
		m.settle()
		if got := m.rule("web"); got != "a foreign pod has the name" {
			t.Errorf("rule %q\n%s", got, m.story())
		}
	})
}

// TestHungPull holds nothing but its own pod, and ends when nobody wants it.
func TestHungPull(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.Inject(runtimetest.Fault{Method: "PullImage", Hang: true})
		m.start()
		hung := `containers: [{name: app, image: "hung:1"}]`
		m.want(pod(t, "hung", hung), pod(t, "web", web))
		m.settle()
		m.is("hung 0 ready", "web 0 ready", "web/app 0 running")
		// The image's name is mended.
		m.want(pod(t, "hung", web), pod(t, "web", web))
		m.settle()
		m.is("hung 0 ready", "hung/app 0 running", "web 0 ready", "web/app 0 running")
		// A pod is removed while its image is pulled.
		m.want(pod(t, "other", hung))
		m.settle()
		m.is("other 0 ready")
		m.want()
		m.settle()
		m.is()
		if m.report("other") != nil || len(m.dirs()) > 0 {
			t.Errorf("left: %v %v", m.report("other"), m.dirs())
		}
	})
}

// TestHungRunSandbox: a pod is removed while its sandbox is made; what comes of
// it is removed, too.
func TestHungRunSandbox(t *testing.T) {
	for _, alone := range []bool{false, true} {
		t.Run(fmt.Sprint(alone), func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				m.Inject(runtimetest.Fault{Method: "RunPodSandbox", Delay: 3 * time.Second, Alone: alone})
				m.start()
				m.want(pod(t, "web", web))
				m.pass(time.Second)
				m.want()
				m.settle()
				m.settle()
				m.is()
				if len(m.dirs()) > 0 || m.report("web") != nil {
					t.Errorf("left: %v %v", m.report("web"), m.dirs())
				}
			})
		})
	}
}

// TestNameReserved: an interrupted call holds the name of a sandbox for a while,
// or for good.
func TestNameReserved(t *testing.T) {
	for name, c := range map[string]struct {
		held time.Duration
		want string
	}{"a while": {3 * time.Second, "web 0 ready"}, "for good": {time.Hour, "web 1 ready"}} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, m *machine) {
				began := time.Now()
				m.Inject(runtimetest.Fault{Method: "RunPodSandbox", Err: reserved, Match: func(q any) bool {
					return attempt(q) == 0 && time.Since(began) < c.held
				}})
				m.start()
				m.want(pod(t, "web", web))
				m.settle()
				m.is(c.want, "web/app 0 running")
			})
		})
	}
}

// TestLostAnswer: the call that makes a sandbox ends without an answer while the
// runtime is slow to list; podd looks before it makes another one.
func TestLostAnswer(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.Inject(runtimetest.Fault{Method: "RunPodSandbox", Nth: 1, After: true})
		m.start()
		m.settle()
		began := time.Now()
		m.Inject(runtimetest.Fault{Method: "ListPodSandbox", Delay: 30 * time.Second, Match: func(any) bool { return time.Since(began) < 5*time.Second }})
		m.want(pod(t, "web", web))
		m.pass(time.Minute)
		m.is("web 0 ready", "web/app 0 running")
		if n := len(m.Calls("RunPodSandbox")); n != 1 {
			t.Errorf("%d sandboxes were asked for", n)
		}
	})
}

// TestRuntimeAway: a runtime that goes and comes back costs time and nothing
// else; what ended meanwhile is seen.
func TestRuntimeAway(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.want(pod(t, "web", web), pod(t, "b", web))
		m.settle()
		m.Forget()
		m.Down()
		m.Exit("default/b/app", 1)
		m.want(pod(t, "web", web), pod(t, "b", web), pod(t, "c", web))
		m.settle()
		if got := m.rule("web"); got != "runtime does not answer" {
			t.Errorf("rule %q", got)
		}
		m.Up()
		m.settle()
		m.is("b 0 ready", "b/app 0 exited 1", "b/app 1 running", "c 0 ready", "c/app 0 running", "web 0 ready", "web/app 0 running")
	})
}

// TestRuntimeComesLater: podd starts before the runtime does.
func TestRuntimeComesLater(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.Down()
		m.start()
		m.want(pod(t, "web", web))
		m.settle()
		m.Up()
		m.settle()
		m.is("web 0 ready", "web/app 0 running")
	})
}

// TestPublished: what is published is not older than what was decided, though
// nothing happens any more.
func TestPublished(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.MuteEvents(true) // nothing but effects brings news before the next relist
		m.start()
		var pods []*manifest.Pod
		for i := range 20 {
			pods = append(pods, pod(t, fmt.Sprintf("p%d", i), web))
		}
		m.want(pods...)
		for range 2000 {
			m.pass(time.Millisecond)
			runs := m.Containers()
			for _, p := range pods {
				r := m.report(p.Key.Name)
				if slices.Contains(runs, "default/"+p.Key.Name+"/app 0 running") && (len(r.Observed) == 0 || len(r.Observed[0].Containers) == 0) {
					t.Fatalf("%s runs and is published as %s", p.Key, r.Decision)
				}
			}
		}
		for _, p := range pods {
			if r := m.report(p.Key.Name); r == nil || len(r.Observed) == 0 || len(r.Observed[0].Containers) != 1 {
				t.Errorf("%s is published as %+v", p.Key, r)
			}
		}
	})
}

// TestAdmission: a host port is given to one pod, to who had it first; who waits
// gets it when it is free.
func TestAdmission(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		port := func(name string, n int) *manifest.Pod {
			return pod(t, name, fmt.Sprintf(`containers: [{name: app, image: "web:1", ports: [{containerPort: %d, hostPort: %d}]}]`, n, n))
		}
		m.start()
		m.want(port("web", 80))
		m.settle()
		m.want(port("web", 80), port("a", 80))
		m.settle()
		m.is("web 0 ready", "web/app 0 running")
		if r := m.report("a"); r.Decision.Rule != "not admitted" || r.Decision.Reason != "HostPortConflict" {
			t.Errorf("a is %v", r.Decision)
		}
		// Also by a podd that starts anew, whoever comes first by name.
		m.restart()
		m.is("web 0 ready", "web/app 0 running")
		// A good pod is made anew when its sandbox dies, a rejected one has no say.
		m.killSandbox("web")
		m.settle()
		m.is("web 1 ready", "web/app 1 running")
		// An edit that wants a port that is taken: the version that runs keeps its own.
		b := port("b", 81)
		m.want(port("web", 80), b)
		m.settle()
		m.want(port("web", 80), port("b", 80))
		m.settle()
		m.is("b 0 ready", "b/app 0 running", "web 1 ready", "web/app 1 running")
		m.killSandbox("b")
		m.settle()
		m.killSandbox("web")
		m.settle()
		if got := m.Containers(); !slices.Contains(got, "default/web/app 2 running") {
			t.Errorf("a rejected pod keeps a good one from its port:\n%s\n%s", strings.Join(got, "\n"), m.story())
		}
		// They swap ports.
		m.want(port("x", 90), port("z", 91))
		m.settle()
		m.want(port("x", 91), port("z", 90))
		m.settle()
		m.is("x 0 ready", "x/app 0 running", "z 0 ready", "z/app 0 running")
	})
}

// TestBrokenEditKeepsPort: an edit whose image is not there keeps its pod's port,
// so an edit that wants that port stops nothing either, until both can go on.
func TestBrokenEditKeepsPort(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		port := func(name, image string, n int) *manifest.Pod {
			return pod(t, name, fmt.Sprintf(`containers: [{name: app, image: %q, ports: [{containerPort: %d, hostPort: %d}]}]`, image, n, n))
		}
		m.start()
		m.want(port("a", "web:1", 90), port("x", "web:1", 80))
		m.settle()
		m.Forget()
		m.want(port("a", "web:1", 80), port("x", "missing:1", 81))
		m.pass(3 * time.Minute)
		m.is("a 0 ready", "a/app 0 running", "x 0 ready", "x/app 0 running")
		m.restart()
		m.pass(3 * time.Minute)
		m.is("a 0 ready", "a/app 0 running", "x 0 ready", "x/app 0 running")
		m.did()
		m.AddRemote(runtimetest.Remote{Image: runtimetest.Image{Name: "missing:1"}})
		m.pass(6 * time.Minute)
		m.is("a 0 ready", "a/app 0 running", "x 0 ready", "x/app 0 running")
		for _, p := range []*manifest.Pod{port("a", "web:1", 80), port("x", "missing:1", 81)} {
			if r := m.report(p.Key.Name); r.Version.Hash != p.Hash {
				t.Errorf("%s is not edited: %s", p.Key, r.Decision)
			}
		}
	})
}

// TestEditWithoutItsVolumes: an edit that mounts what is not there leaves the
// earlier version running, and takes over once it is.
func TestEditWithoutItsVolumes(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		data := filepath.Join(m.root, "data")
		edit := "volumes: [{name: data, hostPath: {path: " + data + ", type: Directory}}]\n" + web
		m.start()
		m.want(pod(t, "web", web))
		m.settle()
		m.want(pod(t, "web", edit))
		m.settle()
		m.is("web 0 ready", "web/app 0 running")
		if d := m.report("web").Decision; !d.Problem || !strings.Contains(d.Why, data) {
			t.Errorf("the decision is\n%s", d)
		}
		if err := os.Mkdir(data, 0o755); err != nil {
			t.Fatal(err)
		}
		m.pass(time.Minute)
		m.is("web 0 ready", "web/app 0 running")
		if d := m.report("web").Decision; d.Problem || d.Why != "" {
			t.Errorf("the decision is\n%s", d)
		}
	})
}

// TestAnotherImage: what an image failed of is not held against the next one.
func TestAnotherImage(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		image := func(name string) *manifest.Pod { return pod(t, "web", strings.Replace(web, "web:1", name, 1)) }
		reason := func() string {
			return m.report("web").Pod.Status.ContainerStatuses[0].State.Waiting.Reason
		}
		m.start()
		m.want(image("missing:1"))
		m.pass(time.Minute)
		if got := reason(); got != "ImagePullBackOff" {
			t.Errorf("after a minute: %s", got)
		}
		m.want(image("missing:2"))
		m.pass(time.Second)
		if got := reason(); got != "ErrImagePull" {
			t.Errorf("at first: %s", got)
		}
	})
}

// TestMovedUID: a fixed uid moves to another name: its directory is not taken
// from under the new one, also when it moved while no podd ran.
func TestMovedUID(t *testing.T) {
	for _, down := range []bool{false, true} {
		t.Run(fmt.Sprint("down ", down), func(t *testing.T) { run(t, func(t *testing.T, m *machine) { movedUID(t, m, down) }) })
	}
}

func movedUID(t *testing.T, m *machine, down bool) {
	text := func(name string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", uid: abc}\nspec:\n  volumes: [{name: v, emptyDir: {}}]\n" +
			"  containers: [{name: app, image: \"job:1\", command: [sleep, inf], volumeMounts: [{name: v, mountPath: /v}]}]\n"
	}
	m.start()
	m.want(podOf(t, text("old")))
	m.settle()
	if down {
		m.kill()
	}
	m.want(podOf(t, text("new")))
	if down {
		m.start()
	}
	m.settle()
	m.settle()
	m.is("new 0 ready", "new/app 0 running")
	if !slices.Equal(m.dirs(), []string{"abc"}) {
		t.Fatalf("directories: %v", m.dirs())
	}
	removed := m.Calls("RemovePodSandbox")[0].At
	for _, c := range m.Calls("RunPodSandbox") {
		if c.Subject == "default/new" && c.At.Before(removed) {
			t.Errorf("new was started while old was there")
		}
	}
}

// TestFinishedHoldsNothing: a pod that ran to its end keeps nobody from its host
// port, nor from its place on the node.
func TestFinishedHoldsNothing(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = func(o *reconcile.Options) { o.Limits.MaxPods = 1 }
		done := pod(t, "done", `restartPolicy: Never
containers: [{name: app, image: "job:1", command: [sh, -c, "exit 0"], ports: [{containerPort: 80, hostPort: 80}]}]`)
		web := pod(t, "web", `containers: [{name: app, image: "web:1", ports: [{containerPort: 80, hostPort: 80}]}]`)
		m.start()
		m.want(done)
		m.settle()
		m.want(done, web)
		m.settle()
		m.is("done 0 dead", "done/app 0 exited 0", "web 0 ready", "web/app 0 running")
		// A third one finds no place, also for a podd that starts anew.
		m.want(done, web, pod(t, "a", `containers: [{name: app, image: "web:1"}]`))
		m.settle()
		m.restart()
		m.is("done 0 dead", "done/app 0 exited 0", "web 0 ready", "web/app 0 running")
		if r := m.report("a"); r.Decision.Reason != "OutOfpods" {
			t.Errorf("a: %s", r.Decision)
		}
	})
}

// TestEvicted: only the version that was meant is ended for good.
func TestEvicted(t *testing.T) {
	t.Run("", func(t *testing.T) { testEvicted(t, false, "image: web:2", "memory: 1Gi") })
	t.Run("podd restarts", func(t *testing.T) { testEvicted(t, true, "image: web:2", "memory: 1Gi") })
	t.Run("resized", func(t *testing.T) { testEvicted(t, false, "image: web:1", "memory: 2Gi") })
	t.Run("resized, podd restarts", func(t *testing.T) { testEvicted(t, true, "image: web:1", "memory: 2Gi") })
}

func testEvicted(t *testing.T, restarted bool, image, memory string) {
	run(t, func(t *testing.T, m *machine) {
		text := func(image, memory string) string {
			return "apiVersion: v1\nkind: Pod\nmetadata: {name: big, uid: abc}\nspec:\n  containers:\n  - name: app\n    " + image + "\n    resources: {requests: {" + memory + "}}\n"
		}
		m.start()
		m.want(podOf(t, text("image: web:1", "memory: 1Gi")))
		m.settle()
		if err := m.life().router.Evict(t.Context(), key("big"), plan.Evict{UID: "abc", Message: "too big"}); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.is("big 0 dead", "big/app 0 exited 143")
		if restarted {
			m.restart()
			m.is("big 0 dead", "big/app 0 exited 143")
		}
		m.want(podOf(t, text(image, memory)))
		m.settle()
		if sandbox := m.Sandboxes(); len(sandbox) != 1 || !strings.HasSuffix(sandbox[0], "ready") || m.report("big").Pod.Status.Phase != v1.PodRunning {
			t.Errorf("there is %v\n%s", sandbox, m.story())
		}
	})
}

// TestDisk: a pod that the disk is too small for starts once it has grown, and is
// told of the new size; what runs is not touched when it shrinks.
func TestDisk(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = func(o *reconcile.Options) { o.Limits.Amounts = plan.Amounts{v1.ResourceEphemeralStorage: 1 << 30} }
		m.start()
		m.want(pod(t, "big", `containers: [{name: app, image: "web:1", resources: {requests: {ephemeral-storage: 2Gi}}, env: [{name: DISK, valueFrom: {resourceFieldRef: {resource: limits.ephemeral-storage, divisor: 1Gi}}}]}]`))
		m.settle()
		if r := m.report("big"); r.Decision.Reason != "OutOfephemeral-storage" {
			t.Fatalf("big: %s", r.Decision)
		}
		if err := m.life().router.Disk(t.Context(), 4<<30, 3<<30); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.is("big 0 ready", "big/app 0 running")
		if env := m.created("app")[0].Envs; len(env) == 0 || string(env[len(env)-1].Value) != "3" {
			t.Errorf("env %v", env)
		}
		if err := m.life().router.Disk(t.Context(), 1<<30, 1<<30); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.is("big 0 ready", "big/app 0 running")
	})
}

// TestDiskThatSways: a size that is nearly the same is told to nobody but a pod that
// fits now.
func TestDiskThatSways(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		const gib = 1 << 30
		m.options = func(o *reconcile.Options) {
			o.Limits.Amounts = plan.Amounts{v1.ResourceEphemeralStorage: 100 * gib}
			o.Render.Capacity.EphemeralStorage, o.Render.Allocatable.EphemeralStorage = 100*gib, 100*gib
		}
		m.start()
		m.want(pod(t, "web", web), pod(t, "big", `containers: [{name: app, image: "web:1", resources: {requests: {ephemeral-storage: 105Gi}}}]`))
		m.settle()
		before := m.report("big")
		for _, tt := range []struct {
			size, shown int64
			runs        bool
		}{{103, 100, false}, {98, 100, false}, {106, 100, true}, {120, 120, true}} {
			if err := m.life().router.Disk(t.Context(), tt.size*gib, tt.size*gib); err != nil {
				t.Fatal(err)
			}
			m.settle()
			now := m.report("big")
			if runs := now.Pod.Status.Phase == v1.PodRunning; runs != tt.runs || !runs && now != before {
				t.Errorf("%d GiB: big %s", tt.size, now.Decision)
			}
			m.mu.Lock()
			if got := m.node.EphemeralStorage; got != tt.shown*gib {
				t.Errorf("%d GiB: the node shows %d", tt.size, got/gib)
			}
			m.mu.Unlock()
		}
	})
}

// TestManyNames: a name that is gone leaves nothing behind in the router.
func TestManyNames(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		for i := range 30 {
			m.want(pod(t, fmt.Sprintf("p%d", i), web))
			m.settle()
		}
		m.want()
		m.settle()
		m.is()
		m.mu.Lock()
		defer m.mu.Unlock()
		if len(m.reports) > 0 {
			t.Errorf("still published: %v", m.reports)
		}
	})
}

// TestStrangersClaim: what runs of a version that no manifest has any more keeps
// its part of the node until it is gone, also for a podd that starts anew.
func TestStrangersClaim(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = func(o *reconcile.Options) { o.Limits.Amounts = plan.Amounts{v1.ResourceMemory: 1 << 30} }
		big := func(name, command string) *manifest.Pod {
			return pod(t, name, `terminationGracePeriodSeconds: 60
containers: [{name: app, image: "web:1", command: `+command+`, resources: {requests: {memory: 800Mi}}}]`)
		}
		m.start()
		m.want(big("old", "[sleep, inf]"))
		m.settle()
		m.want()
		m.pass(time.Second)
		m.restart()
		m.want(big("new", "[web]"))
		m.pass(20 * time.Second)
		if r := m.report("new"); r.Decision.Reason != "OutOfmemory" {
			t.Errorf("new: %s\n%s", r.Decision, m.story())
		}
		m.pass(time.Minute)
		m.is("new 0 ready", "new/app 0 running")
	})
}
