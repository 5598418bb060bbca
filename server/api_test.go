package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server/events"
)

func TestAPI(t *testing.T) {
	tests := []struct {
		name, method, target, body string
		status                     int
		want                       string
	}{
		{"version", "GET", "/v1/version", "", 200, `{"version":"v0.1.0","node":"n1","runtime":"containerd 2.4.2"}`},
		{"restart", "POST", "/v1/restart", `{"namespace":"default","pod":"web-n1","container":"app"}`, 200, `{"namespace":"default","pod":"web-n1","container":"app"}`},
		{"restart of nothing", "POST", "/v1/restart", `{"namespace":"default","pod":"absent-n1"}`, 404, `{"error":"no pod default/absent-n1"}`},
		{"restart of a path", "POST", "/v1/restart", `{"namespace":"../x","pod":"web"}`, 400, `is not a valid namespace name`},
		{"restart of an invalid container", "POST", "/v1/restart", `{"namespace":"default","pod":"web","container":"a/b"}`, 400, `is not a valid container name`},
		{"restart without JSON", "POST", "/v1/restart", `web`, 400, `reading the restart request`},
		{"restart with a large body", "POST", "/v1/restart", strings.Repeat(" ", maxCommandBytes+1) + "{}", 413, `the request body has more than 65536 bytes`},
		{"wrong method", "GET", "/v1/restart", "", 405, "Method Not Allowed"},
		{"unknown", "GET", "/v2/state", "", 404, "404 page not found"},
		{"invalid watch", "GET", "/v1/state?watch=maybe", "", 400, `{"error":"parameter watch: \"maybe\" is not true or false"}`},
		{"invalid revision", "GET", "/v1/state?watch=1&revision=-1", "", 400, `{"error":"parameter revision: \"-1\" is not a number"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newFakeDaemon("web-n1")
			w := httptest.NewRecorder()
			m.handler().ServeHTTP(w, httptest.NewRequest(tt.method, tt.target, strings.NewReader(tt.body)))
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
				t.Errorf("got %d %s, want %d %s", w.Code, w.Body, tt.status, tt.want)
			}
		})
	}
}

func TestAPI_State(t *testing.T) {
	m := newFakeDaemon("db-n1", "web-n1")
	url := start(t, m)
	var got View
	decode(t, get(t, url+"/v1/state").Body, &got)
	if diff := cmp.Diff(m.View(), &got); diff != "" {
		t.Errorf("/v1/state (-want +got):\n%s", diff)
	}

	watch := json.NewDecoder(get(t, url+"/v1/state?watch=1").Body)
	var first, second Change
	if err := watch.Decode(&first); err != nil || !first.IsComplete || len(first.Pods) != 2 {
		t.Fatalf("first line: got %+v and error %v, want a complete View with 2 pods", first, err)
	}
	m.Publish(&View{Revision: 8, Pods: m.View().Pods[:1]})
	if err := watch.Decode(&second); err != nil || second.IsComplete || !cmp.Equal(second.Removed, keys("web-n1")) {
		t.Fatalf("second line: got %+v and error %v, want a change that removes web-n1", second, err)
	}
}

// TestAPI_Events checks that a client can list all events, list those after a revision, and follow
// the log of events.
func TestAPI_Events(t *testing.T) {
	m := newFakeDaemon()
	url := start(t, m)
	add := func(reason string) {
		m.events.Add(events.Occurrence{Type: "Normal", Reason: reason, Time: time.Unix(1, 0)})
	}
	add("Starting")
	add("NodeReady")
	for query, want := range map[string]int{"": 2, "?revision=1": 1, "?revision=2": 0} {
		var got v1.EventList
		decode(t, get(t, url+"/v1/events"+query).Body, &got)
		if len(got.Items) != want || got.Items == nil || got.ResourceVersion != "2" || got.Kind != "EventList" {
			t.Errorf("%s: got %+v, want an EventList at revision 2 with %d events", query, got, want)
		}
	}
	watch := json.NewDecoder(get(t, url+"/v1/events?watch=1&revision=1").Body)
	for i, want := range []string{"NodeReady x1", "Starting x2", "NodeReady x2"} {
		if i > 0 {
			reason, _, _ := strings.Cut(want, " ")
			add(reason)
		}
		var e v1.Event
		if err := watch.Decode(&e); err != nil || fmt.Sprintf("%s x%d", e.Reason, e.Count) != want {
			t.Errorf("next event of the watch: got %+v, error %v; want %s", e, err, want)
		}
	}
	for _, query := range []string{"?watch=so", "?revision=x", "?watch=1&revision=-2"} {
		if w := sendTo(m.handler(), "GET", "/v1/events"+query, "podd"); w.Code != 400 {
			t.Errorf("%s: got %d, want 400", query, w.Code)
		}
	}
}

func TestLogRequest(t *testing.T) {
	m := newFakeDaemon()
	var got LogRequest
	m.log = func(_ context.Context, req LogRequest, w io.Writer) error { got = req; return nil }
	const names = "/v1/logs?namespace=default&pod=web-n1&container=app"
	pod := types.NamespacedName{Namespace: "default", Name: "web-n1"}
	for target, want := range map[string]LogRequest{
		names: {Pod: pod, Container: "app", Tail: -1},
		names + "&previous=true&follow=1&timestamps=true&tail=0&limit=9&since=2026-03-01T14:02:11.5Z&stream=stderr": {
			Pod: pod, Container: "app", Previous: true, Follow: true, Timestamps: true, Limit: 9, Stream: Stderr,
			Since: time.Date(2026, 3, 1, 14, 2, 11, 5e8, time.UTC),
		},
	} {
		w := sendTo(m.handler(), "GET", target, "podd")
		if diff := cmp.Diff(want, got); diff != "" || w.Code != 200 {
			t.Errorf("%s: status %d (-want +got):\n%s", target, w.Code, diff)
		}
	}
	for query, want := range map[string]string{
		"?namespace=default&pod=web-n1":                "parameter container is missing",
		"?namespace=default&pod=../web&container=app":  "is not a valid pod name",
		"?namespace=&pod=web&container=app":            "is not a valid namespace name",
		"?namespace=a&pod=web&container=app&tail=x":    `parameter tail: \"x\" is not a number`,
		"?namespace=a&pod=web&container=app&since=5m":  `parameter since: \"5m\" is not a time`,
		"?namespace=a&pod=web&container=app&follow=so": `parameter follow: \"so\" is not true or false`,
		"?namespace=a&pod=web&container=app&stream=in": `parameter stream: \"in\" is not stdout or stderr`,
	} {
		if w := sendTo(m.handler(), "GET", "/v1/logs"+query, "podd"); w.Code != 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: got %d %s, want 400 %s", query, w.Code, w.Body, want)
		}
	}
}

