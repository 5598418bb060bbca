// Package page shows the node to a browser: its pods, what is to be mended,
// what is used, what happened, and the logs of containers as they come.
//
//	GET /                            the page
//	GET /page/<file>                 what it is made of; embedded, nothing from elsewhere
//	GET /page/state?revision=N       a line of Change for every change; the first
//	                                 is whole unless N is the newest
//	                                 ends after turn, and is asked for again
//	GET /page/usage                  server.Usage
//	GET /page/events?after=N         Events
//	GET /page/logs?namespace=&pod=…  as /v1/logs, if the page has logs
//
// It knows no users: whoever reaches it sees all of it.
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
var embedded embed.FS

// Page is the page of a node. No field may change once it serves.
type Page struct {
	State server.Viewer // required
	// Words are a pod's READY, STATUS and RESTARTS as kubectl prints them; required.
	Words func(*v1.Pod, time.Time) (ready, status, restarts string)
	// Logs are shown, and what containers said of their end; nil: neither is.
	Logs server.LogReader
	// Events are what happened; nil: not shown.
	Events server.EventLog
	// Meter tells what node and pods use; nil: not shown.
	Meter server.Meter
}

// Handler serves p. It can be used any number of times.
func (p *Page) Handler() http.Handler {
	files, err := fs.Sub(embedded, "files")
	if err != nil {
		panic(err) // the name is embedded above
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
	return guarded(mux, policy(files))
}

// policy has a browser run and fetch nothing but the page's own, and show it in
// no other's frame.
func policy(files fs.FS) string {
	index, err := fs.ReadFile(files, "index.html")
	if err != nil {
		panic(err) // it is embedded
	}
	_, rest, _ := bytes.Cut(index, []byte(`<script type="module">`))
	script, _, _ := bytes.Cut(rest, []byte("</script>"))
	sum := sha256.Sum256(script)
	return "default-src 'none'; script-src 'self' 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; " +
		"style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

func guarded(h http.Handler, policy string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", policy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("Cache-Control", "no-cache")
		h.ServeHTTP(w, r)
	})
}

func (p *Page) usage(w http.ResponseWriter, r *http.Request) {
	u, err := p.Meter.Usage(r.Context())
	if err != nil {
		http.Error(w, err.Error(), server.StatusOf(err))
		return
	}
	server.Reply(w, http.StatusOK, u)
}
