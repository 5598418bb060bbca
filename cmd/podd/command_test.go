package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/google/go-cmp/cmp"

	"podd/server"
)

// another is p with its containers started again.
func another(p *server.PodView) *server.PodView {
	for i := range p.Pod.Status.ContainerStatuses {
		p.Pod.Status.ContainerStatuses[i].ContainerID += "'"
	}
	return p
}

func TestRestart(t *testing.T) {
	f := serve(t, viewOf(up(podAt("web.yaml", 1, "web", "app", "sidecar"))))
	f.restart = func(types.NamespacedName, string) error {
		v := viewOf(another(up(podAt("web.yaml", 1, "web", "app", "sidecar"))))
		v.Revision++
		f.Publish(v)
		return nil
	}
	if got := f.podd(t, "restart", "web"); got.Code != 0 || !strings.HasPrefix(got.Err, "podd: default/web restarted, ready after ") {
		t.Errorf("%+v", got)
	}
	if got := f.podd(t, "restart", "--timeout=0", "web", "-c", "app"); got != (said{Err: "podd: default/web restarts\n"}) {
		t.Errorf("%+v", got)
	}
	if want := []string{"restart default/web-n1 ", "restart default/web-n1 app"}; strings.Join(f.asked, ";") != strings.Join(want, ";") {
		t.Errorf("asked %q, want %q", f.asked, want)
	}
	if got := f.podd(t, "restart", "web", "-c", "ap"); got.Code != 1 || !strings.Contains(got.Err, `has no container "ap"`) {
		t.Errorf("%+v", got)
	}
}

func TestRestartInVain(t *testing.T) {
	f := serve(t, viewOf(up(podAt("web.yaml", 1, "web", "app"))))
	f.restart = func(types.NamespacedName, string) error { return errors.New("the runtime is gone") }
	if got := f.podd(t, "restart", "web"); got != (said{Err: "podd: the runtime is gone\n", Code: 1}) {
		t.Errorf("refused: %+v", got)
	}

	f = serve(t, viewOf(up(podAt("web.yaml", 1, "web", "app"))))
	f.restart = func(types.NamespacedName, string) error {
		f.Publish(&server.View{Revision: 101, Node: "n1"})
		return nil
	}
	if got := f.podd(t, "restart", "web"); got.Code != 1 || !strings.HasPrefix(got.Err, "podd: default/web went while it restarted") {
		t.Errorf("removed: %+v", got)
	}

	f = serve(t, viewOf(crashed(podAt("web.yaml", 1, "web", "app"))))
	var talk strings.Builder
	err := stillNotReady(newReasons(t.Context(), newPeer(f.dir), f.View()), f.View().Pods[0].Key(), "2m", Streams{Err: &talk})
	if err == nil || err.Error() != "default/web is not ready 2m after its restart" || !strings.Contains(talk.String(), "container app crashed 4 times") {
		t.Errorf("crashes: %v, %s", err, talk.String())
	}
}

func TestDownVerb(t *testing.T) {
	f := serve(t, viewOf(up(podAt("a.yaml", 1, "a", "app")), up(podAt("b.yaml", 1, "b", "app"))))
	f.down = func(context.Context) error {
		f.Publish(&server.View{Revision: 101, Node: "n1"})
		return nil
	}
	got := f.podd(t, "down")
	if got.Code != 0 || strings.Count(got.Err, " stopped after ") != 2 || !strings.Contains(got.Err, "\npodd: 2 pods stopped in ") ||
		!strings.HasSuffix(got.Err, "; podd goes on and starts nothing until it is started again\n") {
		t.Errorf("%+v", got)
	}
	if got := f.podd(t, "down"); got != (said{Err: "podd: no pods ran; podd goes on and starts nothing until it is started again\n"}) {
		t.Errorf("again: %+v", got)
	}
}

func TestShutdownVerb(t *testing.T) {
	f := serve(t, viewOf(up(podAt("a.yaml", 1, "a", "app"))))
	f.down = func(context.Context) error {
		f.Publish(&server.View{Revision: 101, Node: "n1"})
		return nil
	}
	got := f.podd(t, "shutdown", "--grace=90s")
	if got.Code != 0 || strings.Count(got.Err, " stopped after ") != 1 || !strings.Contains(got.Err, "\npodd: 1 pod stopped in ") ||
		!strings.HasSuffix(got.Err, "; none is started until the machine has booted, or podd shutdown --cancel\n") {
		t.Errorf("%+v", got)
	}
	if got := f.podd(t, "shutdown", "--cancel"); got != (said{Err: "podd: the shutdown is cancelled; pods run again\n"}) {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff([]string{"shutdown 1m30s", "resume"}, f.asked); diff != "" {
		t.Error(diff)
	}
	if got := f.podd(t, "shutdown", "--cancel", "--grace=1s"); got.Code == 0 {
		t.Errorf("%+v", got)
	}
}

func TestDownInVain(t *testing.T) {
	f := serve(t, viewOf(up(podAt("a.yaml", 1, "a", "app")), up(podAt("b.yaml", 1, "b", "app"))))
	f.down = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	if got := f.podd(t, "down", "--timeout=50ms"); got.Code != 1 || !strings.Contains(got.Err, "; podd goes on, podd ps shows it\n") {
		t.Errorf("%+v", got)
	}
	late := &toll{begin: time.Now(), left: podKeys(f.View())}
	if err := late.late().Error(); !strings.HasSuffix(err, "still stopping: default/a-n1 and default/b-n1; podd goes on, podd ps shows it") {
		t.Error(err)
	}
	f = serve(t, f.View())
	f.down = func(context.Context) error { return errors.New("the runtime is gone") }
	if got := f.podd(t, "down"); got != (said{Err: "podd: the runtime is gone\n", Code: 1}) {
		t.Errorf("%+v", got)
	}
}
