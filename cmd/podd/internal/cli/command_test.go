package cli

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/poddtest"
	"podd/server"
)

// withNewContainers changes the IDs of the containers of p, as a restart does, and returns p.
func withNewContainers(p *server.PodView) *server.PodView {
	for i := range p.Pod.Status.ContainerStatuses {
		p.Pod.Status.ContainerStatuses[i].ContainerID += "'"
	}
	return p
}

func TestRestart(t *testing.T) {
	f := poddtest.Serve(t, poddtest.NewView(poddtest.SetRunning(poddtest.NewPod("web.yaml", 1, "web", "app", "sidecar"))))
	f.OnRestart = func(types.NamespacedName, string) error {
		v := poddtest.NewView(withNewContainers(poddtest.SetRunning(poddtest.NewPod("web.yaml", 1, "web", "app", "sidecar"))))
		v.Revision++
		f.Publish(v)
		return nil
	}
	if got := podd(t, f, "restart", "web"); got.Code != 0 || !strings.HasPrefix(got.Err, "podd: default/web restarted, ready after ") {
		t.Errorf("restarting the pod: got %+v, want the message that default/web is restarted and ready", got)
	}
	if got := podd(t, f, "restart", "--timeout=0", "web", "-c", "app"); got != (poddtest.Result{Err: "podd: default/web is restarting\n"}) {
		t.Errorf("restarting a container with --timeout=0: got %+v, want the message that default/web is restarting", got)
	}
	if want := []string{"restart default/web-n1 ", "restart default/web-n1 app"}; strings.Join(f.Requests, ";") != strings.Join(want, ";") {
		t.Errorf("got requests %q, want %q", f.Requests, want)
	}
	if got := podd(t, f, "restart", "web", "-c", "ap"); got.Code != 1 || !strings.Contains(got.Err, `has no container "ap"`) {
		t.Errorf("restarting the unknown container ap: got %+v, want an error that names it", got)
	}
}

// TestRestart_Failed checks the errors of podd restart if podd rejects the request, if the pod is
// deleted during the restart, and if the pod is not ready in time.
func TestRestart_Failed(t *testing.T) {
	f := poddtest.Serve(t, poddtest.NewView(poddtest.SetRunning(poddtest.NewPod("web.yaml", 1, "web", "app"))))
	f.OnRestart = func(types.NamespacedName, string) error { return errors.New("the runtime is unreachable") }
	if got := podd(t, f, "restart", "web"); got != (poddtest.Result{Err: "podd: the runtime is unreachable\n", Code: 1}) {
		t.Errorf("rejected request: got %+v, want the error of podd", got)
	}

	f = poddtest.Serve(t, poddtest.NewView(poddtest.SetRunning(poddtest.NewPod("web.yaml", 1, "web", "app"))))
	f.OnRestart = func(types.NamespacedName, string) error {
		f.Publish(&server.View{Revision: 101, Node: "n1"})
		return nil
	}
	if got := podd(t, f, "restart", "web"); got.Code != 1 || !strings.HasPrefix(got.Err, "podd: default/web was deleted during its restart") {
		t.Errorf("deleted pod: got %+v, want the error that default/web was deleted", got)
	}

	f = poddtest.Serve(t, poddtest.NewView(poddtest.SetCrashed(poddtest.NewPod("web.yaml", 1, "web", "app"))))
	var stderr strings.Builder
	err := explainNotReady(newExplainer(t.Context(), client.New(f.Dir), f.View()), f.View().Pods[0].Key(), "2m", iostreams.Streams{Err: &stderr})
	if err == nil || err.Error() != "default/web is not ready 2m after its restart" || !strings.Contains(stderr.String(), "container app crashed 4 times") {
		t.Errorf("crashing pod: got error %v, stderr %q; want the error \"default/web is not ready 2m after its restart\", and the number of crashes on stderr", err, stderr.String())
	}
}

