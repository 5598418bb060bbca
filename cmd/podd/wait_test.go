package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podd/server"
)

// manifestDir makes a source with one file; its digest is returned as podd
// would tell it.
func manifestDir(t *testing.T, name, text string) (dir, digest string) {
	t.Helper()
	dir = shortDir(t)
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text)))
}

// TestGoals: which Views have what is waited for.
func TestGoals(t *testing.T) {
	dir, digest := manifestDir(t, "two.yaml", "the present content")
	path := filepath.Join(dir, "two.yaml")
	view := func(digest, behind string, pods ...*server.PodView) *server.View {
		for _, p := range pods {
			p.Path = path
		}
		v := viewOf(pods...)
		v.Sources = []string{dir}
		v.Files = []server.FileView{{Path: path, Digest: digest, Behind: behind}}
		return v
	}
	a, b := func() *server.PodView { return up(podAt("", 1, "a", "app")) }, func() *server.PodView { return up(podAt("", 9, "b", "app")) }
	old := b()
	old.Current = false
	dying := b()
	dying.Pod.DeletionTimestamp = kubeTime(0)
	starting := podAt("", 9, "b", "app")
	views := map[string]*server.View{
		"all there":         view(digest, "", a(), b()),
		"old content":       view("sha256:0", "", a(), b()),
		"one old":           view(digest, "", a(), old),
		"one starts":        view(digest, "", a(), starting),
		"one ends":          view(digest, "", a(), dying),
		"edit refused":      view("sha256:0", "edit refused", a(), b()),
		"nothing of it":     view("", "refused"),
		"file not yet read": {Node: "n1", Sources: []string{dir}},
	}
	for _, c := range []struct {
		word, condition string
		met             []string // the others are not
	}{
		{path, "ready", []string{"all there", "old content", "one old", "edit refused"}},
		{path, "condition=Ready", []string{"all there", "old content", "one old", "edit refused"}},
		{path, "applied", []string{"all there"}},
		{"b", "ready", []string{"all there", "old content", "one old", "edit refused"}},
		{"b", "applied", []string{"all there"}},
		{"default/a-n1", "ready", []string{"all there", "old content", "one old", "one starts", "one ends", "edit refused"}},
		{"a", "applied", []string{"all there", "one old", "one starts", "one ends"}},
	} {
		for name, v := range views {
			goals, err := (&WaitCmd{Targets: []string{c.word}, For: c.condition}).goals()
			if err != nil {
				t.Fatal(err)
			}
			met, err := goals[0].met(v)
			want := false
			for _, m := range c.met {
				want = want || m == name
			}
			if met != want || err != nil {
				t.Errorf("%s %s in %q: %v, %v, want %v", c.word, c.condition, name, met, err, want)
			}
		}
	}
}

// TestGoalOfURL: what a URL serves cannot be read here; the newest that podd
// took counts.
func TestGoalOfURL(t *testing.T) {
	const url = "https://fleet.example/web.yaml"
	p := up(podAt("", 1, "web", "app"))
	p.Path = url
	v := viewOf(p)
	v.Files = []server.FileView{{Path: url, Digest: "sha256:1"}}
	g := goal{word: url, applied: true, digests: map[string]string{}}
	if met, err := g.met(v); !met || err != nil {
		t.Errorf("%v, %v, want true", met, err)
	}
	v.Files[0].Behind = "not answering"
	if met, err := g.met(v); met || err != nil {
		t.Errorf("behind: %v, %v, want false", met, err)
	}
}

func TestWaitSeesItCome(t *testing.T) {
	f := serve(t, viewOf(podAt("a.yaml", 1, "a", "app")))
	done := make(chan said, 1)
	go func() { done <- poddVerb(t.Context(), "wait", "--run-dir", f.dir, "--timeout=0", "a", "b") }()
	next := viewOf(up(podAt("a.yaml", 1, "a", "app")))
	next.Revision++
	f.Publish(next)
	last := viewOf(up(podAt("a.yaml", 1, "a", "app")), up(podAt("b.yaml", 1, "b", "app")))
	last.Revision += 2
	f.Publish(last)
	got := <-done
	if got.Code != 0 || !strings.HasPrefix(got.Err, "podd: default/a ready after ") || !strings.Contains(got.Err, "\npodd: default/b ready after ") {
		t.Errorf("%+v", got)
	}
}

