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

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	service "google.golang.org/grpc/health/grpc_health_v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"podd/server"
)

// probeEverySecond returns a probe with a period of one second and a failure threshold of 1. Its
// timeout is long enough for a slow host.
func probeEverySecond(h v1.ProbeHandler) *v1.Probe {
	return &v1.Probe{ProbeHandler: h, PeriodSeconds: 1, TimeoutSeconds: 60, FailureThreshold: 1}
}

func execHandler(script string) v1.ProbeHandler {
	return v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"sh", "-c", script}}}
}

func withReadiness(c v1.Container, p *v1.Probe) v1.Container {
	c.ReadinessProbe = p
	return c
}

// hasReadiness returns a check that the first container of a pod is running, and that this container and
// the pod are ready or, if ready is false, not ready.
func hasReadiness(ready bool) func(*server.PodView) error {
	return func(p *server.PodView) error {
		if len(p.Pod.Status.ContainerStatuses) == 0 {
			return fmt.Errorf("got no container status, want one")
		}
		c := p.Pod.Status.ContainerStatuses[0]
		if c.State.Running == nil || c.Ready != ready || p.Ready != ready {
			return fmt.Errorf("got container ready: %t, pod ready: %t; want %t for both and a running container; state %+v, decisions %+v", c.Ready, p.Ready, ready, c.State, p.Decisions)
		}
		return nil
	}
}

// TestProbeWarning checks the event for a probe that is redirected to another host. podd must
// not follow the redirect, and the probe must succeed.
func TestProbeWarning(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	web := httptest.NewServer(http.RedirectHandler("http://0.0.0.0/", http.StatusFound))
	t.Cleanup(web.Close)
	c := shell("main", serve("web"))
	c.LivenessProbe = probeEverySecond(v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{
		Host: "127.0.0.1", Port: intstr.FromInt(web.Listener.Addr().(*net.TCPAddr).Port), Path: "/redirect", Scheme: v1.URISchemeHTTP,
	}})
	d.apply(d.pod("web", c))
	d.untilApplied("web")
	e := d.untilEvent("web", 2, "ProbeWarning", `Liveness probe warning: Probe terminated redirects, Response body: <a href="http://0.0.0.0/">Found</a>.`)
	if e.Type != v1.EventTypeWarning || e.InvolvedObject.FieldPath != "spec.containers{main}" {
		t.Errorf("event ProbeWarning: got %+v, want a warning about the container main", e)
	}
}

