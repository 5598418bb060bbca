package cli

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podd/cmd/podd/internal/cli/client"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/poddtest"
	"podd/server"
)

// manifestDir creates a source with one file, and returns the digest that podd shows for
// it.
func manifestDir(t *testing.T, name, text string) (dir, digest string) {
	t.Helper()
	dir = poddtest.ShortDir(t)
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text)))
}

// TestGoals checks which Views meet a goal.
func TestGoals(t *testing.T) {
	dir, digest := manifestDir(t, "two.yaml", "the present content")
	path := filepath.Join(dir, "two.yaml")
	view := func(digest, behind string, pods ...*server.PodView) *server.View {
		for _, p := range pods {
			p.Path = path
		}
		v := poddtest.ViewOf(pods...)
		v.Sources = []string{dir}
		v.Files = []server.FileView{{Path: path, Digest: digest, Behind: behind}}
		return v
	}
	a, b := func() *server.PodView { return poddtest.Started(poddtest.PodAt("", 1, "a", "app")) }, func() *server.PodView { return poddtest.Started(poddtest.PodAt("", 9, "b", "app")) }
	old := b()
	old.Current = false
	dying := b()
	dying.Pod.DeletionTimestamp = poddtest.KubeTime(0)
	starting := poddtest.PodAt("", 9, "b", "app")
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
		met             []string // the others are not met
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
			met, err := goals[0].isMet(v)
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

// TestGoal_URL checks that the newest content that podd has read counts, because the
// content of a URL cannot be read again.
func TestGoal_URL(t *testing.T) {
	const url = "https://fleet.example/web.yaml"
	p := poddtest.Started(poddtest.PodAt("", 1, "web", "app"))
	p.Path = url
	v := poddtest.ViewOf(p)
	v.Files = []server.FileView{{Path: url, Digest: "sha256:1"}}
	g := goal{word: url, applied: true, digests: map[string]string{}}
	if met, err := g.isMet(v); !met || err != nil {
		t.Errorf("%v, %v, want true", met, err)
	}
	v.Files[0].Behind = "not answering"
	if met, err := g.isMet(v); met || err != nil {
		t.Errorf("behind: %v, %v, want false", met, err)
	}
}

func TestWait(t *testing.T) {
	f := poddtest.Serve(t, poddtest.ViewOf(poddtest.PodAt("a.yaml", 1, "a", "app")))
	done := make(chan poddtest.Result, 1)
	go func() { done <- poddVerb(t.Context(), "wait", "--run-dir", f.Dir, "--timeout=0", "a", "b") }()
	next := poddtest.ViewOf(poddtest.Started(poddtest.PodAt("a.yaml", 1, "a", "app")))
	next.Revision++
	f.Publish(next)
	last := poddtest.ViewOf(poddtest.Started(poddtest.PodAt("a.yaml", 1, "a", "app")), poddtest.Started(poddtest.PodAt("b.yaml", 1, "b", "app")))
	last.Revision += 2
	f.Publish(last)
	got := <-done
	if got.Code != 0 || !strings.HasPrefix(got.Err, "podd: default/a ready after ") || !strings.Contains(got.Err, "\npodd: default/b ready after ") {
		t.Errorf("%+v", got)
	}
}

// TestWait_PoddStarts checks that podd may start or restart during a wait.
func TestWait_PoddStarts(t *testing.T) {
	f := &poddtest.Podd{Latest: server.NewLatest(poddtest.ViewOf(poddtest.PodAt("a.yaml", 1, "a", "app"))), Dir: poddtest.ShortDir(t)}
	talk, done := newSyncWriter(), make(chan int, 1)
	ctx := t.Context()
	go func() {
		s := iostreams.Streams{In: strings.NewReader(""), Out: talk, Err: talk}
		done <- executeVerb(ctx, s, "wait", "--run-dir", f.Dir, "--timeout=0", "a")
	}()
	talk.await(t, "podd is not running (no socket at ")
	stop := f.Start(t)
	stop()
	f.Latest = server.NewLatest(poddtest.ViewOf(poddtest.Started(poddtest.PodAt("a.yaml", 1, "a", "app"))))
	f.Start(t)
	if code := <-done; code != 0 {
		t.Errorf("code %d: %s", code, talk.text())
	}
}

func TestWait_Timeout(t *testing.T) {
	dir, _ := manifestDir(t, "db.yaml", "new")
	db := poddtest.Crashed(poddtest.PodAt("db.yaml", 1, "db", "pg"))
	db.Path = filepath.Join(dir, "db.yaml")
	v := poddtest.ViewOf(db, poddtest.Started(poddtest.PodAt("a.yaml", 1, "a", "app")))
	v.Sources = []string{dir}
	v.Files = []server.FileView{{Path: db.Path, Digest: "sha256:0"}}
	f := poddtest.Serve(t, v)
	for _, c := range []struct {
		cmd  WaitCmd
		want []string
	}{
		{WaitCmd{Targets: []string{"db"}}, []string{"default/db ", ": container pg crashed 4 times", "\ndefault/db not ready after "}},
		{WaitCmd{Targets: []string{"a", "db"}}, []string{"default/db ", "\ndefault/db not ready after "}},
		{WaitCmd{Targets: []string{db.Path}, For: "applied"}, []string{db.Path + ": version of ", "\n\ndefault/db ", "not applied after "}},
		{WaitCmd{Targets: []string{"dbb"}}, []string{"timed out after ", `: no pod "dbb"; did you mean "db"?`}},
	} {
		goals, err := c.cmd.goals()
		if err != nil {
			t.Fatal(err)
		}
		w := waitState{goals: goals, begin: time.Now(), peer: client.New(f.Dir)}
		if met, err := w.check(v); met || err != nil {
			t.Errorf("%v: met %v, %v", c.cmd.Targets, met, err)
		}
		var talk strings.Builder
		text := fmt.Sprint(w.failure(t.Context(), iostreams.Streams{Err: &talk}))
		for _, want := range c.want {
			if !strings.Contains(talk.String()+text, want) {
				t.Errorf("%v: %s%s\nwant %q", c.cmd.Targets, talk.String(), text, want)
			}
		}
	}
	if got := podd(t, f, "wait", "--timeout=1ns", "db"); got.Code != 1 {
		t.Errorf("%+v", got)
	}
	for _, word := range []string{"condition=Ready", "condition=ready"} {
		if got := podd(t, f, "wait", "--for="+word, "pod/a"); got.Code != 0 {
			t.Errorf("as kubectl has it: %+v", got)
		}
	}
	if got := podd(t, f, "wait", filepath.Join(dir, "other.yaml")); got.Code != 1 || !strings.HasPrefix(got.Err, "podd: reading the manifest: open ") {
		t.Errorf("%+v", got)
	}
	stray := filepath.Join(poddtest.ShortDir(t), "stray.yaml")
	if err := os.WriteFile(stray, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := podd(t, f, "wait", "--timeout=0", stray), "podd: "+stray+" is not in a source of podd; the sources are "+dir+"\n"; got.Code != 1 || got.Err != want {
		t.Errorf("%+v, want %s", got, want)
	}
	if got := poddVerb(context.Background(), "wait", "--timeout=50ms", "--run-dir", poddtest.ShortDir(t), "a"); got.Code != 1 || !strings.Contains(got.Err, ": podd is not running") {
		t.Errorf("without podd: %+v", got)
	}
}
