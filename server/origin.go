package server

import (
	"net/http"
	"net/url"
	"strings"
)

// OwnOrigin serves h to everyone but pages of another origin in a browser: with
// the user's client certificate, or through a forwarded socket, they could do
// what the user may. A link to a page of ours from elsewhere is no such page.
func OwnOrigin(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !ownOrigin(r) {
			http.Error(w, "podd answers no page of another origin", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// OwnOriginOrForwarded is OwnOrigin but for what an API server passes on, with the
// headers of its own clients: it says for whom, which no page can have a browser do
// that is not allowed to first. It is for nodes of a cluster, before which nobody
// else stands.
func OwnOriginOrForwarded(h http.Handler) http.Handler {
	own := OwnOrigin(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Forwarded-For") != "" {
			h.ServeHTTP(w, r)
			return
		}
		own.ServeHTTP(w, r)
	})
}

func ownOrigin(r *http.Request) bool {
	if r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Upgrade") == "" {
		return true
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return true
	case "":
	default:
		return false
	}
	// Older browsers, and WebSockets of some, tell only the origin.
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && strings.EqualFold(u.Host, r.Host)
}
