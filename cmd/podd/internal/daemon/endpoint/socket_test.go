package endpoint

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestRejectForeignHosts checks that a browser must use a host name that an attacker cannot rebind,
// and that programs may use any host name without a dot.
func TestRejectForeignHosts(t *testing.T) {
	h := rejectForeignHosts(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	const chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"
	for _, c := range []struct {
		name, host string
		header     http.Header
		want       int
	}{
		{"podd's own verbs", "podd", nil, 200},
		{"curl", "x", http.Header{"User-Agent": {"curl/8.5.0"}}, 200},
		{"curl with a public name", "evil.example", nil, 421},
		{"a browser at localhost", "localhost:8080", http.Header{"Sec-Fetch-Site": {"none"}, "Sec-Fetch-Mode": {"navigate"}, "User-Agent": {chrome}, "Accept-Language": {"en"}}, 200},
		{"the page's own script", "localhost:8080", http.Header{"Sec-Fetch-Site": {"same-origin"}, "User-Agent": {chrome}}, 200},
		{"a browser at 127.0.0.1", "127.0.0.1:8080", http.Header{"Origin": {"http://127.0.0.1:8080"}}, 200},
		{"rebinding to the node's name", "n1:8080", http.Header{"Origin": {"http://n1:8080"}, "Upgrade": {"websocket"}}, 421},
		{"rebinding, POST", "wpad:8080", http.Header{"Origin": {"http://wpad:8080"}}, 421},
		{"rebinding, sandboxed", "wpad:8080", http.Header{"Origin": {"null"}}, 421},
		{"rebinding, empty origin", "wpad:8080", http.Header{"Origin": {""}}, 421},
		{"rebinding, fetch metadata", "wpad:8080", http.Header{"Sec-Fetch-Site": {"same-origin"}}, 421},
		{"rebinding, navigation", "wpad:8080", http.Header{"Sec-Fetch-Mode": {"navigate"}}, 421},
		{"rebinding to the name of podd's verbs", "podd:8080", http.Header{"Origin": {"http://podd:8080"}}, 421},
		{"rebinding, GET of a browser without Origin and Sec-Fetch headers", "wpad:8080", http.Header{"User-Agent": {chrome}, "Accept-Language": {"en"}}, 421},
		{"rebinding, GET with a User-Agent that the page has set", "wpad:8080", http.Header{"User-Agent": {"x"}, "Accept-Language": {""}}, 421},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/api/v1/secrets", nil)
		r.Host = c.host
		for name, values := range c.header {
			r.Header[name] = values
		}
		if h.ServeHTTP(w, r); w.Code != c.want {
			t.Errorf("%s: got status %d, want %d", c.name, w.Code, c.want)
		}
	}
}
