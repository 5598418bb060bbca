package kubelet

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"podd/server"
)

// getPage returns the response to a request with an Accept header.
func getPage(h http.Handler, path, accept string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestPages_Negotiation checks which format a client gets. The kubelet of Kubernetes 1.37.2 selects
// the same formats.
func TestPages_Negotiation(t *testing.T) {
	const text, notAcceptable = "text/plain; charset=utf-8", "application/json"
	structured := func(mediaType, version string) string {
		return mediaType + ";g=config.k8s.io;v=" + version + ";as=KIND"
	}
	h := newNode().handler()
	for accept, want := range map[string]string{
		"":              text,
		"*/*":           text,
		"text/plain":    text,
		"text/*":        text,
		"application/*": notAcceptable, "application/json": notAcceptable, "text/html": notAcceptable,
		"application/json;v=v1beta1;g=config.k8s.io;as=KIND":                    structured("application/json", "v1beta1"),
		"application/json;v=v1alpha1;g=config.k8s.io;as=KIND":                   structured("application/json", "v1alpha1"),
		"application/yaml;v=v1beta1;g=config.k8s.io;as=KIND":                    structured("application/yaml", "v1beta1"),
		"application/*;v=v1beta1;g=config.k8s.io;as=KIND":                       structured("application/json", "v1beta1"),
		"*/*;v=v1beta1;g=config.k8s.io;as=KIND":                                 structured("application/json", "v1beta1"),
		"application/json;v=v2;g=config.k8s.io;as=KIND":                         notAcceptable,
		"application/json;v=v1beta1;g=config.k8s.io;as=Other, text/plain;q=0.5": text,
		"application/json;v=v1beta1;g=config.k8s.io;as=KIND;q=0.1,text/plain":   text,
		"text/plain;v=v1beta1;g=config.k8s.io;as=KIND":                          notAcceptable,
		"application/json;stream=watch;v=v1beta1;g=config.k8s.io;as=KIND":       notAcceptable,
		"application/vnd.kubernetes.protobuf;v=v1beta1;g=config.k8s.io;as=KIND": notAcceptable,
		"\x00;;;,=,/*;v=\"": notAcceptable,
	} {
		for path, kind := range map[string]string{"/statusz": "Statusz", "/flagz": "Flagz"} {
			w := getPage(h, path, strings.ReplaceAll(accept, "KIND", kind))
			status := http.StatusOK
			if want == notAcceptable {
				status = http.StatusNotAcceptable
			}
			if got := w.Header().Get("Content-Type"); w.Code != status || got != strings.ReplaceAll(want, "KIND", kind) {
				t.Errorf("%s with Accept %q: got %d %s, want %d %s", path, accept, w.Code, got, status, want)
			}
			if isDeprecated := strings.Contains(want, "v1alpha1"); isDeprecated != (w.Header().Get("Warning") != "") {
				t.Errorf("%s with Accept %q: got Warning %q, want one: %t", path, accept, w.Header().Get("Warning"), isDeprecated)
			}
		}
	}
}

func TestFlagz(t *testing.T) {
	h := newNode().handler()
	const header = "\nkubelet flagz\nWarning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.\n"
	for accept, want := range map[string]string{
		"": header + "port=10250\nv=2\n",
		"application/json;v=v1beta1;g=config.k8s.io;as=Flagz":  `{"kind":"Flagz","apiVersion":"config.k8s.io/v1beta1","metadata":{"name":"kubelet"},"flags":{"port":"10250","v":"2"}}`,
		"application/yaml;v=v1alpha1;g=config.k8s.io;as=Flagz": "apiVersion: config.k8s.io/v1alpha1\nflags:\n  port: \"10250\"\n  v: \"2\"\nkind: Flagz\nmetadata:\n  name: kubelet\n",
	} {
		if diff := cmp.Diff(want, getPage(h, "/flagz", accept).Body.String()); diff != "" {
			t.Errorf("Accept %q (-want +got):\n%s", accept, diff)
		}
	}
}

func TestStatusz(t *testing.T) {
	h := newNode().handler()
	text := getPage(h, "/statusz", "").Body.String()
	if !regexp.MustCompile(`(?s)^\nkubelet statusz\nWarning: .*\n\nStarted: .* 1970\nUp: \d+ hr \d\d min \d\d sec\nGo version: go.*\nBinary version: podd v9\nEmulation version: 1.37\nPaths: /configz .*/statusz\n$`).MatchString(text) {
		t.Errorf("got the text:\n%s\nwant one that matches the pattern of the test", text)
	}
	var got map[string]any
	w := getPage(h, "/statusz", "application/json;v=v1beta1;g=config.k8s.io;as=Statusz")
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if n, ok := got["uptimeSeconds"].(float64); !ok || n < 1 {
		t.Errorf("got uptimeSeconds %v, want a positive number", got["uptimeSeconds"])
	}
	delete(got, "uptimeSeconds")
	delete(got, "goVersion")
	want := map[string]any{
		"kind": "Statusz", "apiVersion": "config.k8s.io/v1beta1", "metadata": map[string]any{"name": "kubelet"},
		"startTime": "1970-01-01T00:16:40Z", "binaryVersion": "podd v9", "emulationVersion": "1.37",
		"paths": []any{"/configz", "/debug", "/flagz", "/healthz", "/livez", "/logs", "/metrics", "/pods", "/readyz", "/runningpods", "/spec", "/stats", "/statusz"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStatusz_Paths checks that every path of /statusz is served, and that disabled paths are
// missing.
func TestStatusz_Paths(t *testing.T) {
	n := newNode()
	for name, a := range map[string]*API{
		"all":  {State: n, Health: http.NotFoundHandler(), Stats: http.NotFoundHandler(), DebuggingEnabled: true, ProfilingEnabled: true, SystemLogs: fstest.MapFS{}},
		"some": {State: n, Health: http.NotFoundHandler(), Stats: http.NotFoundHandler(), DebuggingEnabled: true},
	} {
		mux, ok := a.Handler().(*http.ServeMux)
		if !ok {
			t.Fatal("Handler returned no ServeMux")
		}
		for _, path := range a.readOnlyPaths() {
			served := false
			for _, below := range []string{path, path + "/", path + "/pprof/"} {
				_, pattern := mux.Handler(httptest.NewRequest("GET", below, nil))
				served = served || pattern != ""
			}
			if !served {
				t.Errorf("%s: %s is not served", name, path)
			}
		}
	}
	disabled := (&API{State: n, Health: http.NotFoundHandler(), Stats: http.NotFoundHandler()}).Handler()
	for _, path := range append([]string{"/statusz", "/flagz"}, server.DebugPaths...) {
		if w := getPage(disabled, path, ""); w.Code == http.StatusOK {
			t.Errorf("%s with debugging disabled: got %d, want an error", path, w.Code)
		}
	}
}
