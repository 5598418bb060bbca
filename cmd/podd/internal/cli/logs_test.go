package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"podd/cmd/podd/internal/poddtest"
	"podd/server"
)

// serveLogs serves a podd with pods. The log of each container has one line. The returned function
// requests returns the requests for logs.
func serveLogs(t *testing.T, pods ...*server.PodView) (f *poddtest.Podd, requests func() []server.LogRequest) {
	f = poddtest.Serve(t, poddtest.NewView(pods...))
	var mu sync.Mutex
	var all []server.LogRequest
	f.OnLogs = func(_ context.Context, r server.LogRequest, w io.Writer) error {
		mu.Lock()
		all = append(all, r)
		mu.Unlock()
		_, err := fmt.Fprintf(w, "from %s\n", r.Container)
		return err
	}
	return f, func() []server.LogRequest { mu.Lock(); defer mu.Unlock(); return all }
}

// TestLogs_ChooseContainer checks which container podd logs chooses without -c, and the errors for
// unknown containers and pods.
func TestLogs_ChooseContainer(t *testing.T) {
	web := poddtest.SetRunning(poddtest.NewPod("web.yaml", 1, "web", "app", "sidecar"))
	web.Pod.Spec.InitContainers = []v1.Container{{Name: "setup"}}
	annotated := poddtest.SetRunning(poddtest.NewPod("annotated.yaml", 1, "annotated", "proxy", "app"))
	annotated.Pod.Annotations = map[string]string{defaultContainerAnnotation: "app"}
	deleted := poddtest.NewPod("", 0, "deleted")
	f, _ := serveLogs(t, web, annotated, deleted, poddtest.SetRunning(poddtest.NewPod("one.yaml", 1, "one", "app")))
	for _, c := range []struct {
		words []string
		want  poddtest.Result
	}{
		{[]string{"one"}, poddtest.Result{Out: "from app\n"}},
		{[]string{"web"}, poddtest.Result{Out: "from app\n", Err: "podd: defaulted container \"app\" out of: app, sidecar; use -c NAME or --all-containers for others\n"}},
		{[]string{"annotated"}, poddtest.Result{Out: "from app\n", Err: "podd: defaulted container \"app\" out of: proxy, app; use -c NAME or --all-containers for others\n"}},
		{[]string{"web-n1", "-c", "setup"}, poddtest.Result{Out: "from setup\n"}},
		{[]string{"web", "-c", "sidcar"}, poddtest.Result{Err: "podd: pod default/web-n1 has no container \"sidcar\"; did you mean \"sidecar\"?\n", Code: 1}},
		{[]string{"web", "-c", "x"}, poddtest.Result{Err: "podd: pod default/web-n1 has no container \"x\"; it has setup, app, sidecar\n", Code: 1}},
		{[]string{"web", "--all-containers"}, poddtest.Result{Out: "web/setup | from setup\nweb/app | from app\nweb/sidecar | from sidecar\n"}},
		{[]string{"deleted"}, poddtest.Result{Err: "podd: the manifest of default/deleted-n1 was deleted, so its containers are unknown; specify a container with -c\n", Code: 1}},
		{[]string{"deleted", "-c", "app"}, poddtest.Result{Out: "from app\n"}},
		{[]string{"absent"}, poddtest.Result{Err: "podd: no pod \"absent\"; \"podd ps\" lists all pods\n", Code: 1}},
	} {
		if got := podd(t, f, append([]string{"logs"}, c.words...)...); got != c.want {
			t.Errorf("podd logs %q:\n got %+v\nwant %+v", c.words, got, c.want)
		}
	}
	got := podd(t, f, "logs", "-f", "web", "--all-containers")
	lines := strings.Split(strings.TrimSpace(got.Out), "\n")
	slices.Sort(lines)
	if strings.Join(lines, " ") != "web/app | from app web/setup | from setup web/sidecar | from sidecar" {
		t.Errorf("-f --all-containers: got %+v, want one prefixed line of each container", got)
	}
}

// TestLogs_Flags checks the requests that podd logs sends for its flags and without flags.
func TestLogs_Flags(t *testing.T) {
	f, requests := serveLogs(t, poddtest.SetRunning(poddtest.NewPod("one.yaml", 1, "one", "app")))
	before := time.Now()
	podd(t, f, "logs", "one", "-f", "--previous", "--tail=5", "--since=1h", "--timestamps")
	after := time.Now()
	podd(t, f, "logs", "one")
	got := requests()
	since := got[0].Since
	got[0].Since = time.Time{}
	pod := types.NamespacedName{Namespace: "default", Name: "one-n1"}
	want := []server.LogRequest{
		{Pod: pod, Container: "app", Follow: true, Previous: true, Tail: 5, Timestamps: true},
		{Pod: pod, Container: "app", Tail: -1},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got requests %+v, want %+v", got, want)
	}
	if since.Before(before.Add(-time.Hour)) || since.After(after.Add(-time.Hour)) {
		t.Errorf("--since=1h: got a request for the log since %s, want since one hour before the call of podd logs, which began at %s and ended at %s", since, before, after)
	}
}

