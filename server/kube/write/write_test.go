package write_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
	"podd/server/auth"
	"podd/server/kube"
	"podd/server/kube/kubetest"
	"podd/server/kube/write"
)

// files is an in-memory ManifestStore of ConfigMaps. The View contains the written objects
// only after show is called.
type files struct {
	*kubetest.Node
	mu    sync.Mutex
	texts map[string][]byte
	wrote func() // called after each change; may be nil
	read  error  // returned by Read for every file
}

// newAPI returns the API of a node.
func newAPI(n *kubetest.Node) *kube.API {
	return &kube.API{State: n, Logs: n, Runtime: n, Authorizer: auth.Policy{}, DebuggingEnabled: true}
}

func newFiles() *files { return &files{Node: kubetest.NewNode(), texts: map[string][]byte{}} }

func (f *files) handler() http.Handler {
	api := newAPI(f.Node)
	api.Manifests, api.Meter = f, f.Node
	return api.Handler()
}

func (f *files) Path(_ string, key server.Key) string { return "/api/" + key.Name }

func (f *files) Parse(_ string, text []byte) write.ParsedManifest {
	c := &v1.ConfigMap{}
	if err := json.Unmarshal(text, c); err != nil {
		return write.ParsedManifest{}
	}
	return write.ParsedManifest{Object: c}
}

func (f *files) Read(_ string, key server.Key) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, ok := f.texts[key.Name]
	if !ok && f.read == nil {
		return nil, fs.ErrNotExist
	}
	return text, f.read
}

func (f *files) Write(_ string, key server.Key, text []byte) error {
	f.mu.Lock()
	f.texts[key.Name] = text
	f.mu.Unlock()
	if f.wrote != nil {
		f.wrote()
	}
	return nil
}

func (f *files) Remove(_ string, key server.Key) error {
	f.mu.Lock()
	delete(f.texts, key.Name)
	f.mu.Unlock()
	if f.wrote != nil {
		f.wrote()
	}
	return nil
}

func (f *files) Delete(context.Context, server.Key, types.UID, time.Duration) error { return nil }

func (f *files) CancelDelete(context.Context, server.Key, types.UID) error { return nil }

func (f *files) len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.texts)
}

// show publishes the objects that the test has written, as if podd had read them from files in dir.
func (f *files) show(dir string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := &server.Objects{}
	var all []server.FileView
	for _, name := range slices.Sorted(maps.Keys(f.texts)) {
		text := f.texts[name]
		o.ConfigMaps = append(o.ConfigMaps, &server.ObjectView{Object: f.Parse("", text).Object, Path: dir + name, Line: 1})
		all = append(all, server.FileView{Path: "/api/" + name, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(text))})
	}
	f.UpdateView(func(v *server.View) { v.Files, v.Objects = all, func() *server.Objects { return o } })
}

const configMaps = "/api/v1/namespaces/default/configmaps"

func configMap(name, meta string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","namespace":"default"` + meta + `}}`
}

// sendWithin sends a request that is canceled after the duration in the parameter within.
func sendWithin(t *testing.T, h http.Handler, method, target, body string, within time.Duration) *httptest.ResponseRecorder {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return sendContext(ctx, h, method, target, body)
}

func sendContext(ctx context.Context, h http.Handler, method, target, body string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(w, r)
	return w
}

// TestUpdate_AfterDisconnect checks that a written update is not lost if its client has disconnected.
// A later update that is based on the previous version must not replace the written update.
func TestUpdate_AfterDisconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFiles()
		h := f.handler()
		f.wrote = func() { f.show("/api/") }
		var made v1.ConfigMap
		w := sendWithin(t, h, "POST", configMaps, configMap("a", ""), 5*time.Minute)
		if err := json.Unmarshal(w.Body.Bytes(), &made); w.Code != 201 || err != nil {
			t.Fatalf("got %d %s and error %v, want 201", w.Code, w.Body, err)
		}
		put := func(ctx context.Context, label string) int {
			return sendContext(ctx, h, "PUT", configMaps+"/a", configMap("a", `,"resourceVersion":"`+made.ResourceVersion+`","labels":{"by":"`+label+`"}`)).Code
		}
		ctx, leave := context.WithCancel(t.Context())
		f.wrote = leave
		put(ctx, "first")
		f.wrote = nil
		ctx, leave = context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer leave()
		put(ctx, "second")
		if text, _ := f.Read("", server.Key{Name: "a"}); !strings.Contains(string(text), "first") {
			t.Errorf("got the file %s, want the label of the first update in it, because the second update was based on an older version", text)
		}
		time.AfterFunc(10*time.Millisecond, func() { f.show("/api/") })
		if code := put(t.Context(), "second"); code != 409 {
			t.Errorf("second update after the View contains the first: got status %d, want 409", code)
		}
	})
}

