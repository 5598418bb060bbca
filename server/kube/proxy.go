package kube

import (
	"bufio"
	"net"
	"net/http"
	"strings"

	"podd/server"
	"podd/server/kube/request"
)

// proxied are the methods of what the kubelet's API has.
var proxied = []string{"create", "get", "update"}

// proxy answers as the node itself: it is this one, so nothing is sent on. Who
// may what there was asked by package auth, by the path that is left.
func (a *API) proxy(w http.ResponseWriter, r *http.Request, res *resource, i request.Info) {
	if _, err := a.find(r, res, i); err != nil {
		server.ReplyStatus(w, err)
		return
	}
	prefix := strings.TrimSuffix(r.URL.Path, i.Proxied)
	http.StripPrefix(prefix, a.Node).ServeHTTP(&beneath{w, prefix}, r)
}

// beneath has redirects stay below prefix.
type beneath struct {
	http.ResponseWriter
	prefix string
}

// WriteHeader implements http.ResponseWriter.
func (b *beneath) WriteHeader(status int) {
	if to := b.Header().Get("Location"); strings.HasPrefix(to, "/") {
		b.Header().Set("Location", b.prefix+to)
	}
	b.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (b *beneath) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// Flush implements http.Flusher.
func (b *beneath) Flush() { http.NewResponseController(b.ResponseWriter).Flush() }

// Hijack implements http.Hijacker, for streams.
func (b *beneath) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(b.ResponseWriter).Hijack()
}
