// Package page serves a web page that shows the node: its pods, problems, resource usage,
// events, and the logs of containers.
//
//	GET /                            the page
//	GET /page/<file>                 the page's files, all of which are embedded
//	GET /page/state?revision=N       one line of JSON (stateChange) for each change;
//	                                 the first line contains all pods unless N is
//	                                 the newest revision; the response ends after
//	                                 streamTimeout, and the page then requests it again
//	GET /page/usage                  server.Usage
//	GET /page/events?after=N         eventList
//	GET /page/logs?namespace=&pod=…  like /v1/logs of server.API
//
// The package does not authorize requests. Every client that can connect to the endpoint gets the
// whole page.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/server"
)

//go:embed files
var embeddedFiles embed.FS

// A Page is the web page of one node. Its fields must not change after Handler is called.
type Page struct {
	State server.Viewer // required
	// PodColumns returns the columns READY, STATUS and RESTARTS of a pod as kubectl prints
	// them. It is required.
	PodColumns func(*v1.Pod, time.Time) (ready, status, restarts string)
	// Logs reads the logs. If it is nil, the page shows no logs. It then also redacts pods and
	// problems with server.RedactPodView and server.RedactProblem. Their texts can quote the output of
	// a program, which only users with access to logs may see.
	Logs server.LogReader
	// Events contains the events. If it is nil, the page shows no events.
	Events server.EventLog
	// Meter measures resource usage. If it is nil, the page shows no usage.
	Meter server.Meter
}

// Handler returns a handler for the paths that the package documentation lists. It may be called
// several times.
func (p *Page) Handler() http.Handler {
	files, err := fs.Sub(embeddedFiles, "files")
	if err != nil {
		panic(err) // cannot happen, because the directory is embedded above
	}
	mux := http.NewServeMux()
	assets := http.FileServerFS(files)
	mux.Handle("GET /{$}", assets)
	mux.Handle("GET /page/", http.StripPrefix("/page", assets))
	mux.HandleFunc("GET /page/state", p.state)
	if p.Meter != nil {
		mux.HandleFunc("GET /page/usage", p.usage)
	}
	if p.Events != nil {
		mux.HandleFunc("GET /page/events", p.events)
	}
	if p.Logs != nil {
		mux.HandleFunc("GET /page/logs", func(w http.ResponseWriter, r *http.Request) { server.ServeLogs(w, r, p.Logs) })
	}
	return withHeaders(mux, newSecurityPolicy(files))
}

// newSecurityPolicy returns a Content-Security-Policy. With this policy, the browser runs and
// fetches only the page's own files. Other pages cannot embed the page in a frame.
func newSecurityPolicy(files fs.FS) string {
	index, err := fs.ReadFile(files, "index.html")
	if err != nil {
		panic(err) // cannot happen, because the file is embedded
	}
	_, scriptAndRest, _ := bytes.Cut(index, []byte(`<script type="module">`))
	script, _, _ := bytes.Cut(scriptAndRest, []byte("</script>"))
	sum := sha256.Sum256(script)
	return "default-src 'none'; script-src 'self' 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; " +
		"style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// withHeaders returns h with the security headers of the page.
func withHeaders(h http.Handler, policy string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-cache")
		h.ServeHTTP(w, r)
	})
}

func (p *Page) usage(w http.ResponseWriter, r *http.Request) {
	u, err := p.Meter.Usage(r.Context())
	if err != nil {
		http.Error(w, err.Error(), server.HTTPStatus(err))
		return
	}
	server.Reply(w, http.StatusOK, u)
}
