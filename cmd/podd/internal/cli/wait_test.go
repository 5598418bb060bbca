package cli

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/poddtest"
	"podd/server"
)

// createManifestDir creates a manifest directory with one file. digest is the digest of the file in a
// View.
func createManifestDir(t *testing.T, name, text string) (dir, digest string) {
	t.Helper()
	dir = poddtest.ShortDir(t)
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text)))
}

// TestGoal checks which Views meet the goals of podd wait for a file, and for each of its pods a and b.
func TestGoal(t *testing.T) {
	dir, digest := createManifestDir(t, "two.yaml", "the current content")
	path := filepath.Join(dir, "two.yaml")
	newFileView := func(digest, outdatedReason string, pods ...*server.PodView) *server.View {
		for _, p := range pods {
			p.Path = path
		}
		v := poddtest.NewView(pods...)
		v.Sources = []string{dir}
		v.Files = []server.FileView{{Path: path, Digest: digest, OutdatedReason: outdatedReason}}
		return v
	}
	a, b := func() *server.PodView { return poddtest.SetRunning(poddtest.NewPod("", 1, "a", "app")) }, func() *server.PodView { return poddtest.SetRunning(poddtest.NewPod("", 9, "b", "app")) }
	old := b()
	old.IsCurrent = false
	terminating := b()
	terminating.Pod.DeletionTimestamp = poddtest.MetaTimeBeforeAt(0)
	starting := poddtest.NewPod("", 9, "b", "app")
	views := map[string]*server.View{
		"all current":         newFileView(digest, "", a(), b()),
		"old content":         newFileView("sha256:0", "", a(), b()),
		"one pod old":         newFileView(digest, "", a(), old),
		"one pod starting":    newFileView(digest, "", a(), starting),
		"one pod terminating": newFileView(digest, "", a(), terminating),
		"edit refused":        newFileView("sha256:0", "edit refused", a(), b()),
		"no pods":             newFileView("", "refused"),
		"file not yet read":   {Node: "n1", Sources: []string{dir}},
	}
	for _, c := range []struct {
		word, condition string
		metBy           []string // names of the Views that meet the goal
	}{
		{path, "ready", []string{"all current", "old content", "one pod old", "edit refused"}},
		{path, "condition=Ready", []string{"all current", "old content", "one pod old", "edit refused"}},
		{path, "applied", []string{"all current"}},
		{"b", "ready", []string{"all current", "old content", "one pod old", "edit refused"}},
		{"b", "applied", []string{"all current"}},
		{"default/a-n1", "ready", []string{"all current", "old content", "one pod old", "one pod starting", "one pod terminating", "edit refused"}},
		{"a", "applied", []string{"all current", "one pod old", "one pod starting", "one pod terminating"}},
	} {
		for name, v := range views {
			goals, err := (&WaitCmd{Targets: []string{c.word}, For: c.condition}).goals()
			if err != nil {
				t.Fatal(err)
			}
			met, err := goals[0].isMet(v)
			want := false
			for _, m := range c.metBy {
				want = want || m == name
			}
			if met != want || err != nil {
				t.Errorf("wait --for=%s %s, View %q: got met %v, error %v; want %v and no error", c.condition, c.word, name, met, err, want)
			}
		}
	}
}

// TestGoal_BaseName checks that podd wait finds a manifest by its base name from every working
// directory, as podd why does. A file with this name in the working directory does not replace the
// manifest.
func TestGoal_BaseName(t *testing.T) {
	dir, digest := createManifestDir(t, "web.yaml", "the current content")
	web := poddtest.SetRunning(poddtest.NewPod("", 1, "web", "app"))
	web.Path = filepath.Join(dir, "web.yaml")
	v := poddtest.NewView(web)
	v.Sources = []string{dir}
	v.Files = []server.FileView{{Path: web.Path, Digest: digest}}
	for _, hasOther := range []bool{false, true} {
		workingDir := poddtest.ShortDir(t)
		if hasOther {
			workingDir, _ = createManifestDir(t, "web.yaml", "another content")
		}
		t.Chdir(workingDir)
		for _, condition := range []string{"", "ready", "applied"} {
			goals, err := (&WaitCmd{Targets: []string{"web.yaml"}, For: condition}).goals()
			if err != nil {
				t.Errorf("wait --for=%q web.yaml, other file %t: got error %v, want none", condition, hasOther, err)
				continue
			}
			if met, err := goals[0].isMet(v); !met || err != nil {
				t.Errorf("wait --for=%q web.yaml, other file %t: got met %t, error %v; want true and no error", condition, hasOther, met, err)
			}
		}
	}
	if got, want := podd(t, poddtest.Serve(t, v), "wait", "--timeout=0", "wbe.yaml"), "podd: wbe.yaml does not belong to a source of podd; the sources are "+dir+"\n"; got.Code != 1 || got.Err != want {
		t.Errorf("wait wbe.yaml: got %+v, want exit code 1 and stderr %q", got, want)
	}
}

