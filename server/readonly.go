package server

import (
	"net/http"
	"strings"

	"podd/manifest/redact"
)

// ReadOnlyHandler serves the paths of the kubelet's read-only port whose content every client that
// can connect may read:
//
//	/pods               a v1.PodList of all pods with their status, as redact.Pod returns them
//	/stats/  /metrics   resource usage and podd's metrics, as the kubelet serves them
//	/  /page/           the page
//	/healthz  /livez  /readyz   as Health
//
// DebugPaths are reported as disabled. The response for other paths is 404. A request with an
// unknown Host header is rejected with 421; see RequireKnownHost.
type ReadOnlyHandler struct {
	State interface{ View() *View } // required
	// Health serves /healthz and paths below it, /livez and /readyz; required.
	Health *Health
	// Page serves / and /page/; required.
	Page http.Handler
	// Stats serves /stats/ and /metrics; required.
	Stats http.Handler
	// Node is the name of the node. The Host header may be this name, localhost, a loopback address
	// or the local address of the connection.
	Node string

	pods PodListCache
}

// ServeHTTP implements http.Handler.
func (s *ReadOnlyHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	RequireSameOrigin(RequireKnownHost(s.Node, http.HandlerFunc(s.serve))).ServeHTTP(w, r)
}

func (s *ReadOnlyHandler) serve(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if isDebugPath(path) {
		w.Header().Set("Connection", "close") // close the connection, because the request body is not read
		DebuggingDisabledHandler(w, r)
		return
	}
	// Some clients use POST for statistics. The body is not read.
	if path == "/stats/summary" && r.Method == http.MethodPost {
		w.Header().Set("Connection", "close")
		s.Stats.ServeHTTP(w, r)
		return
	}
	if !checkReadOnlyMethod(w, r) {
		return
	}
	switch {
	case path == "/pods", path == "/pods/": // monitoring agents use both paths
		s.pods.reply(w, s.State.View(), redact.Pod)
	case isHealthCheck(path):
		s.Health.ServeHTTP(w, r)
	case strings.HasPrefix(path, "/stats/"), path == "/metrics", strings.HasPrefix(path, "/metrics/"):
		s.Stats.ServeHTTP(w, r)
	case path == "/", strings.HasPrefix(path, "/page/"):
		s.Page.ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}
