package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/poddtest"
	"podd/server"
	"podd/server/events"
)

// whyText returns the text of podd why for s. The last line of the log of each container "pg" is a fatal
// error.
func whyText(v *server.View, s subject) string {
	w := explainer{view: v, workingDir: "/etc/podd", now: poddtest.At, lastLogLine: func(_ server.Key, container string) string {
		if container == "pg" {
			return "FATAL: data directory has wrong ownership"
		}
		return ""
	}}
	return w.explain(s)
}

func TestWhy_Goldens(t *testing.T) {
	v := newView()
	v.Problems = append(v.Problems, server.ProblemView{
		Path: "/etc/podd/manifests/new.yaml", Line: 2, Severity: "error", Message: "metadata.name: required",
		Pod: server.Key{Namespace: "default", Name: "new-n1"},
	})
	for _, name := range []string{"clock-n1", "db-n1", "job-n1", "gone-n1", "new-n1"} {
		compareGolden(t, "why_"+strings.TrimSuffix(name, "-n1"), whyText(v, subject{key: server.Key{Namespace: "default", Name: name}}))
	}
	compareGolden(t, "why_web", whyText(v, subject{key: server.Key{Namespace: "prod", Name: "web-n1"}}))
	for name, path := range map[string]string{"clock": "clock.yaml", "db": "db.yaml", "new": "new.yaml"} {
		compareGolden(t, "why_file_"+name, whyText(v, subject{path: "/etc/podd/manifests/" + path}))
	}
}

// TestWhy_Events checks that the text of podd why for a pod ends with the recent warning events of the
// pod.
func TestWhy_Events(t *testing.T) {
	web := poddtest.SetRunning(poddtest.NewPod("web.yaml", 4, "web", "app"))
	web.Pod.Namespace, web.Pod.UID = "shop", "v"
	w := explainer{view: poddtest.NewView(web), workingDir: "/etc/podd", now: poddtest.At, lastLogLine: func(server.Key, string) string { return "" }}
	l := newEventLog()
	for i := range 4 {
		l.Add(events.Occurrence{
			Type: v1.EventTypeWarning, Reason: []string{"BackOff", "Failed", "FailedMount", "Failed"}[i], Message: "Error: it broke",
			Pod: types.NamespacedName{Namespace: "shop", Name: "web-n1"}, UID: "v", Time: poddtest.BeforeAt(4*time.Second - time.Duration(i)*time.Second),
		})
	}
	all, _ := l.Events(0)
	for _, e := range all {
		w.events = append(w.events, *e)
	}
	compareGolden(t, "why_events", w.explain(subject{key: web.Key()}))
}

// TestWhy_States checks the text of podd why for pods in each state.
func TestWhy_States(t *testing.T) {
	done := func(phase v1.PodPhase, message string) *server.PodView {
		p := poddtest.NewPod("a.yaml", 1, "a", "app")
		p.Pod.Status.Phase, p.Pod.Status.Message, p.Phase, p.Rule = phase, message, "rest", "Finished"
		p.Ready = phase == v1.PodSucceeded
		return p
	}
	waits := func(why string, wake time.Duration) *server.PodView {
		p := poddtest.NewPod("a.yaml", 1, "a", "app")
		p.Phase, p.Why = "wait", why
		if wake > 0 {
			p.NextCheck = poddtest.At.Add(wake)
		}
		return p
	}
	edited := poddtest.SetRunning(poddtest.NewPod("a.yaml", 1, "a", "app"))
	edited.IsCurrent, edited.Why = false, "the new version of the pod cannot start yet: pulling image b; the earlier version keeps running"
	unready := poddtest.SetRunning(poddtest.NewPod("a.yaml", 1, "a", "app"))
	unready.Ready, unready.Pod.Status.ContainerStatuses[0].Ready = false, false
	failing := poddtest.SetRunning(poddtest.NewPod("a.yaml", 1, "a", "app"))
	failing.Ready, failing.Pod.Status.ContainerStatuses[0].Ready = false, false
	failing.Decisions = []server.DecisionView{{Container: "app", Rule: "NotReady", Why: "readiness probe failed: exit 1: no disk", NeedsUser: true}}
	many := poddtest.NewPod("a.yaml", 1, "a", "app")
	many.PlannedActions = strings.Split("a b c d e f", " ")
	mounted := done(v1.PodFailed, "Pod was active on the node longer than the specified deadline")
	mounted.Why = "unmounting volume data: device or resource busy"
	killed := poddtest.SetCrashed(poddtest.NewPod("a.yaml", 1, "a", "app", "other"))
	killed.LastExits = []server.ExitView{
		{Container: "app", ExitCode: 137, Reason: "OOMKilled", Why: "postStart hook failed: exit 1: no disk", Started: poddtest.BeforeAt(time.Minute), Finished: poddtest.BeforeAt(57 * time.Second)},
		{Container: "other", ExitCode: 143, Started: poddtest.BeforeAt(time.Hour), Finished: poddtest.BeforeAt(5 * time.Minute)},
		{Container: "other", ExitCode: 255},
	}
	var b strings.Builder
	for _, p := range []*server.PodView{
		poddtest.NewPod("a.yaml", 1, "a", "app"), poddtest.SetRunning(poddtest.NewPod("a.yaml", 1, "a", "app")), unready, failing, edited, many, killed,
		done(v1.PodSucceeded, ""), done(v1.PodFailed, "init container setup failed with exit code 3"), mounted,
		waits(`port 80 is taken by default/proxy (proxy.yaml:9)`, 0), waits("the runtime does not answer", 5*time.Second),
		waits("", 90*time.Second),
	} {
		fmt.Fprintf(&b, "%s\n", whyText(poddtest.NewView(p), subject{key: p.Key()}))
	}
	compareGolden(t, "why_states", b.String())
}

