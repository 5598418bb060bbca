package main

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
	"podd/server/events"
	"podd/server/kube"
)

// at is the moment the goldens are written at.
var at = time.Date(2026, 3, 1, 14, 2, 23, 0, time.UTC)

func ago(d time.Duration) time.Time         { return at.Add(-d) }
func kubeTime(d time.Duration) *metav1.Time { t := metav1.NewTime(ago(d)); return &t }

// podAt is a pod from a file of /etc/podd/manifests that does nothing yet.
func podAt(file string, line int, name string, containers ...string) *server.PodView {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name + "-n1", CreationTimestamp: *kubeTime(6 * time.Minute)},
		Status:     v1.PodStatus{Phase: v1.PodPending, StartTime: kubeTime(6 * time.Minute)},
	}
	for _, c := range containers {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: c, Image: "img"})
	}
	return &server.PodView{Pod: p, Path: "/etc/podd/manifests/" + file, Line: line, Current: true, Exists: true, Phase: "prepare", Rule: "no sandbox"}
}

// up makes p run.
func up(p *server.PodView) *server.PodView {
	p.Pod.Status.Phase, p.Pod.Status.PodIP = v1.PodRunning, "10.88.0.3"
	p.Pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
	p.Ready, p.Phase, p.Rule = true, "run", "run"
	p.Pod.Status.ContainerStatuses, p.Steps = nil, nil
	for _, c := range p.Pod.Spec.Containers {
		p.Pod.Status.ContainerStatuses = append(p.Pod.Status.ContainerStatuses, v1.ContainerStatus{
			Name: c.Name, Ready: true, ContainerID: "containerd://" + c.Name + "1",
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: *kubeTime(31 * time.Second)}},
		})
		p.Steps = append(p.Steps, server.StepView{Container: c.Name, Rule: "running -> leave"})
	}
	return p
}

// crashed makes the first container of p wait after its fourth crash.
func crashed(p *server.PodView) *server.PodView {
	p.Ready = false
	p.Pod.Status.Phase = v1.PodRunning
	p.Pod.Status.Conditions = nil
	name := p.Pod.Spec.Containers[0].Name
	exit := &v1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", FinishedAt: *kubeTime(12 * time.Second)}
	p.Pod.Status.ContainerStatuses = []v1.ContainerStatus{{
		Name: name, RestartCount: 3, ContainerID: "containerd://" + name + "4",
		State:                v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: v1.ContainerState{Terminated: exit},
	}}
	p.Phase, p.Rule = "run", "run"
	p.Steps = []server.StepView{{
		Container: name, Rule: "crashed -> back off", Reason: "CrashLoopBackOff", Problem: true, Crashes: 4,
		Why: "back-off 40s restarting failed container=" + name, Until: at.Add(28 * time.Second),
	}}
	p.Wake = at.Add(28 * time.Second)
	p.Last = []server.ExitView{{Container: name, ExitCode: 1, Reason: "Error", Started: ago(12800 * time.Millisecond), Finished: ago(12 * time.Second)}}
	return p
}

// viewOf has pods in order, at a fixed revision.
func viewOf(pods ...*server.PodView) *server.View {
	slices.SortFunc(pods, func(a, b *server.PodView) int {
		return cmp.Or(cmp.Compare(a.Pod.Namespace, b.Pod.Namespace), cmp.Compare(a.Pod.Name, b.Pod.Name))
	})
	return &server.View{
		Revision: 100, Node: "n1", Version: "v0.1.0", Runtime: "containerd 2.4.2",
		Sources: []string{"/etc/podd/manifests"}, Pods: pods, Problems: []server.ProblemView{},
	}
}

// fakePodd serves a View on a real socket; what is asked of it is up to the
// test. All but Latest must be set before the first request.
type fakePodd struct {
	*server.Latest
	dir     string
	mu      sync.Mutex // guards asked
	asked   []string
	logs    func(ctx context.Context, r server.LogRequest, w io.Writer) error
	restart func(key types.NamespacedName, container string) error
	down    func(ctx context.Context) error
	debug   http.HandlerFunc // takes ephemeral containers; nil: nobody does
	usage   func(ctx context.Context) (*server.Usage, error)
}

func (f *fakePodd) note(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, what)
}

func (f *fakePodd) Restart(_ context.Context, key types.NamespacedName, container string) error {
	f.note("restart " + key.String() + " " + container)
	return f.restart(key, container)
}

func (f *fakePodd) Down(ctx context.Context) error { return f.down(ctx) }

func (f *fakePodd) Shutdown(ctx context.Context, grace time.Duration) error {
	f.note("shutdown " + grace.String())
	return f.down(ctx)
}

func (f *fakePodd) Resume(context.Context) error { f.note("resume"); return nil }

// Usage is nothing at all unless the test says what.
func (f *fakePodd) Usage(ctx context.Context) (*server.Usage, error) {
	if f.usage == nil {
		return &server.Usage{At: at}, nil
	}
	return f.usage(ctx)
}

func (f *fakePodd) Logs(ctx context.Context, r server.LogRequest, w io.Writer) error {
	return f.logs(ctx, r, w)
}

// serve runs it until the test ends, in a run directory of its own.
func serve(t *testing.T, v *server.View) *fakePodd {
	t.Helper()
	f := &fakePodd{Latest: server.NewLatest(v), dir: shortDir(t)}
	f.logs = func(context.Context, server.LogRequest, io.Writer) error {
		return server.NotFound("nothing was logged")
	}
	f.serve(t)
	return f
}

// serve returns a function that ends it; it may be called twice.
func (f *fakePodd) serve(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ln, err := server.ListenSocket(ctx, f.dir)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	api := &server.API{State: f, Command: f, Logs: f, Events: events.New(events.Options{Node: "n1"})}
	mux := http.NewServeMux()
	mux.Handle("/v1/", api.Handler())
	mux.Handle("/", (&kube.API{State: f, Logs: f, Usage: f, Debugging: true, Now: func() time.Time { return at }}).Handler())
	if f.debug != nil {
		mux.HandleFunc("PATCH /api/v1/namespaces/{namespace}/pods/{pod}/ephemeralcontainers", func(w http.ResponseWriter, r *http.Request) { f.debug(w, r) })
	}
	done := make(chan error, 1)
	go func() { done <- (&server.Server{Handler: mux, Streams: true}).Serve(ctx, ln) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serving the socket: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// shortDir is a temporary directory whose name fits into a socket's.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "podd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// said is what a verb did.
type said struct {
	Out, Err string
	Code     int
}

// podd runs a verb against f.
func (f *fakePodd) podd(t *testing.T, words ...string) said {
	t.Helper()
	return poddVerb(t.Context(), append([]string{words[0], "--run-dir", f.dir}, words[1:]...)...)
}

func poddVerb(ctx context.Context, words ...string) said {
	var out, talk bytes.Buffer
	s := Streams{In: strings.NewReader(""), Out: &out, Err: &talk}
	code := report(execute(ctx, append([]string{"podd"}, words...), s), s)
	return said{out.String(), talk.String(), code}
}

// golden compares with testdata/verbs of the repository; -update rewrites.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("../../testdata/verbs", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