func TestDown(t *testing.T) {
	f := poddtest.Serve(t, poddtest.NewView(poddtest.SetRunning(poddtest.NewPod("a.yaml", 1, "a", "app")), poddtest.SetRunning(poddtest.NewPod("b.yaml", 1, "b", "app"))))
	f.OnDown = func(context.Context) error {
		f.Publish(&server.View{Revision: 101, Node: "n1"})
		return nil
	}
	got := podd(t, f, "down")
	if got.Code != 0 || strings.Count(got.Err, " stopped after ") != 2 || !strings.Contains(got.Err, "\npodd: 2 pods stopped in ") ||
		!strings.HasSuffix(got.Err, "; podd keeps running, but starts no pods until it is restarted\n") {
		t.Errorf("first call: got %+v, want a message for each of the 2 stopped pods, their number, and that podd starts no more pods", got)
	}
	if got := podd(t, f, "down"); got != (poddtest.Result{Err: "podd: no pods to stop; podd keeps running, but starts no pods until it is restarted\n"}) {
		t.Errorf("second call: got %+v, want the message that there are no pods to stop", got)
	}
}

func TestShutdown(t *testing.T) {
	f := poddtest.Serve(t, poddtest.NewView(poddtest.SetRunning(poddtest.NewPod("a.yaml", 1, "a", "app"))))
	f.OnDown = func(context.Context) error {
		f.Publish(&server.View{Revision: 101, Node: "n1"})
		return nil
	}
	got := podd(t, f, "shutdown", "--grace=90s")
	if got.Code != 0 || strings.Count(got.Err, " stopped after ") != 1 || !strings.Contains(got.Err, "\npodd: 1 pod stopped in ") ||
		!strings.HasSuffix(got.Err, "; no pod starts before the next boot, unless you run \"podd shutdown --cancel\"\n") {
		t.Errorf("shutdown: got %+v, want the number of stopped pods, and that no pod starts before the next boot", got)
	}
	if got := podd(t, f, "shutdown", "--cancel"); got != (poddtest.Result{Err: "podd: shutdown cancelled; the pods start again\n"}) {
		t.Errorf("shutdown --cancel: got %+v, want the message that the pods start again", got)
	}
	if diff := cmp.Diff([]string{"shutdown 1m30s", "resume"}, f.Requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if got := podd(t, f, "shutdown", "--cancel", "--grace=1s"); got.Code == 0 {
		t.Errorf("shutdown --cancel with --grace: got %+v, want a usage error", got)
	}
}

// TestDown_Failed checks the errors of podd down after its timeout, and if podd rejects the request.
func TestDown_Failed(t *testing.T) {
	f := poddtest.Serve(t, poddtest.NewView(poddtest.SetRunning(poddtest.NewPod("a.yaml", 1, "a", "app")), poddtest.SetRunning(poddtest.NewPod("b.yaml", 1, "b", "app"))))
	f.OnDown = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	if got := podd(t, f, "down", "--timeout=50ms"); got.Code != 1 || !strings.Contains(got.Err, "; podd continues to stop them; run \"podd ps\" for their state\n") {
		t.Errorf("timeout: got %+v, want an error with the hint to run podd ps", got)
	}
	running := &stopProgress{startTime: time.Now(), remaining: podKeys(f.View())}
	if err := running.timeoutError().Error(); !strings.HasSuffix(err, " waiting for default/a-n1 and default/b-n1 to stop; podd continues to stop them; run \"podd ps\" for their state") {
		t.Errorf("timeout with two pods: got error %q, want it to name both pods", err)
	}
	f = poddtest.Serve(t, f.View())
	f.OnDown = func(context.Context) error { return errors.New("the runtime is unreachable") }
	if got := podd(t, f, "down"); got != (poddtest.Result{Err: "podd: the runtime is unreachable\n", Code: 1}) {
		t.Errorf("rejected request: got %+v, want the error of podd", got)
	}
}
