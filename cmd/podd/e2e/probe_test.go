//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	service "google.golang.org/grpc/health/grpc_health_v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"podd/server"
)

// every is a probe that asks each second, and whose first answer counts, however
// long a slow machine takes for it.
func every(h v1.ProbeHandler) *v1.Probe {
	return &v1.Probe{ProbeHandler: h, PeriodSeconds: 1, TimeoutSeconds: 60, FailureThreshold: 1}
}

func executes(script string) v1.ProbeHandler {
	return v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"sh", "-c", script}}}
}

func withReadiness(c v1.Container, p *v1.Probe) v1.Container {
	c.ReadinessProbe = p
	return c
}

func readiness(is bool) func(*server.PodView) error {
	return func(p *server.PodView) error {
		if len(p.Pod.Status.ContainerStatuses) == 0 {
			return fmt.Errorf("it has no containers")
		}
		c := p.Pod.Status.ContainerStatuses[0]
		if c.State.Running == nil || c.Ready != is || p.Ready != is {
			return fmt.Errorf("container ready %v, pod ready %v, state %+v, steps %+v", c.Ready, p.Ready, c.State, p.Steps)
		}
		return nil
	}
}

// TestProbeWarning checks the event for a probe that is redirected to another host:
// the redirect is not followed, and the attempt passes.
func TestProbeWarning(t *testing.T) {
	t.Parallel()
	d := begin(t)
	web := httptest.NewServer(http.RedirectHandler("http://0.0.0.0/", http.StatusFound))
	t.Cleanup(web.Close)
	c := shell("main", serve("web"))
	c.LivenessProbe = every(v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{
		Host: "127.0.0.1", Port: intstr.FromInt(web.Listener.Addr().(*net.TCPAddr).Port), Path: "/redirect", Scheme: v1.URISchemeHTTP,
	}})
	d.apply(d.pod("web", c))
	d.untilApplied("web")
	e := d.untilEvent("web", 2, "ProbeWarning", `Liveness probe warning: Probe terminated redirects, Response body: <a href="http://0.0.0.0/">Found</a>.`)
	if e.Type != v1.EventTypeWarning || e.InvolvedObject.FieldPath != "spec.containers{main}" {
		t.Errorf("got %+v, want a warning about the container", e)
	}
}

// TestReadinessKinds: each way to ask makes a pod ready, unready with a reason,
// and ready again, and its container runs on.
func TestReadinessKinds(t *testing.T) {
	t.Parallel()
	d := begin(t)
	ill := func(yes bool) func() {
		return func() {
			d.tellPods("www")
			if yes {
				os.Remove(filepath.Join(d.shared(), "www"))
			}
		}
	}
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	healthy := health.NewServer()
	server := grpc.NewServer()
	service.RegisterHealthServer(server, healthy)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-served })
	set := func(s service.HealthCheckResponse_ServingStatus) func() {
		return func() { healthy.SetServingStatus("db", s) }
	}
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat(filepath.Join(d.shared(), "www")); err != nil {
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(secure.Close)
	onHost := func(p *v1.Pod) *v1.Pod { p.Spec.HostNetwork = true; return p }
	db := "db"
	httpd := withReadiness(shell("main", "trap 'exit 0' TERM; httpd -f -p 8080 -h /trace & wait"),
		every(v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/www", Port: intstr.FromString("web")}}))
	httpd.Ports = []v1.ContainerPort{{Name: "web", ContainerPort: 8080}}
	for _, c := range []struct {
		pod            *v1.Pod
		better, worsen func()
		why            string
	}{
		{d.pod("exec", withReadiness(shell("main", serve("exec")), every(executes("cat /trace/www")))), ill(false), ill(true), "exit 1: cat: "},
		{d.pod("http", httpd), ill(false), ill(true), "HTTP probe failed with statuscode: 404"},
		{onHost(d.pod("grpc", withReadiness(shell("main", serve("grpc")), every(v1.ProbeHandler{GRPC: &v1.GRPCAction{
			Port: int32(listener.Addr().(*net.TCPAddr).Port), Service: &db,
		}})))), set(service.HealthCheckResponse_SERVING), set(service.HealthCheckResponse_NOT_SERVING), `service unhealthy (responded with "NOT_SERVING")`},
		{onHost(d.pod("https", withReadiness(shell("main", serve("https")), every(v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{
			Scheme: v1.URISchemeHTTPS, Host: "127.0.0.1", Port: intstr.FromInt32(int32(secure.Listener.Addr().(*net.TCPAddr).Port)),
		}})))), ill(false), ill(true), "HTTP probe failed with statuscode: 404"},
		{d.pod("tcp", withReadiness(shell("main", "trap 'exit 0' TERM; while :; do [ -e /trace/www ] && timeout 2 nc -l -p 8080; sleep 0.1; done"),
			every(v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(8080)}}))), ill(false), ill(true), "connection refused"},
	} {
		name := c.pod.Name
		c.worsen()
		d.apply(c.pod)
		d.untilPod("runs and is not ready", name, readiness(false))
		was := d.runs(name, "main")
		c.better()
		d.untilPod("is ready", name, readiness(true))
		c.worsen()
		p := d.untilPod("is not ready any more", name, readiness(false))
		if why := p.Steps[0].Why; !strings.Contains(why, "readiness probe failed: ") || !strings.Contains(why, c.why) || !p.Steps[0].Problem {
			t.Errorf("%s: says %q, want %q", name, why, c.why)
		}
		// What listened only now and then may be heard once more.
		d.eventually("podd why tells of it", func() error {
			if out, _ := d.verb("why", name); !strings.Contains(out, "readiness probe failed: ") {
				return fmt.Errorf("podd why %s says\n%s", name, out)
			}
			return nil
		})
		c.better()
		d.untilPod("is ready again", name, readiness(true))
		if now := d.runs(name, "main"); now != was {
			t.Errorf("%s is now %+v, was %+v", name, now, was)
		}
		d.remove(name)
		d.untilGone(name)
	}
}

