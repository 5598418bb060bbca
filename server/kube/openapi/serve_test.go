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

// ask answers a request whose headers stand as name, value.
func ask(h http.Handler, method, url string, header ...string) *http.Response {
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

// urls are those of the index, by group version.
func urls(t *testing.T, h http.Handler) map[string]string {
	t.Helper()
	var index struct {
		Paths map[string]struct {
			ServerRelativeURL string
		}
	}
	if err := json.Unmarshal([]byte(body(t, ask(h, "GET", "/openapi/v3"))), &index); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for name, at := range index.Paths {
		all[name] = at.ServerRelativeURL
	}
	return all
}

func TestIndex(t *testing.T) {
	h := New("v1.2.3", served())
	all := urls(t, h)
	for _, name := range []string{"api/v1", "apis/coordination.k8s.io/v1"} {
		r := ask(h, "GET", all[name], "Accept", "application/json")
		if r.StatusCode != 200 || !strings.Contains(r.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s at %q: %s, Cache-Control %q", name, all[name], r.Status, r.Header.Get("Cache-Control"))
		}
		var d Document
		if err := json.Unmarshal([]byte(body(t, r)), &d); err != nil || d.OpenAPI != "3.0.0" {
			t.Errorf("%s: %q, %v", name, d.OpenAPI, err)
		}
	}
	if len(all) != 2 {
		t.Errorf("index has %v", all)
	}
}

func TestAnswers(t *testing.T) {
	h := New("v1.2.3", served())
	core := urls(t, h)["api/v1"]
	tag := ask(h, "GET", core).Header.Get("ETag")
	for _, c := range []struct {
		method, url string
		header      []string
		status      int
		media       string
	}{
		{"GET", "/openapi/v3", nil, 200, inJSON},
		{"HEAD", "/openapi/v3", nil, 200, inJSON},
		{"GET", "/openapi/v3/api/v1", nil, 200, inJSON},
		{"GET", "/openapi/v3/api/v1", []string{"Accept", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"}, 406, inJSON},
		{"GET", "/openapi/v3/api/v1", []string{"Accept", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf, application/json"}, 200, inJSON},
		{"GET", "/openapi/v3/api/v1", []string{"If-None-Match", tag}, 304, ""},
		{"GET", "/openapi/v3/api/v1", []string{"If-None-Match", `"other", W/` + tag}, 304, ""},
		{"GET", "/openapi/v3/api/v1", []string{"If-None-Match", `"other"`}, 200, inJSON},
		{"GET", "/openapi/v3/api/v1?hash=OLD", nil, 301, "text/html; charset=utf-8"},
		{"GET", "/openapi/v3/api/v2", nil, 404, inJSON},
		{"GET", "/openapi/v3/", nil, 404, inJSON},
		{"GET", "/openapi/v3/../v2", nil, 404, inJSON},
		{"GET", "/openapi", nil, 404, inJSON},
		{"POST", "/openapi/v3", nil, 405, inJSON},
		{"GET", "/openapi/v2", nil, 200, inJSON},
		{"GET", "/openapi/v2", []string{"Accept", "*/*"}, 200, inJSON},
		{"GET", "/openapi/v2", []string{"Accept", "application/json;q=0.5, " + asksProto}, 200, inProto},
		{"GET", "/openapi/v2", []string{"Accept", asksProto}, 200, inProto},
		{"GET", "/openapi/v2", []string{"Accept", "text/html"}, 406, inJSON},
	} {
		r := ask(h, c.method, c.url, c.header...)
		if r.StatusCode != c.status || r.Header.Get("Content-Type") != c.media {
			t.Errorf("%s %s %q: %d %s, want %d %s", c.method, c.url, c.header, r.StatusCode, r.Header.Get("Content-Type"), c.status, c.media)
		}
		if c.status >= 400 {
			var s metav1.Status
			if err := json.Unmarshal([]byte(body(t, r)), &s); err != nil || s.Kind != "Status" || int(s.Code) != c.status || s.Message == "" {
				t.Errorf("%s %s: %+v, %v", c.method, c.url, s, err)
			}
		}
	}
	if to := ask(h, "GET", "/openapi/v3/api/v1?hash=OLD").Header.Get("Location"); to != core {
		t.Errorf("an old hash leads to %q, want %q", to, core)
	}
}

func TestEncodings(t *testing.T) {
	h := New("v1.2.3", served())
	plain := body(t, ask(h, "GET", "/openapi/v2"))
	for coding, want := range map[string]string{"gzip": "gzip", "br, gzip;q=0.8": "gzip", "gzip;q=0": "", "identity": ""} {
		r := ask(h, "GET", "/openapi/v2", "Accept-Encoding", coding)
		if got := r.Header.Get("Content-Encoding"); got != want {
			t.Errorf("%q: %q, want %q", coding, got, want)
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
			t.Errorf("%q: another document", coding)
		}
	}
}

// A hash changes with the content alone: clients keep what they have over
// restarts of podd.
func TestHashes(t *testing.T) {
	first := New("v1.2.3", served())
	for name, url := range urls(t, New("v1.2.3", served())) {
		if url != urls(t, first)[name] {
			t.Errorf("%s: %s after %s", name, url, urls(t, first)[name])
		}
	}
	if first.proto2().etag != New("v1.2.3", served()).proto2().etag {
		t.Error("version 2 differs from itself")
	}
	if urls(t, first)["api/v1"] == urls(t, New("v1.2.3", served()[1:]))["api/v1"] {
		t.Error("one resource less, and the same hash")
	}
}

// The handler keeps compressed documents only, and none that nobody asked for.
func TestKept(t *testing.T) {
	h := New("v1.2.3", served())
	size := len(h.version3().index.gz)
	for _, k := range h.version3().documents {
		size += len(k.gz)
	}
	size2 := len(h.json2().gz) + len(h.proto2().gz)
	t.Logf("kept: version 3 %d bytes, version 2 %d bytes", size, size2)
	if size > 120<<10 || size2 > 220<<10 {
		t.Errorf("kept: version 3 %d bytes, version 2 %d bytes", size, size2)
	}
}

// Making all documents is what the first explain waits for.
func BenchmarkFirst(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		New("v1.2.3", served()).version3()
	}
}
