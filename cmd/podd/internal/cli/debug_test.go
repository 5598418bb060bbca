package cli

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/poddtest"
	"podd/cmd/podd/internal/printer"
	"podd/server"
)

// serveDebug serves a podd with the pod "web". A container that a patch adds to this pod has the given
// states, one after the other. The returned function patches returns the requests with patches.
func serveDebug(t *testing.T, states ...v1.ContainerState) (f *poddtest.Podd, patches func() []string) {
	t.Helper()
	web := poddtest.SetRunning(poddtest.NewPod("web.yaml", 1, "web", "app"))
	web.Pod.UID = "u"
	f = &poddtest.Podd{LatestView: server.NewLatestView(poddtest.NewView(web)), Dir: poddtest.ShortDir(t)}
	f.OnLogs = func(_ context.Context, r server.LogRequest, w io.Writer) error {
		_, err := io.WriteString(w, string(r.Stream)+" of "+r.Container+"\n")
		return err
	}
	f.OnDebug = func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f.RecordRequest(r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type") + " " + string(body))
		var patch struct {
			Spec struct{ EphemeralContainers []v1.EphemeralContainer }
		}
		if err := json.Unmarshal(body, &patch); err != nil || len(patch.Spec.EphemeralContainers) != 1 {
			http.Error(w, "unexpected patch", http.StatusBadRequest)
			return
		}
		added := patch.Spec.EphemeralContainers[0]
		if added.Image == "bad" {
			w.WriteHeader(http.StatusUnprocessableEntity)
			io.WriteString(w, `{"kind":"Status","message":"invalid image"}`)
			return
		}
		if added.Image == "late" {
			w.WriteHeader(http.StatusGatewayTimeout)
		}
		io.WriteString(w, "{}")
		for _, state := range states {
			v := *f.View()
			p := *v.Pods[0]
			p.Pod = p.Pod.DeepCopy()
			p.Pod.Spec.EphemeralContainers = patch.Spec.EphemeralContainers
			p.Pod.Status.EphemeralContainerStatuses = []v1.ContainerStatus{{Name: added.Name, State: state}}
			v.Pods = []*server.PodView{&p}
			v.Revision++
			f.Publish(&v)
		}
	}
	f.Start(t)
	return f, func() []string {
		f.Mu.Lock()
		defer f.Mu.Unlock()
		return f.Requests
	}
}

var (
	running   = v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: *poddtest.MetaTimeBeforeAt(0)}}
	failed    = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 3, StartedAt: *poddtest.MetaTimeBeforeAt(2e9), FinishedAt: *poddtest.MetaTimeBeforeAt(1e9)}}
	succeeded = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}
	waiting   = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "pulling x: 404"}}
)

// TestDebug_Patch checks that podd debug sends the same container in its patch as kubectl debug.
func TestDebug_Patch(t *testing.T) {
	for words, want := range map[string]string{
		"web --image busybox -c d -it":                   `{"name":"d","image":"busybox","resources":{},"terminationMessagePolicy":"File","securityContext":{"capabilities":{"add":["SYS_PTRACE"]}},"stdin":true,"tty":true}`,
		"web --image busybox -c d -i --profile baseline": `{"name":"d","image":"busybox","resources":{},"terminationMessagePolicy":"File","stdin":true,"stdinOnce":true}`,
		"pod/web --image x:1 -c d --target app --profile legacy --env A=b=c --env E= --image-pull-policy Never -- sh -c true": `{"name":"d","image":"x:1","command":["sh","-c","true"],` +
			`"env":[{"name":"A","value":"b=c"},{"name":"E"}],"resources":{},"terminationMessagePolicy":"File","imagePullPolicy":"Never","targetContainerName":"app"}`,
		"web --image x -c d --profile sysadmin --arguments-only -- -v": `{"name":"d","image":"x","args":["-v"],"resources":{},"terminationMessagePolicy":"File","securityContext":{"privileged":true}}`,
	} {
		f, patches := serveDebug(t, succeeded)
		got := podd(t, f, append([]string{"debug"}, strings.Fields(words)...)...)
		all := patches()
		if got.Code != 0 || len(all) != 1 {
			t.Fatalf("podd debug %s: got %+v, requests %q; want exit code 0 and one request", words, got, all)
		}
		const head = "PATCH /api/v1/namespaces/default/pods/web-n1/ephemeralcontainers application/strategic-merge-patch+json "
		body, ok := strings.CutPrefix(all[0], head)
		var gotPatch, wantPatch any
		if !ok || json.Unmarshal([]byte(body), &gotPatch) != nil || json.Unmarshal([]byte(`{"metadata":{"uid":"u"},"spec":{"ephemeralContainers":[`+want+`]}}`), &wantPatch) != nil {
			t.Fatalf("podd debug %s: got request %q, want %q and a patch in JSON", words, all[0], head)
		}
		if diff := cmp.Diff(wantPatch, gotPatch); diff != "" {
			t.Errorf("podd debug %s: patch (-want +got):\n%s", words, diff)
		}
	}
}

