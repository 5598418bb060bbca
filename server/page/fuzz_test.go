package page

import (
	"context"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"podd/server"
)

// FuzzPage checks every response of a page without logs. The response must have a valid
// status and come from the page's own files or endpoints. It must not contain the output or
// the environment of a program.
func FuzzPage(f *testing.F) {
	for _, target := range []string{"/", "/page/state?revision=1", "/page/usage", "/page/events?after=0", "/page/logs?pod=db-n1", "/page/../../etc/passwd", "/page/%2e%2e/page.go"} {
		f.Add("GET", target)
		f.Add("POST", target)
	}
	p := &Page{State: server.NewLatestView(&server.View{Revision: 9, Pods: []*server.PodView{crashedPod()}}), PodColumns: columns, Meter: meter{}}
	h := p.Handler()
	own := map[string]bool{}
	err := fs.WalkDir(embeddedFiles, ".", func(_ string, d fs.DirEntry, err error) error {
		own[d.Name()] = true
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return
		}
		r, err := http.NewRequest(method, "http://n1", nil)
		if err != nil {
			return
		}
		r.URL = u
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // with a canceled context, streams end at once
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(ctx))
		if w.Code < 200 || w.Code > 599 || strings.Contains(w.Body.String(), "hunter2") {
			t.Errorf("%s %q: got status %d and body %s, want status 200 to 599 and no private text", method, target, w.Code, w.Body)
		}
		name := u.Path[strings.LastIndex(u.Path, "/")+1:]
		if w.Code == http.StatusOK && name != "" && name != "state" && name != "usage" && !own[name] {
			t.Errorf("%s %q: got status 200 for an unknown path: %.100s", method, target, w.Body)
		}
	})
}
