package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"podd/server"
)

// logged serves a log of one line for every container.
func logged(t *testing.T, pods ...*server.PodView) (*fakePodd, func() []server.LogRequest) {
	f := serve(t, viewOf(pods...))
	var mu sync.Mutex
	var asked []server.LogRequest
	f.logs = func(_ context.Context, r server.LogRequest, w io.Writer) error {
		mu.Lock()
		asked = append(asked, r)
		mu.Unlock()
		_, err := fmt.Fprintf(w, "from %s\n", r.Container)
		return err
	}
	return f, func() []server.LogRequest { mu.Lock(); defer mu.Unlock(); return asked }
}

func TestLogsChooseContainers(t *testing.T) {
	web := up(podAt("web.yaml", 1, "web", "app", "sidecar"))
	web.Pod.Spec.InitContainers = []v1.Container{{Name: "setup"}}
	noted := up(podAt("noted.yaml", 1, "noted", "proxy", "app"))
	noted.Pod.Annotations = map[string]string{defaultContainer: "app"}
	gone := podAt("", 0, "gone")
	f, _ := logged(t, web, noted, gone, up(podAt("one.yaml", 1, "one", "app")))
	for _, c := range []struct {
		words []string
		want  said
	}{
		{[]string{"one"}, said{Out: "from app\n"}},
		{[]string{"web"}, said{Out: "from app\n", Err: "podd: container app of app, sidecar; -c NAME or --all-containers for others\n"}},
		{[]string{"noted"}, said{Out: "from app\n", Err: "podd: container app of proxy, app; -c NAME or --all-containers for others\n"}},
		{[]string{"web-n1", "-c", "setup"}, said{Out: "from setup\n"}},
		{[]string{"web", "-c", "sidcar"}, said{Err: "podd: pod default/web-n1 has no container \"sidcar\"; did you mean \"sidecar\"?\n", Code: 1}},
		{[]string{"web", "-c", "x"}, said{Err: "podd: pod default/web-n1 has no container \"x\"; it has setup, app, sidecar\n", Code: 1}},
		{[]string{"web", "--all-containers"}, said{Out: "web/setup | from setup\nweb/app | from app\nweb/sidecar | from sidecar\n"}},
		{[]string{"gone"}, said{Err: "podd: the manifest of default/gone-n1 is gone, so its containers are not known; name one with -c\n", Code: 1}},
		{[]string{"gone", "-c", "app"}, said{Out: "from app\n"}},
		{[]string{"absent"}, said{Err: "podd: no pod \"absent\"; podd ps lists them\n", Code: 1}},
	} {
		if got := f.podd(t, append([]string{"logs"}, c.words...)...); got != c.want {
			t.Errorf("%v:\n got %+v\nwant %+v", c.words, got, c.want)
		}
	}
	got := f.podd(t, "logs", "-f", "web", "--all-containers")
	lines := strings.Split(strings.TrimSpace(got.Out), "\n")
	slices.Sort(lines)
	if strings.Join(lines, " ") != "web/app | from app web/setup | from setup web/sidecar | from sidecar" {
		t.Errorf("followed side by side: %+v", got)
	}
}

func TestLogsPassOnFlags(t *testing.T) {
	f, asked := logged(t, up(podAt("one.yaml", 1, "one", "app")))
	before := time.Now()
	f.podd(t, "logs", "one", "-f", "--previous", "--tail=5", "--since=1h", "--timestamps")
	f.podd(t, "logs", "one")
	got := asked()
	since := got[0].Since
	got[0].Since = time.Time{}
	pod := types.NamespacedName{Namespace: "default", Name: "one-n1"}
	want := []server.LogRequest{
		{Pod: pod, Container: "app", Follow: true, Previous: true, Tail: 5, Timestamps: true},
		{Pod: pod, Container: "app", Tail: -1},
	}
	if !slices.Equal(got, want) {
		t.Errorf("asked for %+v, want %+v", got, want)
	}
	if d := before.Sub(since); d > time.Hour || d < 59*time.Minute {
		t.Errorf("since %s before the verb", d)
	}
}