// TestUnreadyBeforeItEnds: who is told to end and serves no more is not ready, while
// it runs on to finish its work; the manifest may be gone by then.
func TestUnreadyBeforeItEnds(t *testing.T) {
	t.Parallel()
	d := begin(t)
	drains := "trap 'touch /draining; until [ -e /trace/go ]; do sleep 0.1; done; exit 0' TERM; " + note("main runs") + "while :; do sleep 3600 & wait; done"
	p := d.pod("web", withReadiness(shell("main", drains), every(executes("test ! -e /draining"))))
	p.Spec.TerminationGracePeriodSeconds = new(int64(600))
	d.apply(p)
	d.untilApplied("web")
	was := d.runs("web", "main")
	d.remove("web")
	d.untilPod("is not ready any more", "web", func(p *server.PodView) error {
		if p.Pod.DeletionTimestamp == nil {
			return fmt.Errorf("it is not being ended")
		}
		return readiness(false)(p)
	})
	if out, _ := d.verb("ps"); !strings.Contains(out, "0/1") || !strings.Contains(out, "Terminating") {
		t.Errorf("podd ps says\n%s", out)
	}
	if !alive(was.PID) {
		t.Error("the container has ended")
	}
	d.tellPods("go")
	d.untilGone("web")
}

// TestLivenessRestarts: what fails is ended with the probe's own grace and started
// again, the others of its pod run on.
func TestLivenessRestarts(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	proxy := d.throughProxy()
	d.start()
	c := shell("main", "if [ -e /trace/again ]; then "+serve("second")+"; fi; touch /trace/again; "+stubborn("first"))
	c.LivenessProbe = every(executes("test ! -e /trace/ill || { rm /trace/ill; echo 'no disk'; exit 3; }"))
	c.LivenessProbe.TerminationGracePeriodSeconds = new(int64(1))
	p := d.pod("web", c, shell("other", serve("other")))
	p.Spec.TerminationGracePeriodSeconds = new(int64(25))
	d.apply(p)
	d.untilApplied("web")
	other := d.runs("web", "other")
	d.untilJournal("first runs")
	d.tellPods("ill")
	d.untilPod("runs again", "web", func(p *server.PodView) error {
		if n := restarts(p, "main"); n != 1 || !p.Ready {
			return fmt.Errorf("%d restarts, ready %v", n, p.Ready)
		}
		return nil
	})
	// The runtime is given two seconds at least.
	if graces := proxy.graces(t); len(graces) == 0 || slices.Max(graces) > 2 {
		t.Errorf("the runtime was given %v seconds, though the probe's grace is one", graces)
	}
	if now := d.runs("web", "other"); now != other {
		t.Errorf("the other container is now %+v, was %+v", now, other)
	}
	if log, err := os.ReadFile(d.output()); err != nil || !strings.Contains(string(log), "liveness probe failed: exit 3: no disk") {
		t.Errorf("the log says nothing of it: %v", err)
	}
}

