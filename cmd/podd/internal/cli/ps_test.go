package cli

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/poddtest"
	"podd/server"
)

// newView returns a View with pods in different states, and with files and problems of all kinds.
func newView() *server.View {
	clock := poddtest.SetRunning(poddtest.NewPod("clock.yaml", 1, "clock", "clock"))
	db := poddtest.SetCrashed(poddtest.NewPod("db.yaml", 3, "db", "pg"))
	job := poddtest.NewPod("job.json", 1, "job", "build", "upload")
	job.Decisions = []server.DecisionView{
		{Container: "build", Rule: "ImageMissing", Reason: "ErrImagePull", NeedsUser: true, Until: poddtest.At.Add(40 * time.Second),
			Why: "pulling registry.example/build:2: 401 from registry.example with no credentials for it in /var/lib/podd/config.json"},
		{Container: "upload", Rule: "NotItsTurn", Reason: "ContainerCreating"},
	}
	job.Pulls = []server.PullView{{Container: "upload", Image: "registry.example/upload:3", Since: poddtest.BeforeAt(12 * time.Second)}}
	gone := poddtest.NewPod("", 0, "gone", "app")
	gone.Path, gone.IsCurrent, gone.Why = "", false, "manifest removed"
	gone.Phase, gone.Rule, gone.PlannedActions = "stop", "Stop", []string{"stop app within 30s (manifest removed)"}
	gone.Pod.DeletionTimestamp = poddtest.MetaTimeBeforeAt(5 * time.Second)
	web := poddtest.SetRunning(poddtest.NewPod("web.yaml", 4, "web", "app", "sidecar"))
	web.Pod.Namespace, web.Path = "prod", "https://fleet.example/web.yaml"
	v := poddtest.NewView(clock, db, job, gone, web)
	v.Files = []server.FileView{
		{Path: "/etc/podd/manifests/clock.yaml", Digest: "sha256:1", ContentTime: poddtest.BeforeAt(73 * time.Second), OutdatedReason: "edit refused", OutdatedSince: poddtest.BeforeAt(time.Second)},
		{Path: "/etc/podd/manifests/db.yaml", Digest: "sha256:2", ContentTime: poddtest.BeforeAt(time.Hour)},
		{Path: "/etc/podd/manifests/new.yaml", OutdatedReason: "refused", OutdatedSince: poddtest.BeforeAt(26 * time.Hour)},
		{Path: "https://fleet.example/web.yaml", Digest: "sha256:3", ContentTime: poddtest.BeforeAt(50 * time.Hour), OutdatedReason: "not answering", OutdatedSince: poddtest.BeforeAt(3 * time.Minute)},
	}
	v.Problems = []server.ProblemView{
		{Path: "/etc/podd/manifests/clock.yaml", Line: 4, Column: 21, Severity: "error", FieldPath: "spec.containers[0].image", Message: "required"},
		{Path: "/etc/podd/manifests/clock.yaml", Line: 4, Column: 31, Severity: "warning", FieldPath: "spec.containers[0].imagee", Message: `unknown field; did you mean "image"?`},
		{Path: "/etc/podd/manifests/db.yaml", Line: 3, Severity: "warning", Pod: server.Key{Namespace: "default", Name: "db-n1"}, Message: "container pg waits: back-off 40s restarting failed container=pg"},
		{Path: "/etc/podd/manifests/new.yaml", Line: 9, Column: 1, Severity: "error", Message: "did not find expected key"},
	}
	return v
}

// runPs returns the output of podd ps for v. If podd ps fails, stdout is the error.
func runPs(v *server.View, output string, s PodSelector) (out, stderr string) {
	l := &viewPrinter{PsCmd: &PsCmd{Output: output, PodSelector: s}, workingDir: "/etc/podd", now: func() time.Time { return poddtest.At }}
	var b, e bytes.Buffer
	if err := l.print(v, iostreams.Streams{Out: &b, Err: &e}); err != nil {
		return err.Error(), ""
	}
	return b.String(), e.String()
}

func TestPs_Goldens(t *testing.T) {
	many := newView()
	for _, p := range many.Pods {
		p.NeedsUser = true
	}
	hostile := poddtest.SetRunning(poddtest.NewPod("web.yaml", 1, "web", "app"))
	hostile.Path = "/etc/podd/manifests/\x1b[31mred\n.yaml"
	down := poddtest.NewView()
	down.IsDown = true
	shuttingDown := poddtest.NewView(poddtest.SetRunning(poddtest.NewPod("web.yaml", 1, "web", "app")))
	shuttingDown.ShuttingDown = true
	starting := poddtest.NewView()
	starting.Starting = true
	for name, c := range map[string]struct {
		view   *server.View
		output string
		PodSelector
	}{
		"ps":            {view: newView()},
		"ps_wide":       {view: newView(), output: "wide"},
		"ps_name":       {view: newView(), output: "name"},
		"ps_namespace":  {view: newView(), PodSelector: PodSelector{Namespace: "prod"}},
		"ps_many":       {view: many},
		"ps_none":       {view: poddtest.NewView()},
		"ps_none_in":    {view: newView(), PodSelector: PodSelector{Namespace: "test"}},
		"ps_down":       {view: down},
		"ps_starting":   {view: starting},
		"ps_shutdown":   {view: shuttingDown},
		"ps_no_sources": {view: &server.View{Node: "n1"}},
		"ps_hostile":    {view: poddtest.NewView(hostile)},
	} {
		out, stderr := runPs(c.view, c.output, c.PodSelector)
		compareGolden(t, name, out+"-- stderr --\n"+stderr)
	}
}

