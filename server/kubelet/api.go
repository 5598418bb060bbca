// Package kubelet serves the kubelet's API for its usual clients: an API server,
// kubectl through an API server, monitoring systems and kubeletctl.
//
//	GET       /healthz…  /livez  /readyz  /pods  /runningpods/  /configz  /flagz  /statusz
//	GET POST  /stats/summary          GET /metrics  /metrics/{cadvisor,probes,resource,slis}  /spec/
//	GET       /containerLogs/{namespace}/{pod}/{container}
//	GET POST  /exec/{namespace}/{pod}[/{uid}]/{container}     /attach/…
//	GET POST  /portForward/{namespace}/{pod}[/{uid}]
//	POST      /run/{namespace}/{pod}[/{uid}]/{container}      /checkpoint/{namespace}/{pod}/{container}
//	GET       /logs/…  /debug/pprof/…                         PUT /debug/flags/v
//
// The package does not authorize requests. Package auth must authorize them before they reach the
// handler.
package kubelet

import (
	"context"
	"io/fs"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/server"
	"podd/server/nodelog"
)

// API is the API that the kubelet serves on port 10250. All fields are required
// unless their comment states otherwise. They must not change after Handler is
// called.
type API struct {
	State   server.Viewer
	Logs    server.LogReader
	Runtime Runtime
	Health  http.Handler // serves /healthz and paths below it, /livez and /readyz
	Stats   http.Handler // serves /stats/, /metrics and /spec/
	// Config returns the configuration in effect, of type kubelet.config.k8s.io/v1beta1, without
	// secrets. Each request of /configz calls it. It must be safe for concurrent use.
	Config func(context.Context) any
	// Flags returns the values of podd's command-line flags by name, without secrets. Each request of
	// /flagz calls it. It must be safe for concurrent use.
	Flags func() map[string]string
	// KubernetesRelease is the release of the kubelet that podd is compatible with, such
	// as "1.37", for /statusz.
	KubernetesRelease string
	// StartTime is the time at which podd started, for /statusz.
	StartTime time.Time
	// MirrorUID returns the UID of the mirror pod of a static pod, or "" if there is none. It is nil
	// without a cluster. Clients may use this UID, which the API server shows, in paths.
	MirrorUID func(types.NamespacedName) types.UID
	// SystemLogs is the directory /var/log, which /logs serves. If it is nil, /logs is disabled.
	SystemLogs fs.FS
	// SystemLogQueryEnabled enables queries for the logs of services at /logs.
	SystemLogQueryEnabled bool
	// CheckpointDir is the absolute path of the directory for checkpoints.
	CheckpointDir string
	// DebuggingEnabled enables the endpoints that run processes in containers, show the output of
	// containers or show podd's internal state. ProfilingEnabled enables /debug/pprof if
	// DebuggingEnabled is also set. A disabled endpoint responds with the status 405 or 404, as in
	// the kubelet.
	DebuggingEnabled, ProfilingEnabled bool
	// SetVerbosity changes podd's log level. If it is nil, /debug/flags/v is disabled.
	SetVerbosity func(level int)

	pods server.PodListCache
}

// Runtime runs commands in containers and connects to their streams. The parameters container and
// sandbox are IDs of running containers and of sandboxes in the View. Implementations must be safe
// for concurrent use.
type Runtime interface {
	// Exec, Attach and PortForward return a URL of the runtime's streaming server. The
	// URL can be used once, by a client that upgrades the connection to SPDY or
	// WebSocket.
	Exec(ctx context.Context, container string, command []string, s Streams) (string, error)
	Attach(ctx context.Context, container string, s Streams) (string, error)
	PortForward(ctx context.Context, sandbox string, ports []int32) (string, error)
	// Run runs a command until it exits and returns its output, stdout before
	// stderr.
	Run(ctx context.Context, container string, command []string) (output []byte, exitCode int32, err error)
	// Checkpoint writes the state of a container to a file. A timeout of zero means
	// no timeout.
	Checkpoint(ctx context.Context, container, file string, timeout time.Duration) error
}

// Streams are the streams of a container or command that a client attaches to.
type Streams struct{ Stdin, Stdout, Stderr, TTY bool }

// Handler returns an http.Handler for the API. It may be called more than once.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/healthz/", "/livez", "/readyz"} {
		mux.Handle(path, a.Health)
	}
	mux.HandleFunc("GET /pods", a.podList)
	mux.HandleFunc("GET /pods/{$}", a.podList)
	for _, path := range []string{"GET /stats/", "POST /stats/", "GET /metrics", "GET /metrics/", "GET /spec/"} {
		mux.Handle(path, a.Stats)
	}
	a.handleDebugging(mux)
	return mux
}

// handleDebugging registers the endpoints that enableDebuggingHandlers controls.
func (a *API) handleDebugging(mux *http.ServeMux) {
	if !a.DebuggingEnabled {
		for _, path := range server.DebugPaths {
			mux.Handle(path, server.DebuggingDisabledHandler)
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
		mux.Handle("/logs/", server.DisabledHandler("logs endpoint is"))
	} else {
		mux.Handle("GET /logs/", withSandboxPolicy(http.StripPrefix("/logs", nodelog.NewHandler(a.SystemLogs, a.SystemLogQueryEnabled))))
	}
	mux.HandleFunc("GET /configz", a.configz)
	mux.HandleFunc("GET /flagz", a.flagz)
	mux.HandleFunc("GET /statusz", a.statusz)
	mux.HandleFunc("POST /checkpoint/{namespace}/{pod}/{container}", a.checkpoint)
	a.handleInternals(mux)
}

// withSandboxPolicy makes browsers ignore scripts and other active content in responses,
// because programs can write markup into their logs.
func withSandboxPolicy(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		h.ServeHTTP(w, r)
	})
}