// TestServeLogs_Errors checks that the response is an error if reading fails before the first byte,
// and that the error is in the trailer if reading fails later.
func TestServeLogs_Errors(t *testing.T) {
	m := newFakeDaemon()
	url := start(t, m)
	for _, tt := range []struct {
		name    string
		text    string
		err     error
		status  int
		body    string
		trailer string
	}{
		{"fine", "one\ntwo\n", nil, 200, "one\ntwo\n", ""},
		{"nothing", "", nil, 200, "", ""},
		{"missing", "", NewNotFoundError("app has not started"), 404, `{"error":"app has not started"}`, ""},
		{"wrapped", "", fmt.Errorf("reading the log: %w", NewNotFoundError("gone")), 404, `{"error":"reading the log: gone"}`, ""},
		{"reason", "", &Error{Status: 400, Message: "none yet", Reason: ReasonNoLog}, 400, `{"error":"none yet","reason":"NoLog"}`, ""},
		{"broken", "", errors.New("reading x: input/output error"), 500, `{"error":"reading x: input/output error"}`, ""},
		{"breaks", "one\n", errors.New("reading x: input/\noutput error"), 200, "one\n", "reading x: input/ output error"},
	} {
		for _, follow := range []string{"0", "1"} {
			t.Run(tt.name+" follow="+follow, func(t *testing.T) {
				m.log = func(_ context.Context, _ LogRequest, w io.Writer) error {
					io.WriteString(w, tt.text)
					return tt.err
				}
				resp := get(t, url+"/v1/logs?namespace=default&pod=web&container=app&follow="+follow)
				body, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				if resp.StatusCode != tt.status || string(body) != tt.body || resp.Trailer.Get(ErrorTrailer) != tt.trailer {
					t.Errorf("got status %d, body %q, error trailer %q; want status %d, body %q, error trailer %q", resp.StatusCode, body, resp.Trailer.Get(ErrorTrailer), tt.status, tt.body, tt.trailer)
				}
			})
		}
	}
}