func TestLogs_Errors(t *testing.T) {
	f := poddtest.Serve(t, poddtest.NewView(poddtest.SetRunning(poddtest.NewPod("one.yaml", 1, "one", "app", "other"))))
	if got, want := podd(t, f, "logs", "one", "-c", "app"), "podd: nothing was logged; run \"podd why one\" for the reason\n"; got.Code != 1 || got.Err != want {
		t.Errorf("no log: got %+v, want exit code 1 and stderr %q", got, want)
	}
	f = poddtest.Serve(t, poddtest.NewView(poddtest.SetRunning(poddtest.NewPod("one.yaml", 1, "one", "app", "other"))))
	f.OnLogs = func(context.Context, server.LogRequest, io.Writer) error {
		return &server.Error{Status: http.StatusBadRequest, Message: "previous terminated container \"app\" in pod \"one-n1\" not found", Reason: server.ReasonNoLog}
	}
	if got, want := podd(t, f, "logs", "one", "-c", "app", "-p"), "podd: previous terminated container \"app\" in pod \"one-n1\" not found; run \"podd why one\" for the reason\n"; got.Code != 1 || got.Err != want {
		t.Errorf("no previous log: got %+v, want exit code 1 and stderr %q", got, want)
	}
	f.OnLogs = func(context.Context, server.LogRequest, io.Writer) error {
		return &server.Error{Status: 400, Message: "parameter tail: \"x\" is not a number"}
	}
	if got, want := podd(t, f, "logs", "one", "-c", "app"), "podd: parameter tail: \"x\" is not a number\n"; got.Code != 1 || got.Err != want {
		t.Errorf("invalid request: got %+v, want exit code 1 and stderr %q", got, want)
	}
	f = poddtest.Serve(t, poddtest.NewView(poddtest.SetRunning(poddtest.NewPod("one.yaml", 1, "one", "app", "other"))))
	f.OnLogs = func(_ context.Context, r server.LogRequest, w io.Writer) error {
		io.WriteString(w, "begun")
		if r.Container == "other" {
			return nil
		}
		return errors.New("reading the log: input/output error")
	}
	if got := podd(t, f, "logs", "one", "-c", "app"); got != (poddtest.Result{Out: "begun", Err: "podd: reading the log: input/output error\n", Code: 1}) {
		t.Errorf("failed read: got %+v, want the beginning of the log and the error", got)
	}
	if got := podd(t, f, "logs", "one", "--all-containers"); got != (poddtest.Result{Out: "one/app | begun\none/other | begun\n", Err: "podd: reading the log: input/output error\n", Code: 1}) {
		t.Errorf("failed read of one of two logs: got %+v, want the beginning of both logs and the error", got)
	}
}

// TestPrefixWriter checks that every line gets one prefix, even if the text is written in parts.
func TestPrefixWriter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.StringMatching(`[a-z]{0,5}`)).Draw(t, "lines")
		text, want := strings.Join(lines, "\n"), ""
		for i, l := range lines {
			if l != "" || i < len(lines)-1 {
				want += "p | " + l + "\n"
			}
		}
		var out bytes.Buffer
		w := &prefixWriter{out: &out, mu: &sync.Mutex{}, prefix: "p | "}
		for len(text) > 0 {
			n := rapid.IntRange(1, len(text)).Draw(t, "n")
			if m, err := io.WriteString(w, text[:n]); m != n || err != nil {
				t.Fatalf("write of %d bytes: got count %d, error %v; want count %d, no error", n, m, err, n)
			}
			text = text[n:]
		}
		if err := w.flush(); err != nil || out.String() != want {
			t.Fatalf("got %q, error %v; want %q", out.String(), err, want)
		}
	})
}

// TestPrefixWriter_LongLine checks that a line longer than maxPartialLine is written before it is
// complete, and ended with a newline.
func TestPrefixWriter_LongLine(t *testing.T) {
	var out bytes.Buffer
	w := &prefixWriter{out: &out, mu: &sync.Mutex{}}
	w.Write(make([]byte, maxPartialLine+1))
	if len(w.partialLine) > 0 || out.Len() != maxPartialLine+2 {
		t.Errorf("got %d bytes buffered and %d written, want 0 and %d", len(w.partialLine), out.Len(), maxPartialLine+2)
	}
}
