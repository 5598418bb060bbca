package kube

import (
	"bufio"
	"net"
	"net/http"
	"strings"

	"podd/server"
	"podd/server/kube/request"
	"podd/server/kube/resource"
)

// proxy serves a request for the subresource proxy of the node by calling the handler of the
// kubelet's API. Package auth has already authorized the request as a request for the same path of
// the kubelet's API.
func (a *API) proxy(w http.ResponseWriter, r *http.Request, res *resource.Definition, i request.Info) {
	if _, err := a.readHandler.Find(r.Context(), res, server.Key{Name: i.Name}); err != nil {
		server.ReplyStatus(w, err)
		return
	}
	prefix := strings.TrimSuffix(r.URL.Path, i.ProxiedPath)
	http.StripPrefix(prefix, a.NodeProxy).ServeHTTP(&redirectPrefixer{w, prefix}, r)
}

// A redirectPrefixer is a ResponseWriter that adds a prefix to the paths of redirects.
type redirectPrefixer struct {
	http.ResponseWriter
	prefix string
}

// WriteHeader implements http.ResponseWriter.
func (b *redirectPrefixer) WriteHeader(status int) {
	if location := b.Header().Get("Location"); strings.HasPrefix(location, "/") {
		b.Header().Set("Location", b.prefix+location)
	}
	b.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the underlying ResponseWriter for http.ResponseController.
func (b *redirectPrefixer) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// Flush implements http.Flusher.
func (b *redirectPrefixer) Flush() { http.NewResponseController(b.ResponseWriter).Flush() }

// Hijack implements http.Hijacker, for streams.
func (b *redirectPrefixer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(b.ResponseWriter).Hijack()
}
