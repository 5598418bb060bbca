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

// happened is one event, as an EventLog.
type happened struct{}

func (happened) Events(after uint64) ([]*v1.Event, uint64) {
	return []*v1.Event{{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: "db-n1.1"},
		InvolvedObject: v1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "db-n1"},
		Type:           "Warning", Reason: "BackOff", Message: "again", Count: 9,
	}}, after + 1
}

func (happened) Changed(uint64) <-chan struct{} { return nil }

// meter measures nothing.
type meter struct{ server.Meter }

func (meter) Usage(context.Context) (*server.Usage, error) { return &server.Usage{}, nil }

func words(p *v1.Pod, _ time.Time) (ready, status, restarts string) {
	return "0/1", string(p.Status.Phase), "4 (12s ago)"
}

// crashed has something to say that only those who may read logs are told.
func crashed() *server.PodView {
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
		Path: "/etc/podd/db.yaml", Line: 3, Current: true,
		Why:   `crashed 4 times: "the password is hunter2"`,
		Steps: []server.StepView{{Container: "pg", Problem: true}},
	}
}

func serve(t *testing.T, p *Page) *httptest.Server {
	t.Helper()
	p.State = server.NewLatest(&server.View{Revision: 7, Node: "n1", Version: "v1", Pods: []*server.PodView{crashed()}})
	p.Words = words
	s := httptest.NewServer(p.Handler())
	t.Cleanup(s.Close)
	return s
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	line, err := bufio.NewReader(answer.Body).ReadString('\n')
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return answer, line
}

func TestState(t *testing.T) {
	pod := Pod{
		Namespace: "default", Name: "db-n1", Tone: "bad", Status: "Running", ContainersReady: "0/1", Restarts: "4",
		Began: time.Unix(1000, 0), IP: "10.0.0.2", Path: "/etc/podd/db.yaml", Line: 3,
		Containers: []Container{
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
		{"for whom may read logs", &Page{Logs: log("a line\n")}, crashed().Why},
		{"for anyone", &Page{}, ""},
	} {
		_, line := get(t, serve(t, tt.page).URL+"/page/state")
		var got Change
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(tt.name, err, line)
		}
		want := Change{Revision: 7, Node: "n1", Version: "v1", Logs: tt.page.Logs != nil, Whole: true, Pods: []Pod{pod}}
		want.Pods[0].Why = tt.why
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tt.name, diff)
		}
		if tt.why == "" && strings.Contains(line, "hunter2") {
			t.Errorf("%s: the state has what the container said: %s", tt.name, line)
		}
	}
}

// TestEnding: who looks at the page sees that nothing is started any more.
func TestEnding(t *testing.T) {
	for want, v := range map[string]server.View{"": {}, "machine": {ShuttingDown: true, Down: true}, "pods": {Down: true}} {
		if got := (&Page{}).change(&server.Change{View: v}).Ending; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestRoutes(t *testing.T) {
	whole := serve(t, &Page{Logs: log("a line\n"), Events: happened{}, Meter: meter{}}).URL
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
		answer, line := get(t, tt.url)
		if answer.StatusCode != tt.status || !strings.HasPrefix(line, tt.text) {
			t.Errorf("%s: %d %q, want %d %q", tt.url, answer.StatusCode, line, tt.status, tt.text)
		}
		if answer.Header.Get("Content-Security-Policy") == "" && answer.StatusCode == 200 {
			t.Errorf("%s: no content security policy", tt.url)
		}
	}
}

// TestNothingFromElsewhere: nothing of the page is fetched from another place, and
// nothing put into it could.
func TestNothingFromElsewhere(t *testing.T) {
	answer, _ := get(t, serve(t, &Page{}).URL+"/")
	for directive := range strings.SplitSeq(answer.Header.Get("Content-Security-Policy"), ";") {
		for _, source := range strings.Fields(directive)[1:] {
			if source != "'none'" && source != "'self'" && !strings.HasPrefix(source, "'sha256-") {
				t.Errorf("%s", directive)
			}
		}
	}
	if !strings.HasPrefix(answer.Header.Get("Content-Security-Policy"), "default-src 'none';") {
		t.Errorf("the policy is %q", answer.Header.Get("Content-Security-Policy"))
	}
	err := fs.WalkDir(embedded, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := embedded.ReadFile(path)
		for _, far := range regexp.MustCompile(`(https?:)?//[a-z0-9]+\.[^"'\s]*`).FindAllString(string(text), -1) {
			if far != "http://www.w3.org/2000/svg" { // a name, which nobody fetches
				t.Errorf("%s names %s", path, far)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
