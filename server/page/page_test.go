package page

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
)

type log string

func (l log) Logs(_ context.Context, _ server.LogRequest, w io.Writer) error {
	_, err := io.WriteString(w, string(l))
	return err
}

// oneEvent is an EventLog that contains one event.
type oneEvent struct{}

func (oneEvent) Events(after uint64) ([]*v1.Event, uint64) {
	return []*v1.Event{{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: "db-n1.1"},
		InvolvedObject: v1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "db-n1"},
		Type:           "Warning", Reason: "BackOff", Message: "again", Count: 9,
	}}, after + 1
}

func (oneEvent) Changed(uint64) <-chan struct{} { return nil }

// meter is a Meter that returns zero usage.
type meter struct{ server.Meter }

func (meter) Usage(context.Context) (*server.Usage, error) { return &server.Usage{}, nil }

func columns(p *v1.Pod, _ time.Time) (ready, status, restarts string) {
	return "0/1", string(p.Status.Phase), "4 (12s ago)"
}

// crashedPod returns a pod with a status that contains text that only users with access to logs
// may see.
func crashedPod() *server.PodView {
	always := v1.ContainerRestartPolicyAlways
	return &server.PodView{
		Pod: &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db-n1", CreationTimestamp: metav1.Unix(1000, 0)},
			Spec: v1.PodSpec{
				InitContainers: []v1.Container{{Name: "prepare", Image: "busybox"}, {Name: "proxy", Image: "envoy", RestartPolicy: &always}},
				Containers:     []v1.Container{{Name: "pg", Image: "postgres", Env: []v1.EnvVar{{Name: "PASSWORD", Value: "hunter2"}}}},
			},
			Status: v1.PodStatus{
				Phase:                 v1.PodRunning,
				PodIP:                 "10.0.0.2",
				InitContainerStatuses: []v1.ContainerStatus{{Name: "prepare", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: "Completed"}}}},
				ContainerStatuses:     []v1.ContainerStatus{{Name: "pg", RestartCount: 4, State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}},
			},
		},
		Path: "/etc/podd/db.yaml", Line: 3, IsCurrent: true,
		Why:       `crashed 4 times: "the password is hunter2"`,
		Decisions: []server.DecisionView{{Container: "pg", NeedsUser: true}},
	}
}

func serve(t *testing.T, p *Page) *httptest.Server {
	t.Helper()
	p.State = server.NewLatestView(&server.View{Revision: 7, Node: "n1", Version: "v1", Pods: []*server.PodView{crashedPod()}})
	p.PodColumns = columns
	s := httptest.NewServer(p.Handler())
	t.Cleanup(s.Close)
	return s
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return resp, line
}

func TestState(t *testing.T) {
	pod := podRow{
		Namespace: "default", Name: "db-n1", StatusClass: "bad", Status: "Running", ContainersReady: "0/1", Restarts: "4",
		CreatedAt: time.Unix(1000, 0), IP: "10.0.0.2", Path: "/etc/podd/db.yaml", Line: 3,
		Containers: []containerRow{
			{Name: "prepare", Kind: "init", Image: "busybox", State: "Completed"},
			{Name: "proxy", Kind: "sidecar", Image: "envoy", State: "Waiting"},
			{Name: "pg", Image: "postgres", State: "CrashLoopBackOff", Restarts: 4},
		},
	}
	for _, tt := range []struct {
		name string
		page *Page
		why  string
	}{
		{"with logs", &Page{Logs: log("a line\n")}, crashedPod().Why},
		{"without logs", &Page{}, ""},
	} {
		_, line := get(t, serve(t, tt.page).URL+"/page/state")
		var got stateChange
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(tt.name, err, line)
		}
		want := stateChange{Revision: 7, Node: "n1", Version: "v1", ServesLogs: tt.page.Logs != nil, IsComplete: true, Pods: []podRow{pod}}
		want.Pods[0].Why = tt.why
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: state (-want +got):\n%s", tt.name, diff)
		}
		if tt.why == "" && strings.Contains(line, "hunter2") {
			t.Errorf("%s: got the container's output in the state %s, want none", tt.name, line)
		}
	}
}

// TestChange_Shutdown checks that a change for the page contains the reason why podd starts no pods: a
// shutdown of the node or a call of Down.
func TestChange_Shutdown(t *testing.T) {
	for want, v := range map[string]server.View{"": {}, "node": {ShuttingDown: true, IsDown: true}, "pods": {IsDown: true}} {
		if got := (&Page{}).newStateChange(&server.Change{View: v}).Shutdown; got != want {
			t.Errorf("Shutdown: got %q, want %q", got, want)
		}
	}
}

func TestHandler(t *testing.T) {
	whole := serve(t, &Page{Logs: log("a line\n"), Events: oneEvent{}, Meter: meter{}}).URL
	some := serve(t, &Page{}).URL
	for _, tt := range []struct {
		url    string
		status int
		text   string
	}{
		{whole + "/", 200, "<!doctype html>"},
		{whole + "/page/app.js", 200, "// The page"},
		{whole + "/page/style.css", 200, ":root"},
		{whole + "/page/nothing.js", 404, ""},
		{whole + "/page/../state.go", 404, ""},
		{whole + "/page/logs?namespace=default&pod=db-n1&container=pg", 200, "a line"},
		{whole + "/page/logs?namespace=default&pod=../db&container=pg", 400, ""},
		{whole + "/page/usage", 200, `{"at"`},
		{whole + "/page/events?after=3", 200, `{"revision":4,"events":[{"name":"default/db-n1.1","pod":"default/db-n1","type":"Warning","reason":"BackOff","message":"again","count":9,`},
		{whole + "/page/events?after=x", 400, "parameter after"},
		{some + "/page/events", 404, ""},
		{some + "/", 200, "<!doctype html>"},
		{some + "/page/usage", 404, ""},
		{some + "/page/logs?namespace=default&pod=db-n1&container=pg", 404, ""},
	} {
		resp, line := get(t, tt.url)
		if resp.StatusCode != tt.status || !strings.HasPrefix(line, tt.text) {
			t.Errorf("%s: got status %d and text %q, want %d and %q", tt.url, resp.StatusCode, line, tt.status, tt.text)
		}
		if resp.Header.Get("Content-Security-Policy") == "" && resp.StatusCode == 200 {
			t.Errorf("%s: got no Content-Security-Policy", tt.url)
		}
	}
}

// TestPage_ContentSecurityPolicy checks that the policy of the page permits no requests to
// other hosts, neither by the page itself nor by injected content.
func TestPage_ContentSecurityPolicy(t *testing.T) {
	resp, _ := get(t, serve(t, &Page{}).URL+"/")
	for directive := range strings.SplitSeq(resp.Header.Get("Content-Security-Policy"), ";") {
		for _, source := range strings.Fields(directive)[1:] {
			if source != "'none'" && source != "'self'" && !strings.HasPrefix(source, "'sha256-") {
				t.Errorf("Content-Security-Policy permits another host: %s", directive)
			}
		}
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Security-Policy"), "default-src 'none';") {
		t.Errorf("got policy %q, want default-src 'none' first", resp.Header.Get("Content-Security-Policy"))
	}
	err := fs.WalkDir(embeddedFiles, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := embeddedFiles.ReadFile(path)
		for _, url := range regexp.MustCompile(`(https?:)?//[a-z0-9]+\.[^"'\s]*`).FindAllString(string(text), -1) {
			if url != "http://www.w3.org/2000/svg" { // an XML namespace, which no browser fetches
				t.Errorf("%s refers to %s, want no reference to another host", path, url)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