// TestReadiness_ProbeKinds checks for each kind of probe that the pod becomes ready, then not
// ready with a reason, and then ready again, without a restart.
func TestReadiness_ProbeKinds(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	ill := func(yes bool) func() {
		return func() {
			d.touch("www")
			if yes {
				os.Remove(filepath.Join(d.traceDir(), "www"))
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
		if _, err := os.Stat(filepath.Join(d.traceDir(), "www")); err != nil {
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(secure.Close)
	onHost := func(p *v1.Pod) *v1.Pod { p.Spec.HostNetwork = true; return p }
	db := "db"
	httpd := withReadiness(shell("main", "trap 'exit 0' TERM; httpd -f -p 8080 -h /trace & wait"),
		probeEverySecond(v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/www", Port: intstr.FromString("web")}}))
	httpd.Ports = []v1.ContainerPort{{Name: "web", ContainerPort: 8080}}
	for _, c := range []struct {
		pod            *v1.Pod
		better, worsen func()
		why            string
	}{
		{d.pod("exec", withReadiness(shell("main", serve("exec")), probeEverySecond(execHandler("cat /trace/www")))), ill(false), ill(true), "exit 1: cat: "},
		{d.pod("http", httpd), ill(false), ill(true), "HTTP probe failed with statuscode: 404"},
		{onHost(d.pod("grpc", withReadiness(shell("main", serve("grpc")), probeEverySecond(v1.ProbeHandler{GRPC: &v1.GRPCAction{
			Port: int32(listener.Addr().(*net.TCPAddr).Port), Service: &db,
		}})))), set(service.HealthCheckResponse_SERVING), set(service.HealthCheckResponse_NOT_SERVING), `service unhealthy (responded with "NOT_SERVING")`},
		{onHost(d.pod("https", withReadiness(shell("main", serve("https")), probeEverySecond(v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{
			Scheme: v1.URISchemeHTTPS, Host: "127.0.0.1", Port: intstr.FromInt32(int32(secure.Listener.Addr().(*net.TCPAddr).Port)),
		}})))), ill(false), ill(true), "HTTP probe failed with statuscode: 404"},
		{d.pod("tcp", withReadiness(shell("main", "trap 'exit 0' TERM; while :; do [ -e /trace/www ] && timeout 2 nc -l -p 8080; sleep 0.1; done"),
			probeEverySecond(v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(8080)}}))), ill(false), ill(true), "connection refused"},
	} {
		name := c.pod.Name
		c.worsen()
		d.apply(c.pod)
		d.untilPod("runs and is not ready", name, hasReadiness(false))
		was := d.container(name, "main")
		c.better()
		d.untilPod("is ready", name, hasReadiness(true))
		c.worsen()
		p := d.untilPod("is not ready any more", name, hasReadiness(false))
		if why := p.Decisions[0].Why; !strings.Contains(why, "readiness probe failed: ") || !strings.Contains(why, c.why) || !p.Decisions[0].NeedsUser {
			t.Errorf("reason why pod %s is not ready: got %q, want \"readiness probe failed: \" and %q in it", name, why, c.why)
		}
		// The test polls, because the probe of pod tcp may succeed once more: its container listens for
		// up to two seconds after the file www was removed.
		d.eventually("podd why shows the failed probe", func() error {
			if out, _ := d.verb("why", name); !strings.Contains(out, "readiness probe failed: ") {
				return fmt.Errorf("podd why %s: got\n%s, want %q in it", name, out, "readiness probe failed: ")
			}
			return nil
		})
		c.better()
		d.untilPod("is ready again", name, hasReadiness(true))
		if now := d.container(name, "main"); now != was {
			t.Errorf("container of pod %s: got %+v, want %+v", name, now, was)
		}
		d.remove(name)
		d.untilGone(name)
	}
}

// TestReadiness_WhileTerminating checks that readiness probes continue while a pod is
// terminating, even after its manifest was removed.
func TestReadiness_WhileTerminating(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	drains := "trap 'touch /draining; until [ -e /trace/go ]; do sleep 0.1; done; exit 0' TERM; " + note("main runs") + "while :; do sleep 3600 & wait; done"
	p := d.pod("web", withReadiness(shell("main", drains), probeEverySecond(execHandler("test ! -e /draining"))))
	p.Spec.TerminationGracePeriodSeconds = new(int64(600))
	d.apply(p)
	d.untilApplied("web")
	d.untilNoted("main runs") // now SIGTERM does not end the container
	was := d.container("web", "main")
	d.remove("web")
	d.untilPod("is not ready any more", "web", func(p *server.PodView) error {
		if p.Pod.DeletionTimestamp == nil {
			return fmt.Errorf("got no deletion timestamp, want one")
		}
		return hasReadiness(false)(p)
	})
	if out, _ := d.verb("ps"); !strings.Contains(out, "0/1") || !strings.Contains(out, "Terminating") {
		t.Errorf("podd ps: got\n%s; want output with %q and with %q", out, "0/1", "Terminating")
	}
	if !alive(was.PID) {
		t.Errorf("process of the terminating container: got process %d exited, want it running until the file go exists", was.PID)
	}
	d.touch("go")
	d.untilGone("web")
}

// TestLivenessRestarts checks that a container whose liveness probe fails is stopped with the
// probe's grace period and restarted, and that the other containers keep running.
func TestLivenessRestarts(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	proxy := d.throughProxy()
	d.start()
	c := shell("main", "if [ -e /trace/again ]; then "+serve("second")+"; fi; touch /trace/again; "+ignoreTerm("first"))
	c.LivenessProbe = probeEverySecond(execHandler("test ! -e /trace/ill || { rm /trace/ill; echo 'no disk'; exit 3; }"))
	c.LivenessProbe.TerminationGracePeriodSeconds = new(int64(1))
	p := d.pod("web", c, shell("other", serve("other")))
	p.Spec.TerminationGracePeriodSeconds = new(int64(25))
	d.apply(p)
	d.untilApplied("web")
	other := d.container("web", "other")
	d.untilNote("first runs")
	d.touch("ill")
	d.untilPod("runs again", "web", func(p *server.PodView) error {
		if n := restarts(p, "main"); n != 1 || !p.Ready {
			return fmt.Errorf("got restarts %d, ready %t; want restarts 1, ready true", n, p.Ready)
		}
		return nil
	})
	// The probe's grace period is one second, but podd's minimum is two seconds.
	if graces := proxy.gracePeriods(t); len(graces) == 0 || slices.Max(graces) > 2 {
		t.Errorf("grace periods in the calls of StopContainer: got %v seconds, want at most 2", graces)
	}
	if now := d.container("web", "other"); now != other {
		t.Errorf("container other: got %+v, want %+v", now, other)
	}
	if log, err := os.ReadFile(d.logFile()); err != nil || !strings.Contains(string(log), "liveness probe failed: exit 3: no disk") {
		t.Errorf("podd's log: got error %v or no %q, want this text in it", err, "liveness probe failed: exit 3: no disk")
	}
}

// TestStartupProbe checks that the startup probe of a sidecar delays the liveness probe of the sidecar
// and the start of the next container. A container whose startup probe fails must be restarted.
func TestStartupProbe(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	side := sidecar("side", note("side runs")+"mkdir /trace/first || touch /trace/up; trap 'exit 0' TERM; sleep 3600 & wait")
	side.StartupProbe = probeEverySecond(execHandler("test -e /trace/up"))
	side.StartupProbe.FailureThreshold = 3
	side.LivenessProbe = probeEverySecond(execHandler(note("side is probed") + "true"))
	p := d.pod("web", shell("main", serve("main")))
	p.Spec.InitContainers = []v1.Container{side}
	d.apply(p)
	// The sidecar runs twice, because the startup probe succeeds only in its second attempt.
	d.untilApplied("web")
	d.untilNote("side is probed")
	d.untilNote("main runs")
	if got := d.notes(); got[0] != "side runs" || got[1] != "side runs" || slices.Contains(got[2:], "side runs") {
		t.Errorf("got the notes %q, want \"side runs\" exactly twice, as the first two notes", got)
	}
}

// TestReadiness_KilledDaemon kills and restarts podd. From its start on, podd must report the readiness
// from before the kill, and must not restart any container.
func TestReadiness_KilledDaemon(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	slow := probeEverySecond(execHandler("test -e /trace/up"))
	slow.PeriodSeconds = 60 // so long that no probe runs shortly after the restart, and podd must have stored the readiness
	ready := withReadiness(shell("main", "touch /trace/up; "+serve("ready")), slow)
	ready.StartupProbe, ready.LivenessProbe = probeEverySecond(execHandler("test -e /trace/up")), probeEverySecond(execHandler("true"))
	d.apply(d.pod("ready", ready))
	d.untilApplied("ready")
	never := withReadiness(shell("main", serve("never")), probeEverySecond(execHandler("exit 1")))
	d.apply(d.pod("never", never))
	d.untilPod("runs and is not ready", "never", hasReadiness(false))
	was, wasNever := d.container("ready", "main"), d.container("never", "main")
	for range 2 {
		d.kill()
		d.launch()
		d.eventually("podd responds", func() error { _, err := d.state(); return err })
		d.consistently(4, "podd reports the readiness from before the kill", func(v *server.View) error {
			for name, is := range map[string]bool{"ready": true, "never": false} {
				p := d.find(v, name)
				if p == nil || len(p.Pod.Status.ContainerStatuses) == 0 || p.Pod.Status.ContainerStatuses[0].State.Running == nil {
					continue // podd has not listed the containers yet
				}
				if err := hasReadiness(is)(p); err != nil {
					return fmt.Errorf("pod %s: %w", name, err)
				}
			}
			return nil
		})
	}
	d.untilPod("is ready", "ready", hasReadiness(true))
	if now := d.container("ready", "main"); now != was {
		t.Errorf("container of pod ready: got %+v, want %+v", now, was)
	}
	if now := d.container("never", "main"); now != wasNever {
		t.Errorf("container of pod never: got %+v, want %+v", now, wasNever)
	}
}

// TestRunOnce_WaitsForReadiness checks that podd run --runonce starts other pods only after a pod
// that keeps running is ready.
func TestRunOnce_WaitsForReadiness(t *testing.T) {
	t.Parallel()
	d := newRunner(t)
	d.runPods(
		d.jobPod("db", always, withReadiness(shell("pg", "sleep 2; "+note("db is up")+"touch /trace/up; trap 'exit 0' TERM; sleep 3600 & wait"), probeEverySecond(execHandler("test -e /trace/up")))),
		d.jobPod("test", never, shell("c", note("test runs"))),
	).wantExit(0)
	d.untilNoted("db is up", "test runs")
}