// TestWhy_EscapesControls checks that podd why escapes control characters in the log of a container, and
// truncates a long line.
func TestWhy_EscapesControls(t *testing.T) {
	p := poddtest.SetCrashed(poddtest.NewPod("a.yaml", 1, "a", "app"))
	w := explainer{view: poddtest.NewView(p), now: poddtest.At, lastLogLine: func(server.Key, string) string {
		return "\x1b]0;evil\x07" + strings.Repeat("x", 1000)
	}}
	text := w.explain(subject{key: p.Key()})
	if strings.ContainsAny(text, "\x1b\x07") || len(text) > 700 {
		t.Errorf("got %q, want a text of at most 700 bytes with escaped control characters", text)
	}
}

// TestWhy_Subjects checks which pod or file each argument of podd why selects, and the errors for other
// arguments.
func TestWhy_Subjects(t *testing.T) {
	v := newView()
	v.Problems = append(v.Problems, server.ProblemView{Severity: "error", Message: "refused", Pod: server.Key{Namespace: "default", Name: "new-n1"}})
	dir := poddtest.ShortDir(t)
	file := dir + "/own.yaml"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, dir+"/link.yaml"); err != nil {
		t.Fatal(err)
	}
	v.Files = append(v.Files, server.FileView{Path: file})
	pod := func(ns, name string) subject { return subject{key: server.Key{Namespace: ns, Name: name}} }
	for word, want := range map[string]subject{
		"db":                          pod("default", "db-n1"),
		"db-n1":                       pod("default", "db-n1"),
		"default/db":                  pod("default", "db-n1"),
		"prod/web-n1":                 pod("prod", "web-n1"),
		"new":                         pod("default", "new-n1"),
		"db.yaml":                     {path: "/etc/podd/manifests/db.yaml"},
		"/etc/podd/manifests/db.yaml": {path: "/etc/podd/manifests/db.yaml"},
		dir + "/../" + filepath.Base(dir) + "/own.yaml": {path: file},
		dir + "/link.yaml":               {path: file},
		"https://fleet.example/web.yaml": {path: "https://fleet.example/web.yaml"},
	} {
		if got, err := (&WhyCmd{}).findSubject(v, word); err != nil || got != want {
			t.Errorf("argument %s: got %+v, error %v; want %+v", word, got, err, want)
		}
	}
	for word, want := range map[string]string{
		"dbb":                   `no pod "dbb"; did you mean "db"?`,
		"something-else":        `no pod "something-else"; "podd ps" lists all pods`,
		"prod/db":               `no pod "db" in namespace prod; there is default/db-n1`,
		"other.yaml":            "other.yaml does not belong to a source of podd; the sources are /etc/podd/manifests",
		"./db":                  "./db does not belong to a source of podd; the sources are /etc/podd/manifests",
		"https://fleet.example": "https://fleet.example does not belong to a source of podd; the sources are /etc/podd/manifests",
	} {
		if _, err := (&WhyCmd{}).findSubject(v, word); err == nil || err.Error() != want {
			t.Errorf("argument %s: got error %v, want %q", word, err, want)
		}
	}
}

func TestWhy_Verb(t *testing.T) {
	v := newView()
	f := poddtest.Serve(t, v)
	var requestedLastLine bool // of the previous container pg
	f.OnLogs = func(_ context.Context, r server.LogRequest, w io.Writer) error {
		requestedLastLine = r.Previous && r.Tail == 1 && r.Container == "pg"
		_, err := io.WriteString(w, "out of memory\n")
		return err
	}
	got := podd(t, f, "why", "db")
	if !strings.Contains(got.Out, `last   exit 1 after 0.8s: "out of memory"`) || got.Code != 0 || !requestedLastLine {
		t.Errorf("why db: got exit code %d, requested the last line of the previous container: %v, stdout\n%s\nstderr\n%s\nwant exit code 0, true, and the last line on stdout", got.Code, requestedLastLine, got.Out, got.Err)
	}
	if got := podd(t, f, "why"); !strings.HasPrefix(got.Out, "default/clock ") || !strings.Contains(got.Out, "\n\ndefault/db ") || !strings.Contains(got.Out, "new.yaml: refused") {
		t.Errorf("without arguments: got stdout\n%s\nstderr\n%s\nwant all pods with problems, from default/clock to new.yaml", got.Out, got.Err)
	}
	if got := podd(t, f, "why", "absent"); got.Code != 1 || got.Err != "podd: no pod \"absent\"; \"podd ps\" lists all pods\n" {
		t.Errorf("unknown pod: got exit code %d, stderr %q; want 1 and the error that there is no such pod", got.Code, got.Err)
	}
	down := poddtest.NewView()
	down.Problems = []server.ProblemView{{Severity: "error", Message: "containerd is not responding"}}
	f.Publish(down)
	if got := podd(t, f, "why"); got != (poddtest.Result{Out: "error: containerd is not responding\n"}) {
		t.Errorf("problem of the node: got %+v, want only this problem", got)
	}
	f.Publish(poddtest.NewView(poddtest.SetRunning(poddtest.NewPod("a.yaml", 1, "a", "app"))))
	if got := podd(t, f, "why"); got != (poddtest.Result{Err: "podd: 1 pod, no problems\n"}) {
		t.Errorf("no problems: got %+v, want the message \"1 pod, no problems\"", got)
	}
}