// TestPs_VersionInEffect checks the descriptions of the earlier version of a file, which stays in effect
// after an invalid edit. Its pods may run, wait to start or have ended.
func TestPs_VersionInEffect(t *testing.T) {
	pending := func(name string) *server.PodView { return poddtest.NewPod("a.yaml", 1, name, "app") }
	running := func(name string) *server.PodView { return poddtest.SetRunning(pending(name)) }
	succeeded := pending("job")
	succeeded.Pod.Status.Phase, succeeded.Phase, succeeded.Rule = v1.PodSucceeded, "rest", "Finished"
	for name, c := range map[string]struct {
		pods []*server.PodView
		why  string   // description of the file by podd why
		ps   []string // description of each pod by podd ps
	}{
		"running":             {[]*server.PodView{running("a")}, "runs", []string{"runs"}},
		"never started":       {[]*server.PodView{pending("a")}, "waits to start", []string{"waits to start"}},
		"ended":               {[]*server.PodView{succeeded}, "stays in effect", []string{"stays in effect"}},
		"one of two runs":     {[]*server.PodView{running("a"), pending("b")}, "stays in effect", []string{"runs", "waits to start"}},
		"both wait":           {[]*server.PodView{pending("a"), pending("b")}, "waits to start", []string{"waits to start", "waits to start"}},
		"file without pods":   {nil, "stays in effect", nil},
		"one ended, one runs": {[]*server.PodView{succeeded, running("z")}, "stays in effect", []string{"stays in effect", "runs"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := poddtest.NewView(c.pods...)
			v.Files = []server.FileView{{Path: "/etc/podd/manifests/a.yaml", Digest: "sha256:1", ContentTime: poddtest.BeforeAt(time.Minute), OutdatedReason: "edit refused", OutdatedSince: poddtest.BeforeAt(time.Second)}}
			out, _ := runPs(v, "", PodSelector{})
			got := []string{}
			for _, part := range strings.Split(out, "version of 14:01:23 ")[1:] {
				state, _, _ := strings.Cut(part, ")")
				got = append(got, state)
			}
			if !slices.Equal(got, c.ps) {
				t.Errorf("podd ps: got the descriptions %q, want %q in\n%s", got, c.ps, out)
			}
			headline, _, _ := strings.Cut(whyText(v, subject{path: "/etc/podd/manifests/a.yaml"}), "\n")
			if want := "manifests/a.yaml: edit refused 1s ago; version of 14:01:23 " + c.why; headline != want {
				t.Errorf("podd why a.yaml: got the first line %q, want %q", headline, want)
			}
		})
	}
}

// TestPs_Data checks that -o json and -o yaml print a View with the pods and problems that -n selects,
// and that empty lists are not null.
func TestPs_Data(t *testing.T) {
	for format, unmarshal := range map[string]func([]byte, any) error{
		"json": json.Unmarshal,
		"yaml": func(b []byte, v any) error { return yaml.Unmarshal(b, v) },
	} {
		out, stderr := runPs(newView(), format, PodSelector{Namespace: "default"})
		var v server.View
		if err := unmarshal([]byte(out), &v); err != nil {
			t.Fatalf("%s: decoding the output: %v\n%s", format, err, out)
		}
		if len(v.Pods) != 4 || len(v.Problems) != 4 || v.Pods[0].Pod.Name != "clock-n1" || stderr != "" {
			t.Errorf("%s: got %d pods, %d problems, first pod %s, stderr %q; want 4 pods, 4 problems, first pod clock-n1, no stderr", format, len(v.Pods), len(v.Problems), v.Pods[0].Pod.Name, stderr)
		}
		if out, _ := runPs(&server.View{}, format, PodSelector{}); strings.Contains(out, "null") {
			t.Errorf("%s of an empty View: got null instead of an empty list:\n%s", format, out)
		}
	}
}