func TestDebug(t *testing.T) {
	generatedName := regexp.MustCompile(`debugger-[a-z0-9]{5}`)
	for name, c := range map[string]struct {
		words  string
		states []v1.ContainerState
		want   poddtest.Result
	}{
		"running":               {"web --image x", []v1.ContainerState{running}, poddtest.Result{Err: "podd: defaulting debug container name to NAME\npodd: container NAME of web is running; run \"podd logs web -c NAME\" for its output\n"}},
		"not in the status yet": {"web --image late -c d", []v1.ContainerState{running}, poddtest.Result{Err: "podd: container d of web is running; run \"podd logs web -c d\" for its output\n"}},
		"quiet":                 {"-q web --image x", []v1.ContainerState{running}, poddtest.Result{}},
		"terminated":            {"web --image x -c d", []v1.ContainerState{failed}, poddtest.Result{Err: "podd: container d of web has terminated: exit 3 after 1.0s; run \"podd logs web -c d\" for its output\n"}},
		"attached, exit code 3": {"web --image x -c d -i", []v1.ContainerState{failed}, poddtest.Result{Out: "stdout of d\n", Err: "stderr of d\npodd: command terminated with exit code 3\n", Code: 3}},
		"--attach":              {"web --image x -c d --attach", []v1.ContainerState{failed}, poddtest.Result{Out: "stdout of d\n", Err: "stderr of d\npodd: command terminated with exit code 3\n", Code: 3}},
		"--attach, exit code 0": {"web --image x -c d --attach", []v1.ContainerState{running, succeeded}, poddtest.Result{Out: "stdout of d\n", Err: "stderr of d\n"}},
		"quiet, exit code 3":    {"-q web --image x -c d -i", []v1.ContainerState{failed}, poddtest.Result{Out: "stdout of d\n", Err: "stderr of d\n", Code: 3}},
		"--attach=false":        {"web --image x -c d -i --attach=false", []v1.ContainerState{running}, poddtest.Result{Err: "podd: container d of web is running; run \"podd logs web -c d\" for its output\n"}},
		"rejected":              {"web --image bad -c d", nil, poddtest.Result{Err: "podd: invalid image\n", Code: 1}},
		"name taken":            {"web --image x -c app", nil, poddtest.Result{Err: "podd: pod default/web-n1 already has a container \"app\"; choose another name, because an ephemeral container cannot be replaced\n", Code: 1}},
		"unknown target":        {"web --image x --target ap", nil, poddtest.Result{Err: "podd: --target: pod default/web-n1 has no container \"ap\"; did you mean \"app\"?\n", Code: 1}},
		"unknown pod":           {"wbe --image x", nil, poddtest.Result{Err: "podd: no pod \"wbe\"; did you mean \"web\"?\n", Code: 1}},
		"node":                  {"node/n1 --image x", nil, poddtest.Result{Err: "podd: debug: node/n1: \"podd debug\" supports only pods; on the node itself, use a shell\n", Code: 2}},
		"-t without -i":         {"web --image x -t", nil, poddtest.Result{Err: "podd: debug: -t requires -i\n", Code: 2}},
		"no image":              {"web", nil, poddtest.Result{Err: "podd: missing flags: --image=IMAGE\n", Code: 2}},
		"invalid variable":      {"web --image x --env A", nil, poddtest.Result{Err: "podd: --env: \"A\" is not of the form K=V\n", Code: 2}},
	} {
		f, _ := serveDebug(t, c.states...)
		got := podd(t, f, append([]string{"debug"}, strings.Fields(c.words)...)...)
		got.Err = generatedName.ReplaceAllString(got.Err, "NAME")
		if got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

// TestDebug_Timeout checks the error if the container does not run before the timeout.
func TestDebug_Timeout(t *testing.T) {
	const state = "podd: container d: pulling x: 404\n"
	var got, want poddtest.Result
	// On a busy machine, podd debug may not receive the state of the container before the timeout.
	for timeout := time.Second; timeout < 2*time.Minute && !strings.HasPrefix(got.Err, state); timeout *= 2 {
		f, _ := serveDebug(t, waiting)
		got = podd(t, f, "debug", "web", "--image", "x", "-c", "d", "--timeout", timeout.String())
		want = poddtest.Result{Err: state + "podd: container d of default/web-n1 is not running after " + printer.FormatDuration(timeout) + ": pulling x: 404\n", Code: 1}
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestDebug_PodReplaced checks that podd debug does not wait for a pod that was replaced.
func TestDebug_PodReplaced(t *testing.T) {
	replace := func(f *poddtest.Podd) {
		v := *f.View()
		p := *v.Pods[0]
		p.Pod = p.Pod.DeepCopy()
		p.Pod.UID, p.Pod.Status.EphemeralContainerStatuses = "u2", nil
		v.Pods = []*server.PodView{&p}
		v.Revision++
		f.Publish(&v)
	}
	f, _ := serveDebug(t, running)
	f.OnLogs = func(context.Context, server.LogRequest, io.Writer) error { replace(f); return nil }
	want := poddtest.Result{Err: "podd: pod default/web-n1 was replaced; the exit code of container d is unknown\n", Code: 1}
	if got := podd(t, f, "debug", "web", "--image", "x", "-c", "d", "--attach"); got != want {
		t.Errorf("replaced while attached: got %+v, want %+v", got, want)
	}
	f, _ = serveDebug(t)
	add := f.OnDebug
	f.OnDebug = func(w http.ResponseWriter, r *http.Request) { add(w, r); replace(f) }
	want.Err = "podd: pod default/web-n1 was replaced before container d started\n"
	if got := podd(t, f, "debug", "web", "--image", "x", "-c", "d", "--timeout", "5m"); got != want {
		t.Errorf("replaced before the container started: got %+v, want %+v", got, want)
	}
}
