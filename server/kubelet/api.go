// Package kubelet serves the kubelet's API, for those who know a node by it: an
// apiserver, kubectl through it, monitoring, kubeletctl.
//
//	GET       /healthz…  /livez  /readyz  /pods  /runningpods/  /configz  /flagz  /statusz
//	GET POST  /stats/summary          GET /metrics  /metrics/{cadvisor,probes,resource,slis}
//	GET       /containerLogs/{namespace}/{pod}/{container}
//	GET POST  /exec/{namespace}/{pod}[/{uid}]/{container}     /attach/…
//	GET POST  /portForward/{namespace}/{pod}[/{uid}]
//	POST      /run/{namespace}/{pod}[/{uid}]/{container}      /checkpoint/{namespace}/{pod}/{container}
//	GET       /logs/…  /debug/pprof/…                         PUT /debug/flags/v
//
// It knows no users: whoever it is given to may do everything, see package auth.
package kubelet

import (
	"context"
	"io/fs"
	"net/http"
	"time"

	"podd/server"
)

// API is what the kubelet serves on port 10250. All fields are required but
// those that say otherwise; none may change once it serves.
type API struct {
	State   server.Viewer
	Logs    server.LogReader
	Runtime Runtime
	Health  http.Handler // of /healthz and below, /livez and /readyz
	Stats   http.Handler // of /stats/ and /metrics
	// Config is the kubelet.config.k8s.io/v1beta1 in force, without secrets, for
	// /configz.
	Config any
	// Flags are those podd was started with and their values, for /flagz.
	Flags []Flag
	// Started is when podd was, for /statusz.
	Started time.Time
	// SystemLogs is /var/log, for /logs; nil: disabled.
	SystemLogs fs.FS
	// Checkpoints is the absolute directory that checkpoints are written to.
	Checkpoints string
	// Debugging serves what runs something in containers or shows their output, and
	// podd's own inside, Profiling some of that; else they are disabled or, as of a
	// kubelet, not there.
	Debugging, Profiling bool
	// SetVerbosity changes how much podd logs; nil: disabled.
	SetVerbosity func(level int)

	pods server.PodLists
}

// Flag is a flag and its value.
type Flag struct{ Name, Value string }

// Runtime runs in containers. Ids are those of running containers and sandboxes
// as the View names them. Implementations must be safe for concurrent use.
type Runtime interface {
	// Exec, Attach and PortForward return the URL at which the runtime serves
	// one such stream, once, to who upgrades to SPDY or WebSocket.
	Exec(ctx context.Context, container string, command []string, s Streams) (string, error)
	Attach(ctx context.Context, container string, s Streams) (string, error)
	PortForward(ctx context.Context, sandbox string, ports []int32) (string, error)
	// Run runs a command to its end and returns what it wrote, its stdout first.
	Run(ctx context.Context, container string, command []string) (output []byte, exitCode int32, err error)
	// Checkpoint writes a container's state to a file; a timeout of zero is none.
	Checkpoint(ctx context.Context, container, file string, timeout time.Duration) error
}

// Streams are those of a command or container that a client takes part in.
type Streams struct{ Stdin, Stdout, Stderr, TTY bool }

// Handler serves a. It can be used any number of times.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/healthz/", "/livez", "/readyz"} {
		mux.Handle(path, a.Health)
	}
	mux.HandleFunc("GET /pods", a.podList)
	mux.HandleFunc("GET /pods/{$}", a.podList)
	for _, path := range []string{"GET /stats/", "POST /stats/", "GET /metrics", "GET /metrics/"} {
		mux.Handle(path, a.Stats)
	}
	a.debugging(mux)
	return mux
}

// debugging has what enableDebuggingHandlers governs.
func (a *API) debugging(mux *http.ServeMux) {
	if !a.Debugging {
		for _, path := range server.Debugging {
			mux.Handle(path, server.DebuggingDisabled)
		}
		return
	}
	mux.HandleFunc("GET /runningpods/{$}", a.runningPods)
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", a.containerLogs)
	for _, method := range []string{"GET ", "POST "} {
		mux.HandleFunc(method+"/exec/{namespace}/{pod}/{container}", a.exec)
		mux.HandleFunc(method+"/exec/{namespace}/{pod}/{uid}/{container}", a.exec)
		mux.HandleFunc(method+"/attach/{namespace}/{pod}/{container}", a.attach)
		mux.HandleFunc(method+"/attach/{namespace}/{pod}/{uid}/{container}", a.attach)
		mux.HandleFunc(method+"/portForward/{namespace}/{pod}", a.portForward)
		mux.HandleFunc(method+"/portForward/{namespace}/{pod}/{uid}", a.portForward)
	}
	mux.HandleFunc("POST /run/{namespace}/{pod}/{container}", a.run)
	mux.HandleFunc("POST /run/{namespace}/{pod}/{uid}/{container}", a.run)
	if a.SystemLogs == nil {
		mux.Handle("/logs/", server.Disabled("logs endpoint is"))
	} else {
		mux.Handle("GET /logs/", inert(http.StripPrefix("/logs", http.FileServerFS(a.SystemLogs))))
	}
	mux.HandleFunc("GET /configz", a.configz)
	mux.HandleFunc("GET /flagz", a.flagz)
	mux.HandleFunc("GET /statusz", a.statusz)
	mux.HandleFunc("POST /checkpoint/{namespace}/{pod}/{container}", a.checkpoint)
	a.inside(mux)
}

// inert has a browser take nothing in an answer for a page of ours: whoever writes
// a log can write markup into it.
func inert(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		h.ServeHTTP(w, r)
	})
}