// TestPs_Watch checks that podd ps -w prints a pod again if anything except its age has changed. In the
// golden file, a line with # describes the change before the output.
func TestPs_Watch(t *testing.T) {
	now := poddtest.At
	var out, stderr bytes.Buffer
	l := &viewPrinter{PsCmd: &PsCmd{}, workingDir: "/etc/podd", now: func() time.Time { return now }}
	show := func(name string, v *server.View) {
		t.Helper()
		out.WriteString("# " + name + "\n")
		stderr.WriteString("# " + name + "\n")
		if err := l.printChanges(v, iostreams.Streams{Out: &out, Err: &stderr}); err != nil {
			t.Fatal(err)
		}
	}
	show("no pods", poddtest.NewView())
	show("a pod appears", poddtest.NewView(poddtest.NewPod("db.yaml", 1, "db", "pg")))
	now = now.Add(time.Minute)
	show("one minute passes", poddtest.NewView(poddtest.NewPod("db.yaml", 1, "db", "pg")))
	pulls := poddtest.NewPod("db.yaml", 1, "db", "pg")
	pulls.Pulls = []server.PullView{{Container: "pg", Image: "far:1", Since: now}}
	show("its image is pulled", poddtest.NewView(pulls))
	now = now.Add(time.Minute)
	show("the pull takes another minute", poddtest.NewView(pulls))
	v := poddtest.NewView(poddtest.SetCrashed(poddtest.NewPod("db.yaml", 1, "db", "pg")), poddtest.SetRunning(poddtest.NewPod("a-file-with-a-long-name.yaml", 1, "a-pod-with-a-long-name", "app")))
	v.Problems = []server.ProblemView{{Path: "/etc/podd/manifests/db.yaml", Line: 2, Severity: "warning", Message: "unknown field"}}
	show("the pod crashes, and another pod runs", v)
	v.Files = []server.FileView{{Path: "/etc/podd/manifests/db.yaml", OutdatedReason: "edit refused", OutdatedSince: now, ContentTime: poddtest.At}}
	show("an edit is refused", v)
	now = now.Add(time.Minute)
	show("one minute passes", v)
	show("one pod is deleted", poddtest.NewView(poddtest.SetCrashed(poddtest.NewPod("db.yaml", 1, "db", "pg"))))
	compareGolden(t, "ps_watch", out.String()+"-- stderr --\n"+stderr.String())
}

// TestPs_WatchData checks that podd ps -w -o json and -o yaml print a document for each change of a pod
// except its deletion, and that -o name prints each pod once.
func TestPs_WatchData(t *testing.T) {
	for _, format := range []string{"json", "yaml", "name"} {
		var out bytes.Buffer
		l := &viewPrinter{PsCmd: &PsCmd{Output: format}, now: func() time.Time { return poddtest.At }}
		first, second := poddtest.NewView(poddtest.NewPod("db.yaml", 1, "db", "pg")), poddtest.NewView(poddtest.SetRunning(poddtest.NewPod("db.yaml", 1, "db", "pg")))
		for _, v := range []*server.View{first, first, second, poddtest.NewView()} {
			if err := l.printChanges(v, iostreams.Streams{Out: &out, Err: &bytes.Buffer{}}); err != nil {
				t.Fatal(err)
			}
		}
		if format == "name" {
			if want := "default/db\n"; out.String() != want {
				t.Errorf("-o name: got %q, want %q", out.String(), want)
			}
			continue
		}
		endOfDocument := map[string]string{"json": "\n", "yaml": "---\n"}[format]
		if n := strings.Count(out.String(), endOfDocument); n != 2 {
			t.Errorf("-o %s: got %d documents, want 2:\n%s", format, n, out.String())
		}
	}
}

// TestPs_Verb checks the output and usage errors of podd ps with a running podd.
func TestPs_Verb(t *testing.T) {
	v := newView()
	for _, p := range v.Pods {
		p.Pod.CreationTimestamp = metav1.NewTime(time.Now().Add(-10 * 24 * time.Hour)) // the age changes after a day
	}
	f := poddtest.Serve(t, v)
	got := podd(t, f, "ps", "-n", "prod")
	if want := "NAMESPACE  NAME  READY  STATUS   RESTARTS  AGE  FROM\nprod       web   2/2    Running  0         10d  https://fleet.example/web.yaml (not answering"; got.Code != 0 || !strings.HasPrefix(got.Out, want) {
		t.Errorf("-n prod: got exit code %d, stdout\n%s\nwant 0 and stdout that begins with\n%s", got.Code, got.Out, want)
	}
	if got := podd(t, f, "ps", "-n", "prod", "-A"); got.Code != exit.Usage {
		t.Errorf("-n with -A: got exit code %d, stderr %q; want %d", got.Code, got.Err, exit.Usage)
	}
	if got := podd(t, f, "ps", "-o", "table"); got.Code != exit.Usage {
		t.Errorf("-o table: got exit code %d, stderr %q; want %d", got.Code, got.Err, exit.Usage)
	}
}