// TestStartupHolds: until it has started nobody asks whether it is alive, and
// what comes behind a sidecar waits; one that never starts is started again.
func TestStartupHolds(t *testing.T) {
	t.Parallel()
	d := begin(t)
	side := sidecar("side", note("side runs")+"mkdir /trace/first || touch /trace/up; trap 'exit 0' TERM; sleep 3600 & wait")
	side.StartupProbe = every(executes("test -e /trace/up"))
	side.StartupProbe.FailureThreshold = 3
	side.LivenessProbe = every(executes(note("side is asked") + "true"))
	p := d.pod("web", shell("main", serve("main")))
	p.Spec.InitContainers = []v1.Container{side}
	d.apply(p)
	// With a second one of it, since the first did not start in time.
	d.untilApplied("web")
	d.untilJournal("side is asked")
	d.untilJournal("main runs")
	if got := d.journal(); got[0] != "side runs" || got[1] != "side runs" || slices.Contains(got[2:], "side runs") {
		t.Errorf("noted %q", got)
	}
}

// TestKillFlipsNothing: what was ready, or was not, is so from the first word of
// the next podd on, and nothing has restarted.
func TestKillFlipsNothing(t *testing.T) {
	t.Parallel()
	d := begin(t)
	slow := every(executes("test -e /trace/up"))
	slow.PeriodSeconds = 60 // nothing is asked in time: only memory tells
	ready := withReadiness(shell("main", "touch /trace/up; "+serve("ready")), slow)
	ready.StartupProbe, ready.LivenessProbe = every(executes("test -e /trace/up")), every(executes("true"))
	d.apply(d.pod("ready", ready))
	d.untilApplied("ready")
	never := withReadiness(shell("main", serve("never")), every(executes("exit 1")))
	d.apply(d.pod("never", never))
	d.untilPod("runs and is not ready", "never", readiness(false))
	was, wasNever := d.runs("ready", "main"), d.runs("never", "main")
	for range 2 {
		d.kill()
		d.launch()
		d.eventually("podd answers", func() error { _, err := d.state(); return err })
		d.stays(4, "it is probed by the next podd", func(v *server.View) error {
			for name, is := range map[string]bool{"ready": true, "never": false} {
				p := d.find(v, name)
				if p == nil || len(p.Pod.Status.ContainerStatuses) == 0 || p.Pod.Status.ContainerStatuses[0].State.Running == nil {
					continue // the runtime was not seen yet
				}
				if err := readiness(is)(p); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			return nil
		})
	}
	d.untilPod("is ready", "ready", readiness(true))
	if now := d.runs("ready", "main"); now != was {
		t.Errorf("it is now %+v, was %+v", now, was)
	}
	if now := d.runs("never", "main"); now != wasNever {
		t.Errorf("the other is now %+v, was %+v", now, wasNever)
	}
}

// TestExecProbesAreCheap: twenty attempts a second, as two hundred pods make them
// by default, cost podd less than 6 % of a core.
func TestExecProbesAreCheap(t *testing.T) {
	d := begin(t)
	var pods []*v1.Pod
	for i := range 20 {
		c := shell("main", serve("main"))
		c.LivenessProbe = every(executes("true"))
		pods = append(pods, d.pod(fmt.Sprintf("p%02d", i), c))
	}
	d.apply(pods...)
	for _, p := range pods {
		d.untilApplied(p.Name)
	}
	const length = 10 * time.Second
	<-time.After(length / 4) // what starting cost is over
	before := processorTime(t, d.proc.pid())
	<-time.After(length)
	used := processorTime(t, d.proc.pid()) - before
	t.Logf("20 attempts a second take %.1f %% of a core", 100*used.Seconds()/length.Seconds())
	if used > length*6/100 {
		t.Errorf("podd used %s in %s", used, length)
	}
	var names []string
	for _, p := range pods {
		names = append(names, p.Name)
	}
	d.remove(names...)
	d.untilGone(names...)
}

// TestOnceWaitsForReadiness: a pod that goes on is ready when its probe says so.
func TestOnceWaitsForReadiness(t *testing.T) {
	t.Parallel()
	d := withRuns(t)
	d.runPods(
		d.job("db", always, withReadiness(shell("pg", "sleep 2; "+note("db is up")+"touch /trace/up; trap 'exit 0' TERM; sleep 3600 & wait"), every(executes("test -e /trace/up")))),
		d.job("test", never, shell("c", note("test runs"))),
	).ends(0)
	d.untilNoted("db is up", "test runs")
}
