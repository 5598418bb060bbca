package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestRequireSameOrigin(t *testing.T) {
	served := RequireSameOrigin(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, tt := range []struct {
		name, method string
		head         map[string]string
		want         int
	}{
		{"not a browser", "POST", nil, 200},
		{"the page's own script", "GET", map[string]string{"Sec-Fetch-Site": "same-origin"}, 200},
		{"typed in", "GET", map[string]string{"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}, 200},
		{"a link from elsewhere", "GET", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200},
		{"a form from elsewhere", "POST", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403},
		{"a script of another site", "GET", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403},
		{"a script of another host of the site", "GET", map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		{"a WebSocket of another site", "GET", map[string]string{"Origin": "https://evil.example", "Upgrade": "websocket"}, 403},
		{"a WebSocket of another site, as a navigation", "GET", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Upgrade": "websocket"}, 403},
		{"the page's own WebSocket", "GET", map[string]string{"Origin": "https://node1:10250", "Upgrade": "websocket"}, 200},
		{"a sandboxed frame", "POST", map[string]string{"Origin": "null"}, 403},
	} {
		r := httptest.NewRequest(tt.method, "https://node1:10250/exec/default/a/b", nil)
		for key, value := range tt.head {
			r.Header.Set(key, value)
		}
		w := httptest.NewRecorder()
		served.ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, w.Code, tt.want)
		}
	}
}

func TestRequireSameOriginOrForwarded(t *testing.T) {
	served := RequireSameOriginOrForwarded(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, tt := range []struct {
		name, forwarded string
		want            int
	}{
		{"a WebSocket of another site", "", 403},
		{"one that an API server forwards", "192.0.2.7", 200},
	} {
		r := httptest.NewRequest("GET", "https://node1:10250/exec/default/a/b", nil)
		r.Header.Set("Origin", "http://localhost")
		r.Header.Set("Upgrade", "websocket")
		if tt.forwarded != "" {
			r.Header.Set("X-Forwarded-For", tt.forwarded)
		}
		w := httptest.NewRecorder()
		served.ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, w.Code, tt.want)
		}
	}
}
