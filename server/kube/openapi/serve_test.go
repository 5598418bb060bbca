package openapi

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sendTo sends a request with headers, given as name and value pairs.
func sendTo(h http.Handler, method, url string, header ...string) *http.Response {
	r := httptest.NewRequest(method, url, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// urls returns the URLs in the index, by group version.
func urls(t *testing.T, h http.Handler) map[string]string {
	t.Helper()
	var index struct {
		Paths map[string]struct {
			ServerRelativeURL string
		}
	}
	if err := json.Unmarshal([]byte(body(t, sendTo(h, "GET", "/openapi/v3"))), &index); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for name, at := range index.Paths {
		all[name] = at.ServerRelativeURL
	}
	return all
}

func TestHandler_Index(t *testing.T) {
	h := New("v1.2.3", served())
	all := urls(t, h)
	for _, name := range []string{"api/v1", "apis/coordination.k8s.io/v1"} {
		r := sendTo(h, "GET", all[name], "Accept", "application/json")
		if r.StatusCode != 200 || !strings.Contains(r.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s at %q: got %s with Cache-Control %q, want 200 and immutable", name, all[name], r.Status, r.Header.Get("Cache-Control"))
		}
		var d Document
		if err := json.Unmarshal([]byte(body(t, r)), &d); err != nil || d.OpenAPI != "3.0.0" {
			t.Errorf("%s: got version %q and error %v, want 3.0.0", name, d.OpenAPI, err)
		}
	}
	if len(all) != 2 {
		t.Errorf("got index %v, want 2 documents", all)
	}
}

func TestHandler(t *testing.T) {
	h := New("v1.2.3", served())
	core := urls(t, h)["api/v1"]
	tag := sendTo(h, "GET", core).Header.Get("ETag")
	for _, c := range []struct {
		method, url string
		header      []string
		status      int
		media       string
	}{
		{"GET", "/openapi/v3", nil, 200, mediaJSON},
		{"HEAD", "/openapi/v3", nil, 200, mediaJSON},
		{"GET", "/openapi/v3/api/v1", nil, 200, mediaJSON},
		{"GET", "/openapi/v3/api/v1", []string{"Accept", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"}, 406, mediaJSON},
		{"GET", "/openapi/v3/api/v1", []string{"Accept", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf, application/json"}, 200, mediaJSON},
		{"GET", "/openapi/v3/api/v1", []string{"If-None-Match", tag}, 304, ""},
		{"GET", "/openapi/v3/api/v1", []string{"If-None-Match", `"other", W/` + tag}, 304, ""},
		{"GET", "/openapi/v3/api/v1", []string{"If-None-Match", `"other"`}, 200, mediaJSON},
		{"GET", "/openapi/v3/api/v1?hash=OLD", nil, 301, "text/html; charset=utf-8"},
		{"GET", "/openapi/v3/api/v2", nil, 404, mediaJSON},
		{"GET", "/openapi/v3/", nil, 404, mediaJSON},
		{"GET", "/openapi/v3/../v2", nil, 404, mediaJSON},
		{"GET", "/openapi", nil, 404, mediaJSON},
		{"POST", "/openapi/v3", nil, 405, mediaJSON},
		{"GET", "/openapi/v2", nil, 200, mediaProto2},
		{"GET", "/openapi/v2", []string{"Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}, 200, mediaProto2},
	} {
		r := sendTo(h, c.method, c.url, c.header...)
		if r.StatusCode != c.status || r.Header.Get("Content-Type") != c.media {
			t.Errorf("%s %s %q: got %d %s, want %d %s", c.method, c.url, c.header, r.StatusCode, r.Header.Get("Content-Type"), c.status, c.media)
		}
		if c.status >= 400 {
			var s metav1.Status
			if err := json.Unmarshal([]byte(body(t, r)), &s); err != nil || s.Kind != "Status" || int(s.Code) != c.status || s.Message == "" {
				t.Errorf("%s %s: got %+v and error %v, want a Status with code %d", c.method, c.url, s, err, c.status)
			}
		}
	}
	if to := sendTo(h, "GET", "/openapi/v3/api/v1?hash=OLD").Header.Get("Location"); to != core {
		t.Errorf("URL with an old hash: redirected to %q, want %q", to, core)
	}
}

func TestHandler_Encodings(t *testing.T) {
	h := New("v1.2.3", served())
	plain := body(t, sendTo(h, "GET", "/openapi/v3/api/v1"))
	for coding, want := range map[string]string{"gzip": "gzip", "br, gzip;q=0.8": "gzip", "gzip;q=0": "", "identity": ""} {
		r := sendTo(h, "GET", "/openapi/v3/api/v1", "Accept-Encoding", coding)
		if got := r.Header.Get("Content-Encoding"); got != want {
			t.Errorf("%q: got %q, want %q", coding, got, want)
			continue
		}
		if want == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			r.Body = io.NopCloser(z)
		}
		if body(t, r) != plain {
			t.Errorf("Accept-Encoding %q: got a document that differs from the one without an encoding", coding)
		}
	}
}

// TestHandler_Hashes checks that the hash of a document depends on the content only, so that the
// cache of a client remains valid when podd is restarted.
func TestHandler_Hashes(t *testing.T) {
	first := New("v1.2.3", served())
	for name, url := range urls(t, New("v1.2.3", served())) {
		if url != urls(t, first)[name] {
			t.Errorf("%s: got %s, want %s", name, url, urls(t, first)[name])
		}
	}
	if urls(t, first)["api/v1"] == urls(t, New("v1.2.3", served()[1:]))["api/v1"] {
		t.Error("got the same hash without one of the resources, want another hash")
	}
}

// TestHandler_Memory checks that the handler stores documents compressed.
func TestHandler_Memory(t *testing.T) {
	h := New("v1.2.3", served())
	size := len(h.documents().index.gzipped)
	for _, k := range h.documents().byName {
		size += len(k.gzipped)
	}
	t.Logf("cached: %d bytes", size)
	if size > 120<<10 {
		t.Errorf("cached: got %d bytes, want at most 120 KiB", size)
	}
}

// BenchmarkNew generates all documents. The first kubectl explain waits until this is done.
func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		New("v1.2.3", served()).documents()
	}
}