// TestWaitTellsHowLong: what took a moment did not take "0.0s".
func TestWaitTellsHowLong(t *testing.T) {
	for took, want := range map[time.Duration]string{
		-time.Second: "0s", 30 * time.Millisecond: "30ms", 96 * time.Millisecond: "96ms", 99900 * time.Microsecond: "0.1s",
		100 * time.Millisecond: "0.1s", 1260 * time.Millisecond: "1.3s", 9960 * time.Millisecond: "10s", 31 * time.Second: "31s", 6 * time.Minute: "6m",
	} {
		if got := lasted(took); got != want {
			t.Errorf("%s is said as %s, want %s", took, got, want)
		}
	}
}

// TestWaitForPodd: podd may start, or start again, while it is waited for.
func TestWaitForPodd(t *testing.T) {
	f := &fakePodd{Latest: server.NewLatest(viewOf(podAt("a.yaml", 1, "a", "app"))), dir: shortDir(t)}
	talk, done := newTalk(), make(chan int, 1)
	ctx := t.Context()
	go func() {
		s := Streams{In: strings.NewReader(""), Out: talk, Err: talk}
		done <- report(execute(ctx, []string{"podd", "wait", "--run-dir", f.dir, "--timeout=0", "a"}, s), s)
	}()
	talk.await(t, "podd is not running (no socket at ")
	stop := f.serve(t)
	stop()
	f.Latest = server.NewLatest(viewOf(up(podAt("a.yaml", 1, "a", "app"))))
	f.serve(t)
	if code := <-done; code != 0 {
		t.Errorf("code %d: %s", code, talk.text())
	}
}

func TestWaitInVain(t *testing.T) {
	dir, _ := manifestDir(t, "db.yaml", "new")
	db := crashed(podAt("db.yaml", 1, "db", "pg"))
	db.Path = filepath.Join(dir, "db.yaml")
	v := viewOf(db, up(podAt("a.yaml", 1, "a", "app")))
	v.Sources = []string{dir}
	v.Files = []server.FileView{{Path: db.Path, Digest: "sha256:0"}}
	f := serve(t, v)
	for _, c := range []struct {
		cmd  WaitCmd
		want []string
	}{
		{WaitCmd{Targets: []string{"db"}}, []string{"default/db ", ": container pg crashed 4 times", "\ndefault/db not ready after "}},
		{WaitCmd{Targets: []string{"a", "db"}}, []string{"default/db ", "\ndefault/db not ready after "}},
		{WaitCmd{Targets: []string{db.Path}, For: "applied"}, []string{db.Path + ": wanted", "\n\ndefault/db ", "not applied after "}},
		{WaitCmd{Targets: []string{"dbb"}}, []string{"waited ", `in vain: no pod "dbb"; did you mean "db"?`}},
	} {
		goals, err := c.cmd.goals()
		if err != nil {
			t.Fatal(err)
		}
		w := waiting{goals: goals, begin: time.Now(), peer: newPeer(f.dir)}
		if met, err := w.look(v); met || err != nil {
			t.Errorf("%v: met %v, %v", c.cmd.Targets, met, err)
		}
		var talk strings.Builder
		text := fmt.Sprint(w.failure(t.Context(), Streams{Err: &talk}))
		for _, want := range c.want {
			if !strings.Contains(talk.String()+text, want) {
				t.Errorf("%v: %s%s\nwant %q", c.cmd.Targets, talk.String(), text, want)
			}
		}
	}
	if got := f.podd(t, "wait", "--timeout=1ns", "db"); got.Code != 1 {
		t.Errorf("%+v", got)
	}
	for _, word := range []string{"condition=Ready", "condition=ready"} {
		if got := f.podd(t, "wait", "--for="+word, "pod/a"); got.Code != 0 {
			t.Errorf("as kubectl has it: %+v", got)
		}
	}
	if got := f.podd(t, "wait", filepath.Join(dir, "other.yaml")); got.Code != 1 || !strings.HasPrefix(got.Err, "podd: reading the manifest: open ") {
		t.Errorf("%+v", got)
	}
	stray := filepath.Join(shortDir(t), "stray.yaml")
	if err := os.WriteFile(stray, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := f.podd(t, "wait", "--timeout=0", stray), "podd: podd does not read "+stray+"; it reads "+dir+"\n"; got.Code != 1 || got.Err != want {
		t.Errorf("%+v, want %s", got, want)
	}
	if got := poddVerb(context.Background(), "wait", "--timeout=50ms", "--run-dir", shortDir(t), "a"); got.Code != 1 || !strings.Contains(got.Err, "in vain: podd is not running") {
		t.Errorf("without podd: %+v", got)
	}
}
