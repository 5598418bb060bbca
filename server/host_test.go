package server

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestIsKnownHost(t *testing.T) {
	for _, c := range []struct {
		host, local string
		want        bool
		userAgent   string
	}{
		{"localhost:10255", "127.0.0.1", true, ""},
		{"", "127.0.0.1", true, ""},
		{"127.0.0.2", "127.0.0.2", true, ""},
		{"[::1]:10255", "::1", true, ""},
		{"192.0.2.7:10255", "192.0.2.7", true, ""},
		{"192.0.2.8:10255", "192.0.2.7", false, ""},
		{"node", "192.0.2.7", true, ""},
		{"rebound.example", "127.0.0.1", false, ""},
		// The unspecified address means this host. It can be the value of the field "address" of the configuration.
		{"0.0.0.0:10255", "127.0.0.1", true, ""},
		{"[::]:10255", "::1", true, ""},
		{"0.0.0.0:10255", "192.0.2.7", false, ""},
		{"0.0.0.0:10255", "127.0.0.1", false, "Mozilla/5.0"},
		{"0.0.0.0.example", "127.0.0.1", false, ""},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = c.host
		r.Header.Set("User-Agent", c.userAgent)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.ParseIP(c.local)}))
		if got := isKnownHost(r, "node"); got != c.want {
			t.Errorf("host %q, connection to %s: got %t, want %t", c.host, c.local, got, c.want)
		}
	}
}
