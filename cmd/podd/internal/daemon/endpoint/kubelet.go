package endpoint

import (
	"context"
	"crypto/tls"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"podd/cmd/podd/internal/config"
	"podd/manifest"
	"podd/server"
	"podd/server/kubelet"
)

// maxKubeletConns limits the connections of the kubelet API. Clients that follow logs,
// watch or run a shell keep a connection open.
const maxKubeletConns = 2048

// maxRequestLineBytes limits the request line, which contains the command of an exec.
const maxRequestLineBytes = 256 << 10

// kubeletAPIHandler returns the handler of the kubelet API, for clients that are already
// authorized.
func (h *handlers) kubeletAPIHandler() http.Handler {
	a := h.Server.API
	var files fs.FS // nil if the handler is disabled
	if a.EnableSystemLogs {
		files = systemLogs{"/var/log"}
	}
	var setVerbosity func(int) // nil if the handler is disabled
	if a.EnableDebugFlags {
		setVerbosity = h.SetVerbosity
	}
	k := &kubelet.API{
		State: h.State, Logs: h.Logs, Runtime: streamRuntime{h.Runtime}, Health: h.healthHandler(), Stats: h.stats,
		Config: h.configInEffect, Flags: h.RedactedConfig.Flags, StartTime: h.StartTime, KubernetesRelease: manifest.KubernetesRelease(),
		CheckpointDir: filepath.Join(h.RootDir, "checkpoints"), SystemLogs: files, SystemLogQueryEnabled: a.EnableSystemLogQuery,
		DebuggingEnabled: a.EnableDebugging, ProfilingEnabled: a.EnableProfiling, SetVerbosity: setVerbosity,
	}
	if h.Cluster != nil {
		k.MirrorUID = h.Cluster.MirrorUID
	}
	return k.Handler()
}

// configTimeout limits the time that /configz waits for the runtime.
const configTimeout = time.Second

// configInEffect returns the configuration with the socket of the runtime and the cgroup driver that the
// runtime reports. If the runtime does not respond, it returns the configured cgroup driver.
func (h *handlers) configInEffect(ctx context.Context) any {
	k := *h.RedactedConfig.Kubelet
	k.ContainerRuntimeEndpoint = "unix://" + strings.TrimPrefix(h.Runtime.Endpoint(), "unix://")
	ctx, cancel := context.WithTimeout(ctx, configTimeout)
	defer cancel()
	if node, err := h.Runtime.Node(ctx); err == nil && node.CgroupDriver != "" {
		k.CgroupDriver = node.CgroupDriver
	}
	return &k
}

// kubeletServer returns the server of the kubelet API.
func (o *Options) kubeletServer(guard http.Handler, certificate certificateFunc) *server.Server {
	return &server.Server{
		Handler: o.Metrics.CountRequests("readwrite", guard), HandlerMarksAuthenticated: true, AllowsStreams: true, MaxConns: maxKubeletConns, Log: o.Log,
		MaxHeaderBytes: maxRequestLineBytes, TLS: kubeletTLS(o.Server.API, certificate),
	}
}

// kubeletTLS returns the TLS settings of the kubelet API.
func kubeletTLS(a config.KubeletAPI, certificate certificateFunc) *tls.Config {
	return &tls.Config{
		// ClientCAs is not set, because clients send a certificate only if it is from one of the
		// ClientCAs. If there are none, clients send any certificate that they have.
		GetCertificate: certificate, ClientAuth: tls.RequestClientCert,
		MinVersion: a.MinTLS, CipherSuites: a.Ciphers, CurvePreferences: a.Curves,
	}
}