func TestWrite_AllNamespaces(t *testing.T) {
	f := newFiles()
	h := f.handler()
	f.wrote = func() { f.show("/api/") }
	if w := sendWithin(t, h, "POST", configMaps, configMap("a", ""), 5*time.Minute); w.Code != 201 {
		t.Fatalf("got %d %s, want 201", w.Code, w.Body)
	}
	for method, body := range map[string]string{"DELETE": "", "POST": configMap("b", "")} {
		w := sendWithin(t, h, method, "/api/v1/configmaps", body, 5*time.Minute)
		if w.Code != 405 || !strings.Contains(w.Body.String(), "specify the namespace in the path") || f.len() != 1 {
			t.Errorf("%s in all namespaces: got %d %s and %d files, want 405 and 1 file", method, w.Code, w.Body, f.len())
		}
	}
	if w := sendWithin(t, h, "DELETE", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/web-n1", "", 5*time.Minute); w.Code != 405 {
		t.Errorf("delete of metrics: got %d %s, want 405", w.Code, w.Body)
	}
	f.read = errors.New("the disk failed")
	if w := sendWithin(t, h, "POST", configMaps, configMap("b", ""), 5*time.Minute); w.Code != 500 || !strings.Contains(w.Body.String(), "disk failed") {
		t.Errorf("with a failing disk: got %d %s, want an error", w.Code, w.Body)
	}
}

func TestDeleteCollection_Preconditions(t *testing.T) {
	f := newFiles()
	h := f.handler()
	f.wrote = func() { f.show("/api/") }
	if w := sendWithin(t, h, "POST", configMaps, configMap("a", ""), 5*time.Minute); w.Code != 201 {
		t.Fatalf("got %d %s, want 201", w.Code, w.Body)
	}
	if w := sendWithin(t, h, "DELETE", configMaps, `{"preconditions":{"uid":"nope"}}`, 5*time.Minute); w.Code != 409 || f.len() != 1 {
		t.Errorf("DELETE with another UID: got %d %s and %d files, want 409 and 1 file", w.Code, w.Body, f.len())
	}
}

// TestCreate_Overruled checks the creation of an object that a file in another directory already
// defines. The handler must remove the file that it wrote, even if the client has disconnected.
func TestCreate_Overruled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFiles()
		h := f.handler()
		ctx, leave := context.WithCancel(t.Context())
		f.wrote = func() {
			f.wrote = nil
			leave()
			time.AfterFunc(50*time.Millisecond, func() { f.show("/etc/podd/manifests/") })
		}
		if w := sendContext(ctx, h, "POST", configMaps, configMap("a", "")); w.Code != 409 || f.len() != 0 {
			t.Errorf("got %d %s and %d files, want 409 and no file", w.Code, w.Body, f.len())
		}
	})
}

// TestDeleteCollection_Parallel checks that all files of a collection are removed before the
// handler waits until the View no longer contains them.
func TestDeleteCollection_Parallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFiles()
		h := f.handler()
		f.wrote = func() { f.show("/api/") }
		for _, name := range []string{"a", "b", "c"} {
			if w := sendWithin(t, h, "POST", configMaps, configMap(name, ""), 5*time.Minute); w.Code != 201 {
				t.Fatalf("got %d %s, want 201", w.Code, w.Body)
			}
		}
		f.wrote = func() {
			if f.len() == 0 {
				f.show("/api/")
			}
		}
		if w := sendWithin(t, h, "DELETE", configMaps, "", 5*time.Minute); w.Code != 200 || strings.Count(w.Body.String(), `"uid"`) != 3 {
			t.Errorf("DELETE of the collection: got %d %s, want 200 and 3 objects", w.Code, w.Body)
		}
	})
}
