package server

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// RequireKnownHost returns a handler that serves a request only if its Host header is a name or
// address of this host, or nodeName. Other requests are rejected with 421, because they can come
// from a web page that uses DNS rebinding. In this case the name of the page's site resolves to
// this host, and a browser on this host sends the page's requests to podd.
//
// A browser may use the node's name only if it is a DNS name. For a name without a dot (LLMNR) or
// below .local (mDNS), every host on the browser's network can respond to the browser's query.
func RequireKnownHost(nodeName string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isKnownHost(r, nodeName) {
			http.Error(w, "unknown host name in the URL; use localhost or an address of this host; programs other than browsers can also use the node's name", http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// isKnownHost reports whether r was sent to a name or address of this host. A request
// without Host header, which HTTP/1.0 allows, is accepted, because browsers always send
// the header.
func isKnownHost(r *http.Request, nodeName string) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	switch host {
	case "", "localhost":
		return true
	case strings.ToLower(nodeName):
		return isDNSName(host) || !IsFromBrowser(r)
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return false
	}
	// The unspecified address means this host. Requests of browsers are rejected, because browsers
	// protect this address from other sites less than loopback addresses.
	if ip.IsUnspecified() {
		return localIP(r).IsLoopback() && !IsFromBrowser(r)
	}
	return ip.Unmap().IsLoopback() || ip.Unmap() == localIP(r)
}

// isDNSName reports whether host is a name that is resolved only with DNS.
func isDNSName(host string) bool {
	return strings.Contains(host, ".") && !strings.HasSuffix(host, ".local")
}

// localIP returns the local address of the connection, or the zero Addr if it is
// unknown.
func localIP(r *http.Request) netip.Addr {
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
