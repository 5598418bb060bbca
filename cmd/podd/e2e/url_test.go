//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
)

// A site serves manifests. A test can change its handler at any time.
type site struct {
	*httptest.Server
	handler  atomic.Pointer[http.HandlerFunc]
	requests atomic.Int64
}

func newSite(d *daemon) *site {
	s := &site{}
	s.serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		(*s.handler.Load())(w, r)
	}))
	d.t.Cleanup(s.Close)
	return s
}

func (s *site) serve(h http.HandlerFunc) { s.handler.Store(&h) }

// contentHandler returns a handler that serves text with the ETag tag, or the status 304 if the client
// already has this ETag. The handler counts its responses with text in not304.
func contentHandler(text, tag string, not304 *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		not304.Add(1)
		fmt.Fprint(w, text)
	}
}

// untilRequests waits until the site has received n more requests.
func (d *daemon) untilRequests(s *site, n int64) {
	d.t.Helper()
	goal := s.requests.Load() + n
	d.eventually("podd polls the URL", func() error {
		if got := s.requests.Load(); got < goal {
			return fmt.Errorf("got %d requests, want at least %d", got, goal)
		}
		return nil
	})
}

func podList(pods ...*v1.Pod) *v1.PodList {
	list := &v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []v1.Pod{}}
	for _, p := range pods {
		list.Items = append(list.Items, *p)
	}
	return list
}

func TestURL(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	s := newSite(d)
	d.sources = false
	d.args = []string{"--manifest-url", s.URL + "/pods?token=hidden", "--http-check-frequency", "200ms"}
	var sent atomic.Int64
	one := manifestText(d, podList(d.pod("web", shell("main", serve("one")))))
	s.serve(contentHandler(one, `"1"`, &sent))
	d.start()
	ready := func(v *server.View) error {
		if p := d.find(v, "web"); p == nil || !p.Ready || !p.IsCurrent {
			return fmt.Errorf("pod web: got %+v, want it ready in its current version", p)
		}
		return nil
	}
	d.until("the pod of the URL runs", ready)
	was := d.container("web", "main")
	d.untilRequests(s, 2)
	if n := sent.Load(); n != 1 {
		t.Errorf("responses with the content: got %d, want 1, because podd sends the ETag in its next requests", n)
	}

	// While the responses are invalid, the pod keeps running.
	for name, wrong := range map[string]http.HandlerFunc{
		"500":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"garbage": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>log in: {{") },
		"truncated": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9999")
			fmt.Fprint(w, one)
		},
		"empty": func(w http.ResponseWriter, _ *http.Request) {},
		"half":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, one[:len(one)/2]) },
	} {
		s.serve(wrong)
		d.untilProblem(s.URL)
		if now := d.container("web", "main"); now != was {
			t.Errorf("container after the response %q: got %+v, want %+v", name, now, was)
		}
		s.serve(contentHandler(one, fmt.Sprintf("%q", name), &sent))
		d.until("podd reports no problem after the response "+name, func(v *server.View) error {
			if all := problems(v); len(all) > 0 {
				return fmt.Errorf("got problems %q, want none", all)
			}
			return ready(v)
		})
	}
	if now := d.container("web", "main"); now != was {
		t.Errorf("container after all invalid responses: got %+v, want %+v", now, was)
	}

	// Without a network, podd starts with the stored content. It adopts the running pod, and starts
	// the pod again after a reboot of the host.
	s.serve(func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) })
	d.crash()
	d.until("the pod runs without network", ready)
	d.untilProblem(s.URL)
	if now := d.container("web", "main"); now != was {
		t.Errorf("container after a restart of podd without a network: got %+v, want %+v", now, was)
	}
	d.kill()
	d.removeSandboxes(t.Context())
	d.start()
	d.until("the pod runs after a reboot", ready)

	// The response contains another version of the pod, and then an empty list.
	s.serve(contentHandler(manifestText(d, podList(d.pod("web", shell("main", serve("two"))))), `"2"`, &sent))
	d.untilNote("two runs")
	d.until("the edit is applied", ready)
	s.serve(contentHandler(manifestText(d, podList()), `"3"`, &sent))
	d.untilGone("web")
	if out, stderr := d.verb("ps"); strings.Contains(out+stderr, "hidden") {
		t.Errorf("podd ps: got stdout %q, stderr %q; want no query of the URL in either", out, stderr)
	}
	d.wantNothingLeft()
}
