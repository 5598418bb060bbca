package server

import (
	"net/http"
	"net/url"
	"strings"
)

// RequireSameOrigin returns a handler that rejects requests from browser pages of another origin.
// The browser would send these requests with the user's client certificate or through a forwarded
// socket, so that the page would have the user's permissions. A request that follows a link on
// another page is served.
func RequireSameOrigin(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isAllowedOrigin(r) {
			http.Error(w, "requests from pages of another origin are rejected", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// RequireSameOriginOrForwarded works like RequireSameOrigin, but also serves requests that an API
// server forwards with the headers of the original client. Forwarded requests have the header
// X-Forwarded-For. A browser sends this header for a page of another origin only after a preflight
// request, which podd does not allow. Use RequireSameOriginOrForwarded only on a node of a cluster,
// where no other proxy forwards requests to the node.
func RequireSameOriginOrForwarded(h http.Handler) http.Handler {
	sameOriginHandler := RequireSameOrigin(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if IsForwarded(r) {
			h.ServeHTTP(w, r)
			return
		}
		sameOriginHandler.ServeHTTP(w, r)
	})
}

// IsForwarded reports whether a proxy, such as a cluster's API server, forwarded r. The
// credential of a forwarded request belongs to the proxy and not to the original client.
func IsForwarded(r *http.Request) bool { return len(r.Header.Values("X-Forwarded-For")) > 0 }

// IsFromBrowser reports whether r may come from a browser. A page of another origin may have caused
// such a request. Browsers send Origin and Sec-Fetch headers only with some requests. For example,
// a GET of a page that is neither on localhost nor served with TLS has none of these headers.
// IsFromBrowser therefore also checks Accept-Language. Browsers always send this header, pages can
// change but not remove it, and other programs rarely send it.
func IsFromBrowser(r *http.Request) bool {
	for name := range r.Header {
		if name == "Origin" || name == "Accept-Language" || strings.HasPrefix(name, "Sec-Fetch-") {
			return true
		}
	}
	return strings.HasPrefix(r.UserAgent(), "Mozilla/")
}

// rejectBrowsers returns a handler that rejects requests from browsers.
func rejectBrowsers(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if IsFromBrowser(r) {
			replyError(w, &Error{Status: http.StatusForbidden, Message: "this path is only for programs other than browsers: requests from browsers are rejected, because otherwise a web page could get a credential"})
			return
		}
		h(w, r)
	}
}

// isAllowedOrigin reports whether r may be served. It may be served if it does not come from a page
// of another origin, or if it follows a link.
func isAllowedOrigin(r *http.Request) bool {
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
	// Check Origin, because older browsers do not send Sec-Fetch-Site, and some browsers do not
	// send it for WebSockets.
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && strings.EqualFold(u.Host, r.Host)
}
