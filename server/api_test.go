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

func TestAPIAnswers(t *testing.T) {
	tests := []struct {
		name, method, target, body string
		status                     int
		want                       string
	}{
		{"version", "GET", "/v1/version", "", 200, `{"version":"v0.1.0","node":"n1","runtime":"containerd 2.4.2"}`},
		{"restart", "POST", "/v1/restart", `{"namespace":"default","pod":"web-n1","container":"app"}`, 200, `{"namespace":"default","pod":"web-n1","container":"app"}`},
		{"restart of nothing", "POST", "/v1/restart", `{"namespace":"default","pod":"absent-n1"}`, 404, `{"error":"no pod default/absent-n1"}`},
		{"restart of a path", "POST", "/v1/restart", `{"namespace":"../x","pod":"web"}`, 400, `is no name for a namespace`},
		{"restart of an odd container", "POST", "/v1/restart", `{"namespace":"default","pod":"web","container":"a/b"}`, 400, `is no name for a container`},
		{"restart without JSON", "POST", "/v1/restart", `web`, 400, `reading what to restart`},
		{"restart of very much", "POST", "/v1/restart", strings.Repeat(" ", maxCommand+1) + "{}", 413, `the body has more than 65536 bytes`},
		{"wrong method", "GET", "/v1/restart", "", 405, "Method Not Allowed"},
		{"unknown", "GET", "/v2/state", "", 404, "404 page not found"},
		{"odd watch", "GET", "/v1/state?watch=maybe", "", 400, `{"error":"parameter watch: \"maybe\" is not true or false"}`},
		{"odd revision", "GET", "/v1/state?watch=1&revision=-1", "", 400, `{"error":"parameter revision: \"-1\" is not a number"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMachine("web-n1")
			w := httptest.NewRecorder()
			m.handler().ServeHTTP(w, httptest.NewRequest(tt.method, tt.target, strings.NewReader(tt.body)))
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, tt.status, tt.want)
			}
		})
	}
}

func TestAPIState(t *testing.T) {
	m := newMachine("db-n1", "web-n1")
	url := start(t, m)
	var got View
	decode(t, get(t, url+"/v1/state").Body, &got)
	if diff := cmp.Diff(m.View(), &got); diff != "" {
		t.Errorf("/v1/state (-want +got):\n%s", diff)
	}

	watch := json.NewDecoder(get(t, url+"/v1/state?watch=1").Body)
	var first, second Change
	if err := watch.Decode(&first); err != nil || !first.Whole || len(first.Pods) != 2 {
		t.Fatalf("first line: %+v, %v", first, err)
	}
	m.Publish(&View{Revision: 8, Pods: m.View().Pods[:1]})
	if err := watch.Decode(&second); err != nil || second.Whole || !cmp.Equal(second.Gone, keys("web-n1")) {
		t.Fatalf("second line: %+v, %v", second, err)
	}
}

// TestAPIEvents: all that happened, what is newer, and what comes.
func TestAPIEvents(t *testing.T) {
	m := newMachine()
	url := start(t, m)
	tell := func(reason string) { m.events.Add(events.Note{Type: "Normal", Reason: reason, Time: time.Unix(1, 0)}) }
	tell("Starting")
	tell("NodeReady")
	for query, want := range map[string]int{"": 2, "?revision=1": 1, "?revision=2": 0} {
		var got v1.EventList
		decode(t, get(t, url+"/v1/events"+query).Body, &got)
		if len(got.Items) != want || got.Items == nil || got.ResourceVersion != "2" || got.Kind != "EventList" {
			t.Errorf("%s: %+v", query, got)
		}
	}
	watch := json.NewDecoder(get(t, url+"/v1/events?watch=1&revision=1").Body)
	for i, want := range []string{"NodeReady x1", "Starting x2", "NodeReady x2"} {
		if i > 0 {
			reason, _, _ := strings.Cut(want, " ")
			tell(reason)
		}
		var e v1.Event
		if err := watch.Decode(&e); err != nil || fmt.Sprintf("%s x%d", e.Reason, e.Count) != want {
			t.Errorf("%+v %v, want %s", e, err, want)
		}
	}
	for _, query := range []string{"?watch=so", "?revision=x", "?watch=1&revision=-2"} {
		if w := ask(m.handler(), "GET", "/v1/events"+query, "podd"); w.Code != 400 {
			t.Errorf("%s: %d", query, w.Code)
		}
	}
}

func TestLogRequest(t *testing.T) {
	m := newMachine()
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
		w := ask(m.handler(), "GET", target, "podd")
		if diff := cmp.Diff(want, got); diff != "" || w.Code != 200 {
			t.Errorf("%s: %d (-want +got):\n%s", target, w.Code, diff)
		}
	}
	for query, want := range map[string]string{
		"?namespace=default&pod=web-n1":                "parameter container is missing",
		"?namespace=default&pod=../web&container=app":  "is no name for a pod",
		"?namespace=&pod=web&container=app":            "is no name for a namespace",
		"?namespace=a&pod=web&container=app&tail=x":    `parameter tail: \"x\" is not a number`,
		"?namespace=a&pod=web&container=app&since=5m":  `parameter since: \"5m\" is not a time`,
		"?namespace=a&pod=web&container=app&follow=so": `parameter follow: \"so\" is not true or false`,
		"?namespace=a&pod=web&container=app&stream=in": `parameter stream: \"in\" is not stdout or stderr`,
	} {
		if w := ask(m.handler(), "GET", "/v1/logs"+query, "podd"); w.Code != 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want 400 %s", query, w.Code, w.Body, want)
		}
	}
}

