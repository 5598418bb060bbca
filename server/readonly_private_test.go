package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"podd/manifest/redact/redacttest"
	"podd/server"
	"podd/server/metrics"
	"podd/server/page"
)

// quotes are the fields of a PodView that can quote the output of a program and are
// therefore private.
var quotes = []string{"PodView.Why", "PodView.Next", "StepView.Why", "ExitView.Message", "ExitView.Why"}

// once ends a stream after its first element.
type once struct {
	*httptest.ResponseRecorder
	end func()
}

func (o once) Flush() { o.end() }

// TestReadOnly_Private sets a marker in every text field of a pod, its status and podd's decisions,
// and searches for the private markers in responses to unauthenticated clients. A problem of the
// pod quotes all private fields of the pod.
func TestReadOnly_Private(t *testing.T) {
	var filled struct {
		PodView     server.PodView
		ProblemView server.ProblemView
	}
	marks := redacttest.Fill(&filled, quotes...)
	pod, problem := &filled.PodView, filled.ProblemView
	before := pod.Pod.DeepCopy()
	problem.Pod = pod.Key()
	for marker, path := range marks.Private {
		if strings.HasPrefix(path, ".PodView.Pod.") {
			problem.Message += fmt.Sprintf(": Invalid value: %q", marker)
		}
	}
	latest := server.NewLatestView(&server.View{Revision: 1, Pods: []*server.PodView{pod}, Problems: []server.ProblemView{problem}})
	words := func(*v1.Pod, time.Time) (ready, status, restarts string) { return "", "", "" }
	h := &server.ReadOnlyHandler{
		State: latest, Health: &server.Health{}, Node: "n1",
		Stats: metrics.New(metrics.Options{}).Handler(metrics.Inputs{State: latest}), Page: (&page.Page{State: latest, PodColumns: words}).Handler(),
	}
	shown := map[string]int{} // number of public markers by path
	for _, path := range []string{"/pods", "/metrics", "/metrics/probes", "/page/state", "/healthz"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = "localhost"
		ctx, cancel := context.WithCancel(r.Context())
		h.ServeHTTP(once{w, cancel}, r.WithContext(ctx))
		cancel()
		if w.Code != http.StatusOK {
			t.Errorf("%s: got %d %s, want 200", path, w.Code, w.Body)
		}
		if found := redacttest.FindMarks(marks.Private, w.Body.String()); len(found) > 0 {
			t.Errorf("%s: got private fields %q, want none", path, found)
		}
		if path == "/page/state" && !strings.Contains(w.Body.String(), ": Invalid value: ") {
			t.Errorf("%s: got no problem of the pod, want it in the response", path)
		}
		shown[path] = len(redacttest.FindMarks(marks.Public, w.Body.String()))
	}
	if shown["/pods"] < 500 || shown["/page/state"] < 5 {
		t.Errorf("number of public fields by path: got %v, want at least 500 in /pods and 5 in /page/state", shown)
	}
	if diff := cmp.Diff(before, pod.Pod); diff != "" {
		t.Errorf("the handler modified the pod of the View (-before +after):\n%s", diff)
	}
}
