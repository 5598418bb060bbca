package server

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// KnownHosts has h answer only what was sent to one of this machine's own names,
// node among them. A web page in a browser here can make it send requests to a
// name of the page's own that resolves to this machine; that is answered 421.
func KnownHosts(node string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !knownHost(r, node) {
			http.Error(w, "this is podd; ask for it as localhost, its address or the node's name", http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// knownHost says whether r was sent to one of our own names. No Host at all,
// as HTTP/1.0 allows, is fine: a browser always sends one.
func knownHost(r *http.Request, node string) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	switch host {
	case "", "localhost", strings.ToLower(node):
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return false
	}
	return ip.Unmap().IsLoopback() || ip.Unmap() == localIP(r)
}

// localIP is the address of ours that the client connected to; zero when that
// is not known.
func localIP(r *http.Request) netip.Addr {
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
