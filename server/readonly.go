package server

import (
	"net/http"
	"strings"
)

// ReadOnly is what the kubelet serves on its read-only port, as far as it is
// safe to show to everyone who can connect:
//
//	/pods               a v1.PodList of all pods with their status, without env values
//	/stats/  /metrics   what they use, and what podd did, as the kubelet has it
//	/  /page/           the page
//	/healthz            as Health
//
// What the kubelet calls disabled here is called so, other paths are not found.
// An unknown name in the Host header is answered 421, see KnownHosts.
type ReadOnly struct {
	State interface{ View() *View } // required
	// Health serves /healthz and below; required.
	Health *Health
	// Page serves / and /page/; required.
	Page http.Handler
	// Stats serves /stats/ and /metrics; required.
	Stats http.Handler
	// Node is allowed as Host beside localhost, loopback addresses and the
	// address that the client connected to.
	Node string

	pods PodLists
}

// ServeHTTP implements http.Handler.
func (s *ReadOnly) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	OwnOrigin(KnownHosts(s.Node, http.HandlerFunc(s.serve))).ServeHTTP(w, r)
}

func (s *ReadOnly) serve(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if debugs(path) {
		w.Header().Set("Connection", "close") // and with it a body, unread
		DebuggingDisabled(w, r)
		return
	}
	// Some ask for statistics in this way; nobody reads what they send along.
	if path == "/stats/summary" && r.Method == http.MethodPost {
		w.Header().Set("Connection", "close")
		s.Stats.ServeHTTP(w, r)
		return
	}
	if !readOnlyMethod(w, r) {
		return
	}
	switch {
	case path == "/pods", path == "/pods/": // agents ask in both ways
		s.pods.reply(w, s.State.View(), withoutEnvValues)
	case path == "/healthz", strings.HasPrefix(path, "/healthz/"):
		s.Health.ServeHTTP(w, r)
	case strings.HasPrefix(path, "/stats/"), path == "/metrics", strings.HasPrefix(path, "/metrics/"):
		s.Stats.ServeHTTP(w, r)
	case path == "/", strings.HasPrefix(path, "/page/"):
		s.Page.ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}