// TestServeLogs_Follow checks that a line of a followed log is sent without waiting for the next
// one.
func TestServeLogs_Follow(t *testing.T) {
	m := newFakeDaemon()
	url := start(t, m)
	ended := make(chan error, 1)
	m.log = func(ctx context.Context, _ LogRequest, w io.Writer) error {
		io.WriteString(w, "one\n")
		<-ctx.Done() // waits until the client disconnects
		ended <- ctx.Err()
		return ctx.Err()
	}
	resp := get(t, url+"/v1/logs?namespace=default&pod=web&container=app&follow=1")
	line := make([]byte, 4)
	if _, err := io.ReadFull(resp.Body, line); err != nil || string(line) != "one\n" {
		t.Fatalf("got %q and error %v, want the first line", line, err)
	}
	resp.Body.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the LogReader returned error %v, want context.Canceled", err)
	}
}

func TestAPI_Down(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want []StopProgress
	}{
		{"all", nil, []StopProgress{{Remaining: keys("a", "b")}, {Stopped: keys("a"), Remaining: keys("b")}, {Stopped: keys("b"), Done: true}}},
		{"has a problem", nil, []StopProgress{
			{Remaining: keys("a", "b")}, {Remaining: keys("a", "b"), Problems: []StopProblem{{keys("a")[0], "stopping the sandbox failed"}}}, {Stopped: keys("a", "b"), Done: true},
		}},
		{"fails", errors.New("the runtime is unreachable"), []StopProgress{{Remaining: keys("a", "b")}, {Stopped: keys("a"), Remaining: keys("b")}, {Remaining: keys("b"), Error: "the runtime is unreachable"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newFakeDaemon("a", "b")
			url := start(t, m)
			proceed := make(chan struct{})
			m.down = func(context.Context) error { <-proceed; return tt.err }
			lines := json.NewDecoder(post(t, url+"/v1/down").Body)
			var got []StopProgress
			for i := range tt.want {
				var line StopProgress
				if err := lines.Decode(&line); err != nil {
					t.Fatal(err)
				}
				got = append(got, line)
				switch i {
				case 0:
					rejected := &PodView{Pod: m.View().Pods[0].Pod}
					if tt.want[1].Problems != nil {
						failing := *m.View().Pods[0]
						failing.Phase, failing.NeedsUser, failing.Why = "stop", true, "stopping the sandbox failed"
						rejected = &failing
					}
					m.Publish(&View{Revision: 8, Pods: []*PodView{rejected, m.View().Pods[1]}})
				case 1:
					close(proceed)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("/v1/down (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAPI_Shutdown checks that, during a shutdown, a pod that has terminated is reported as stopped
// even if it still exists.
func TestAPI_Shutdown(t *testing.T) {
	m := newFakeDaemon("a", "b")
	url := start(t, m)
	proceed, grace := make(chan struct{}), time.Duration(0)
	m.shutdown = func(_ context.Context, g time.Duration) error { grace = g; <-proceed; return nil }
	lines := json.NewDecoder(post(t, url+"/v1/shutdown?grace=30s").Body)
	for i, want := range []StopProgress{{Remaining: keys("a", "b")}, {Stopped: keys("a"), Remaining: keys("b")}, {Stopped: keys("b"), Done: true}} {
		var line StopProgress
		if err := lines.Decode(&line); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, line); diff != "" {
			t.Errorf("line %d (-want +got):\n%s", i, diff)
		}
		switch i {
		case 0:
			ended := *m.View().Pods[0]
			ended.Phase = "rest"
			m.Publish(&View{Revision: 8, Pods: []*PodView{&ended, m.View().Pods[1]}})
		case 1:
			close(proceed)
		}
	}
	if grace != 30*time.Second {
		t.Errorf("got grace %s, want 30s", grace)
	}
	for _, bad := range []string{"0s", "-1s", "soon"} {
		if resp := post(t, url+"/v1/shutdown?grace="+bad); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("grace %s: got %s, want 400", bad, resp.Status)
		}
	}
	if resp := post(t, url+"/v1/resume"); resp.StatusCode != http.StatusOK {
		t.Errorf("resume: got %s, want 200", resp.Status)
	}
	m.resumed = errors.New("podd is stopping")
	if resp := post(t, url+"/v1/resume"); resp.StatusCode == http.StatusOK {
		t.Errorf("resume that fails: got %s, want an error", resp.Status)
	}
}

// TestAPI_DownClientDisconnects checks that, if the client disconnects, the context of Down is
// canceled.
func TestAPI_DownClientDisconnects(t *testing.T) {
	m := newFakeDaemon("a")
	url := start(t, m)
	ended := make(chan error, 1)
	m.down = func(ctx context.Context) error { <-ctx.Done(); ended <- ctx.Err(); return ctx.Err() }
	resp := post(t, url+"/v1/down")
	resp.Body.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Down returned %v, want context.Canceled", err)
	}
}

// start serves m and returns its URL. The server is closed when the test ends.
func start(t *testing.T, m *fakeDaemon) (url string) {
	t.Helper()
	server := httptest.NewServer(m.handler())
	t.Cleanup(server.Close)
	return server.URL
}

func get(t *testing.T, url string) *http.Response {
	t.Helper()
	resp, err := http.Get(url)
	return mustRespond(t, resp, err)
}

func post(t *testing.T, url string) *http.Response {
	t.Helper()
	resp, err := http.Post(url, "application/json", http.NoBody)
	return mustRespond(t, resp, err)
}

// mustRespond returns resp, which is closed when the test ends. It fails the test if err is
// not nil.
func mustRespond(t *testing.T, resp *http.Response, err error) *http.Response {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func decode(t *testing.T, from io.Reader, to any) {
	t.Helper()
	if err := json.NewDecoder(from).Decode(to); err != nil {
		t.Fatal(err)
	}
}

// TestCredential_FromBrowser checks that a page in a browser gets no credential, whatever its host,
// because credentials are only for programs.
func TestCredential_FromBrowser(t *testing.T) {
	m := newFakeDaemon()
	issued := 0
	a := &API{
		State: m, Command: m, Logs: m, Events: m.events,
		IssueCredential:   func(time.Duration) (Credential, error) { issued++; return Credential{}, nil },
		RevokeCredentials: func() (Revocation, error) { issued++; return Revocation{}, nil },
	}
	for _, c := range []struct {
		name, host string
		header     http.Header
		want       int
	}{
		{"podd kubeconfig", "podd", http.Header{"User-Agent": {"Go-http-client/1.1"}}, 200},
		{"the page's own script", "localhost:8080", http.Header{"Sec-Fetch-Site": {"same-origin"}, "Origin": {"http://localhost:8080"}}, 403},
		{"Origin alone", "localhost:8080", http.Header{"Origin": {"http://localhost:8080"}}, 403},
		{"an empty Origin", "localhost:8080", http.Header{"Origin": {""}}, 403},
		{"a form", "localhost:8080", http.Header{"Sec-Fetch-Mode": {"navigate"}}, 403},
		{"rebinding", "wpad:8080", http.Header{"Origin": {"http://wpad:8080"}}, 403},
		{"an old browser", "wpad:8080", http.Header{"User-Agent": {"Mozilla/5.0 (X11)"}}, 403},
	} {
		for _, method := range []string{"POST", "DELETE"} {
			w, r := httptest.NewRecorder(), httptest.NewRequest(method, "/v1/credential", nil)
			r.Host, r.Header = c.host, c.header
			issued = 0
			if a.Handler().ServeHTTP(w, r); w.Code != c.want || (issued > 0) != (c.want == 200) {
				t.Errorf("%s: %s: got status %d and %d issued credentials, want status %d and a credential only with status 200", c.name, method, w.Code, issued, c.want)
			}
		}
	}
}

// TestCredential_Duration checks that the client chooses the validity of a credential within
// limits.
func TestCredential_Duration(t *testing.T) {
	m := newFakeDaemon()
	var got time.Duration
	a := &API{State: m, Command: m, Logs: m, Events: m.events, IssueCredential: func(life time.Duration) (Credential, error) { got = life; return Credential{}, nil }}
	for query, want := range map[string]time.Duration{
		"": defaultCredentialLife, "?duration=90m": 90 * time.Minute, "?duration=1m": time.Minute, "?duration=8760h": maxCredentialLife,
		"?duration=": 0, "?duration=0": 0, "?duration=59s": 0, "?duration=-1h": 0, "?duration=8760h1s": 0, "?duration=1d": 0, "?duration=99999999h": 0,
	} {
		got = 0
		w := httptest.NewRecorder()
		a.Handler().ServeHTTP(w, httptest.NewRequest("POST", "/v1/credential"+query, nil))
		if got != want || (w.Code == 200) != (want > 0) || want == 0 && w.Code != 400 {
			t.Errorf("%q: got duration %s and response %d %s, want duration %s (status 400 if 0s)", query, got, w.Code, w.Body, want)
		}
	}
}