func TestLogsFail(t *testing.T) {
	f := serve(t, viewOf(up(podAt("one.yaml", 1, "one", "app", "other"))))
	if got, want := f.podd(t, "logs", "one", "-c", "app"), "podd: nothing was logged; podd why one\n"; got.Code != 1 || got.Err != want {
		t.Errorf("%+v, want %s", got, want)
	}
	one := up(podAt("one.yaml", 1, "one", "app", "other"))
	f = serve(t, viewOf(one))
	f.logs = func(_ context.Context, r server.LogRequest, _ io.Writer) error { return noLog(one, r) }
	if got, want := f.podd(t, "logs", "one", "-c", "app", "-p"), "podd: previous terminated container \"app\" in pod \"one-n1\" not found; podd why one\n"; got.Code != 1 || got.Err != want {
		t.Errorf("%+v, want %s", got, want)
	}
	f.logs = func(context.Context, server.LogRequest, io.Writer) error {
		return &server.Error{Status: 400, Message: "parameter tail: \"x\" is not a number"}
	}
	if got, want := f.podd(t, "logs", "one", "-c", "app"), "podd: parameter tail: \"x\" is not a number\n"; got.Code != 1 || got.Err != want {
		t.Errorf("%+v, want %s", got, want)
	}
	f = serve(t, viewOf(up(podAt("one.yaml", 1, "one", "app", "other"))))
	f.logs = func(_ context.Context, r server.LogRequest, w io.Writer) error {
		io.WriteString(w, "begun")
		if r.Container == "other" {
			return nil
		}
		return errors.New("reading the log: input/output error")
	}
	if got := f.podd(t, "logs", "one", "-c", "app"); got != (said{Out: "begun", Err: "podd: reading the log: input/output error\n", Code: 1}) {
		t.Errorf("%+v", got)
	}
	if got := f.podd(t, "logs", "one", "--all-containers"); got != (said{Out: "one/app | begun\none/other | begun\n", Err: "podd: reading the log: input/output error\n", Code: 1}) {
		t.Errorf("%+v", got)
	}
	err := newPeer(f.dir).logs(t.Context(), server.LogRequest{Pod: types.NamespacedName{Namespace: "default", Name: "one-n1"}, Container: "other"}, fullDisk{})
	if err == nil || err.Error() != "writing the log: no space" {
		t.Errorf("to a full disk: %v", err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space") }

// TestPrefixes: however a text is cut into pieces, each of its lines comes out
// whole behind its prefix.
func TestPrefixes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.StringMatching(`[a-z]{0,5}`)).Draw(t, "lines")
		text, want := strings.Join(lines, "\n"), ""
		for i, l := range lines {
			if l != "" || i < len(lines)-1 {
				want += "p | " + l + "\n"
			}
		}
		var out bytes.Buffer
		w := &prefixed{to: &out, mu: &sync.Mutex{}, prefix: "p | "}
		for len(text) > 0 {
			n := rapid.IntRange(1, len(text)).Draw(t, "n")
			if m, err := io.WriteString(w, text[:n]); m != n || err != nil {
				t.Fatalf("wrote %d of %d, %v", m, n, err)
			}
			text = text[n:]
		}
		if err := w.finish(); err != nil || out.String() != want {
			t.Fatalf("%q, %v, want %q", out.String(), err, want)
		}
	})
}

func TestPrefixHoldsLittle(t *testing.T) {
	var out bytes.Buffer
	w := &prefixed{to: &out, mu: &sync.Mutex{}}
	w.Write(make([]byte, maxHeld+1))
	if len(w.held) > 0 || out.Len() != maxHeld+2 {
		t.Errorf("%d bytes held, %d passed on", len(w.held), out.Len())
	}
}