// TestLogErrors: before the first byte an error is the answer, later it is in
// the trailer.
func TestLogErrors(t *testing.T) {
	m := newMachine()
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
		{"missing", "", NotFound("app has not started"), 404, `{"error":"app has not started"}`, ""},
		{"wrapped", "", fmt.Errorf("reading the log: %w", NotFound("gone")), 404, `{"error":"reading the log: gone"}`, ""},
		{"reason", "", &Error{Status: 400, Message: "none yet", Reason: NoLog}, 400, `{"error":"none yet","reason":"NoLog"}`, ""},
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
					t.Errorf("%d %q trailer %q, want %d %q trailer %q", resp.StatusCode, body, resp.Trailer.Get(ErrorTrailer), tt.status, tt.body, tt.trailer)
				}
			})
		}
	}
}

// TestFollowSendsAtOnce: a line that was logged is not held back until the
// next one.
func TestFollowSendsAtOnce(t *testing.T) {
	m := newMachine()
	url := start(t, m)
	ended := make(chan error, 1)
	m.log = func(ctx context.Context, _ LogRequest, w io.Writer) error {
		io.WriteString(w, "one\n")
		<-ctx.Done() // the client's leaving ends it
		ended <- ctx.Err()
		return ctx.Err()
	}
	resp := get(t, url+"/v1/logs?namespace=default&pod=web&container=app&follow=1")
	line := make([]byte, 4)
	if _, err := io.ReadFull(resp.Body, line); err != nil || string(line) != "one\n" {
		t.Fatalf("read %q, %v", line, err)
	}
	resp.Body.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the reader ended with %v", err)
	}
}

func TestDown(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want []Down
	}{
		{"all", nil, []Down{{Left: keys("a", "b")}, {Gone: keys("a"), Left: keys("b")}, {Gone: keys("b"), Done: true}}},
		{"fails", errors.New("the runtime is gone"), []Down{{Left: keys("a", "b")}, {Gone: keys("a"), Left: keys("b")}, {Left: keys("b"), Error: "the runtime is gone"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMachine("a", "b")
			url := start(t, m)
			proceed := make(chan struct{})
			m.down = func(context.Context) error { <-proceed; return tt.err }
			lines := json.NewDecoder(post(t, url+"/v1/down").Body)
			var got []Down
			for i := range tt.want {
				var line Down
				if err := lines.Decode(&line); err != nil {
					t.Fatal(err)
				}
				got = append(got, line)
				switch i {
				case 0:
					rejected := &PodView{Pod: m.View().Pods[0].Pod}
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

// TestShutdown: what has come to an end is gone, though its records are kept.
func TestShutdown(t *testing.T) {
	m := newMachine("a", "b")
	url := start(t, m)
	proceed, grace := make(chan struct{}), time.Duration(0)
	m.shutdown = func(_ context.Context, g time.Duration) error { grace = g; <-proceed; return nil }
	lines := json.NewDecoder(post(t, url+"/v1/shutdown?grace=30s").Body)
	for i, want := range []Down{{Left: keys("a", "b")}, {Gone: keys("a"), Left: keys("b")}, {Gone: keys("b"), Done: true}} {
		var line Down
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
		t.Errorf("asked for %s", grace)
	}
	for _, bad := range []string{"0s", "-1s", "soon"} {
		if resp := post(t, url+"/v1/shutdown?grace="+bad); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", bad, resp.Status)
		}
	}
	if resp := post(t, url+"/v1/resume"); resp.StatusCode != http.StatusOK {
		t.Errorf("resume: %s", resp.Status)
	}
	m.resumed = errors.New("podd is stopping")
	if resp := post(t, url+"/v1/resume"); resp.StatusCode == http.StatusOK {
		t.Errorf("resume in vain: %s", resp.Status)
	}
}

// TestDownOutlivesTheClient: when the client leaves, the waiting ends.
func TestDownOutlivesTheClient(t *testing.T) {
	m := newMachine("a")
	url := start(t, m)
	ended := make(chan error, 1)
	m.down = func(ctx context.Context) error { <-ctx.Done(); ended <- ctx.Err(); return ctx.Err() }
	resp := post(t, url+"/v1/down")
	resp.Body.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Down ended with %v", err)
	}
}

// start serves m until what the test opened is closed.
func start(t *testing.T, m *machine) (url string) {
	t.Helper()
	server := httptest.NewServer(m.handler())
	t.Cleanup(server.Close)
	return server.URL
}

func get(t *testing.T, url string) *http.Response {
	t.Helper()
	resp, err := http.Get(url)
	return answered(t, resp, err)
}

func post(t *testing.T, url string) *http.Response {
	t.Helper()
	resp, err := http.Post(url, "application/json", http.NoBody)
	return answered(t, resp, err)
}

func answered(t *testing.T, resp *http.Response, err error) *http.Response {
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