// TestGoal_URL checks when podd wait treats the pods of a URL as applied. The pods must have the newest
// content that podd has read, and the URL must be reachable. podd wait does not read the URL itself.
func TestGoal_URL(t *testing.T) {
	const url = "https://fleet.example/web.yaml"
	p := poddtest.SetRunning(poddtest.NewPod("", 1, "web", "app"))
	p.Path = url
	v := poddtest.NewView(p)
	v.Files = []server.FileView{{Path: url, Digest: "sha256:1"}}
	g := goal{arg: url, mustBeApplied: true, digests: map[string]string{}}
	if met, err := g.isMet(v); !met || err != nil {
		t.Errorf("current content: got met %v, error %v; want true and no error", met, err)
	}
	v.Files[0].OutdatedReason = "not answering"
	if met, err := g.isMet(v); met || err != nil {
		t.Errorf("unreachable URL: got met %v, error %v; want false and no error", met, err)
	}
}

// TestWait_Refused checks that podd wait ends at once if podd has refused the current content of the
// file. It must continue if podd has only refused an earlier content.
func TestWait_Refused(t *testing.T) {
	dir, digest := createManifestDir(t, "web.yaml", "the current content")
	web := poddtest.SetRunning(poddtest.NewPod("", 1, "web", "app"))
	web.Path = filepath.Join(dir, "web.yaml")
	v := poddtest.NewView(web)
	v.Sources = []string{dir}
	v.Files = []server.FileView{{Path: web.Path, Digest: "sha256:0", OutdatedReason: "edit refused", RefusedDigest: digest}}
	v.Problems = []server.ProblemView{{Severity: server.SeverityError, Path: web.Path, Line: 4, Message: "spec.imagee: unknown field"}}
	f := poddtest.Serve(t, v)
	for _, args := range [][]string{{web.Path}, {"--for=applied", "web"}} {
		got := podd(t, f, append([]string{"wait", "--timeout=0"}, args...)...)
		for _, want := range []string{web.Path + ": edit refused", "web.yaml:4: error: spec.imagee: unknown field", "podd: the current content of " + web.Path + " was refused; correct its errors"} {
			if got.Code != 1 || !strings.Contains(got.Err, want) {
				t.Errorf("wait %q: got exit code %d, stderr\n%s\nwant 1 and stderr with %q", args, got.Code, got.Err, want)
			}
		}
	}
	if got := podd(t, f, "wait", "--timeout=0", "web"); got.Code != 0 {
		t.Errorf("wait web (--for=ready): got %+v, want exit code 0, because the earlier version is ready", got)
	}
	v.Files[0].RefusedDigest = "sha256:1"
	if met, err := (&goal{arg: web.Path, isFile: true, mustBeApplied: true, digests: map[string]string{}}).isMet(v); met || err != nil {
		t.Errorf("earlier content refused: got met %t, error %v; want false and no error", met, err)
	}
}

// TestWait_NoPods checks that podd wait ends at once if podd runs no pod of the file, or if podd does
// not read files with this name. It must continue while podd has not read the file yet.
func TestWait_NoPods(t *testing.T) {
	dir, digest := createManifestDir(t, "config.yaml", "a ConfigMap")
	for _, name := range []string{"notes.txt", ".hidden.yaml", "web.yaml~", "taken.yaml", "unread.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("a ConfigMap"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	web := poddtest.SetRunning(poddtest.NewPod("web.yaml", 1, "web", "app"))
	v := poddtest.NewView(web)
	v.Sources = []string{dir}
	v.Files = []server.FileView{{Path: path("config.yaml"), Digest: digest}, {Path: path("taken.yaml"), Digest: digest}}
	v.Problems = []server.ProblemView{
		{Severity: server.SeverityError, Path: path("taken.yaml"), Line: 1, Message: "pod default/web is already defined", Pod: web.Key()},
		{Severity: server.SeverityWarning, Path: path("notes.txt"), Message: "ignored"},
	}
	f := poddtest.Serve(t, v)
	const suffixes = ".yaml, .yml, .json, .manifest"
	for name, want := range map[string]string{
		"config.yaml":  "podd: " + path("config.yaml") + " contains no pods\n",
		"taken.yaml":   "taken.yaml:1: error: pod default/web is already defined\npodd: podd runs no pod of " + path("taken.yaml") + "; correct the errors of the file\n",
		"notes.txt":    "podd: podd does not read " + path("notes.txt") + ", because its name does not end in " + suffixes + "; rename the file\n",
		".hidden.yaml": "podd: podd does not read " + path(".hidden.yaml") + ", because its name begins with a dot; rename the file\n",
		"web.yaml~":    "podd: podd does not read " + path("web.yaml~") + ", because its name is that of a backup file; rename the file\n",
	} {
		for _, condition := range []string{"--for=applied", "--for=ready"} {
			if got := podd(t, f, "wait", "--timeout=0", condition, path(name)); got.Code != 1 || !strings.HasSuffix(got.Err, want) {
				t.Errorf("wait %s %s: got %+v, want exit code 1 and stderr that ends in %q", condition, name, got, want)
			}
		}
	}
	for name, want := range map[string]string{
		"unread.yaml": "podd has not read " + path("unread.yaml") + " yet\n",
		"gone.yaml":   path("gone.yaml") + " does not exist\n",
	} {
		if got := podd(t, f, "why", path(name)); got.Code != 1 || got.Err != "podd: "+want {
			t.Errorf("why %s: got %+v, want exit code 1 and the error %q", name, got, want)
		}
	}
	if got, want := waitLonger(t, f.Dir, 300*time.Millisecond, path("unread.yaml")), ": podd has not read "+path("unread.yaml")+" yet\n"; !strings.HasSuffix(got.Err, want) {
		t.Errorf("wait for a file that podd has not read: got %+v, want stderr that ends in %q", got, want)
	}
	v.Problems, v.ReadsAnyName = v.Problems[:1], true
	if met, err := (&goal{arg: path("notes.txt"), isFile: true, digests: map[string]string{}}).isMet(v); met || err != nil {
		t.Errorf("notes.txt, if podd reads files with any name: got met %t, error %v; want false and no error", met, err)
	}
}

// TestWait checks podd wait for two pods that become ready one after the other. podd wait must end when
// both pods are ready.
func TestWait(t *testing.T) {
	f := poddtest.Serve(t, poddtest.NewView(poddtest.NewPod("a.yaml", 1, "a", "app")))
	done := make(chan poddtest.Result, 1)
	go func() { done <- poddVerb(t.Context(), "wait", "--run-dir", f.Dir, "--timeout=0", "a", "b") }()
	next := poddtest.NewView(poddtest.SetRunning(poddtest.NewPod("a.yaml", 1, "a", "app")))
	next.Revision++
	f.Publish(next)
	last := poddtest.NewView(poddtest.SetRunning(poddtest.NewPod("a.yaml", 1, "a", "app")), poddtest.SetRunning(poddtest.NewPod("b.yaml", 1, "b", "app")))
	last.Revision += 2
	f.Publish(last)
	got := <-done
	if got.Code != 0 || !strings.HasPrefix(got.Err, "podd: default/a ready after ") || !strings.Contains(got.Err, "\npodd: default/b ready after ") {
		t.Errorf("got %+v, want exit code 0 and a message for each of the two pods", got)
	}
}

// TestWait_PoddStarts checks that podd wait waits for podd to start, and continues after a restart of
// podd.
func TestWait_PoddStarts(t *testing.T) {
	f := &poddtest.Podd{LatestView: server.NewLatestView(poddtest.NewView(poddtest.NewPod("a.yaml", 1, "a", "app"))), Dir: poddtest.ShortDir(t)}
	stderr, done := newSyncWriter(), make(chan int, 1)
	ctx := t.Context()
	go func() {
		s := iostreams.Streams{In: strings.NewReader(""), Out: stderr, Err: stderr}
		done <- executeVerb(ctx, s, "wait", "--run-dir", f.Dir, "--timeout=0", "a")
	}()
	stderr.await(t, "podd is not running (no socket at ")
	stop := f.Start(t)
	stop()
	f.LatestView = server.NewLatestView(poddtest.NewView(poddtest.SetRunning(poddtest.NewPod("a.yaml", 1, "a", "app"))))
	f.Start(t)
	if code := <-done; code != 0 {
		t.Errorf("got exit code %d, want 0; stderr:\n%s", code, stderr.text())
	}
}

// waitLonger runs podd wait with the timeout. On a busy machine, podd wait may not connect before the
// timeout. It then runs again with a longer timeout.
func waitLonger(t *testing.T, runDir string, timeout time.Duration, target string) poddtest.Result {
	t.Helper()
	for {
		got := poddVerb(t.Context(), "wait", "--run-dir", runDir, "--timeout", timeout.String(), target)
		if timeout > time.Minute || !strings.Contains(got.Err, "no response from podd within ") {
			return got
		}
		timeout *= 2
	}
}

// TestWait_Timeout checks the errors of podd wait after its timeout and for files that it cannot wait
// for.
func TestWait_Timeout(t *testing.T) {
	dir, _ := createManifestDir(t, "db.yaml", "new")
	db := poddtest.SetCrashed(poddtest.NewPod("db.yaml", 1, "db", "pg"))
	db.Path = filepath.Join(dir, "db.yaml")
	v := poddtest.NewView(db, poddtest.SetRunning(poddtest.NewPod("a.yaml", 1, "a", "app")))
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
		w := waitState{goals: goals, startTime: time.Now(), client: client.New(f.Dir)}
		if met, err := w.check(v); met || err != nil {
			t.Errorf("targets %q: got met %v, error %v; want false and no error", c.cmd.Targets, met, err)
		}
		var stderr strings.Builder
		text := fmt.Sprint(w.explainUnmet(t.Context(), iostreams.Streams{Err: &stderr}))
		for _, want := range c.want {
			if !strings.Contains(stderr.String()+text, want) {
				t.Errorf("targets %q: got stderr\n%s\nerror %q; want %q in stderr or in the error", c.cmd.Targets, stderr.String(), text, want)
			}
		}
	}
	if got := podd(t, f, "wait", "--timeout=1ns", "db"); got.Code != 1 {
		t.Errorf("wait --timeout=1ns db: got %+v, want exit code 1", got)
	}
	for _, word := range []string{"condition=Ready", "condition=ready"} {
		if got := podd(t, f, "wait", "--timeout=5m", "--for="+word, "pod/a"); got.Code != 0 {
			t.Errorf("--for=%s: got %+v, want exit code 0", word, got)
		}
	}
	if got := podd(t, f, "wait", filepath.Join(dir, "other.yaml")); got.Code != 1 || !strings.HasPrefix(got.Err, "podd: reading the manifest: open ") {
		t.Errorf("missing manifest: got %+v, want exit code 1 and the error of reading it", got)
	}
	outside := filepath.Join(poddtest.ShortDir(t), "outside.yaml")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := podd(t, f, "wait", "--timeout=0", outside), "podd: "+outside+" does not belong to a source of podd; the sources are "+dir+"\n"; got.Code != 1 || got.Err != want {
		t.Errorf("file outside the sources: got %+v, want exit code 1 and stderr %q", got, want)
	}
	if got := waitLonger(t, poddtest.ShortDir(t), 50*time.Millisecond, "a"); got.Code != 1 || !strings.Contains(got.Err, ": podd is not running") {
		t.Errorf("podd not running: got %+v, want exit code 1 and the error that podd is not running", got)
	}
}
