package endpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/daemon/view"
	"podd/manifest"
	"podd/manifest/apidir"
	"podd/manifest/decode"
	"podd/manifest/manifesttest"
	"podd/manifest/source"
	"podd/reconcile"
	"podd/reconcile/state"
	"podd/server"
	"podd/server/auth"
	"podd/server/kube"
)

// writableAPI is a server of podd's Kubernetes API with two manifest directories. Clients can change
// only the directory of the API. No pods run.
type writableAPI struct {
	t        *testing.T
	dir      string // the directory of the API
	otherDir string // the other manifest directory
	url      string
	deleted  sync.Map // grace periods of the deleted pods, by pod name
	// If isDiskFull is set, files cannot be removed.
	isDiskFull atomic.Bool
	// If hasEphemeral is set, the view of each pod has an ephemeral container.
	hasEphemeral atomic.Bool
}

// An ephemeralViewer adds an ephemeral container to the pods of a Viewer if w.hasEphemeral is set. Tests
// need it because a manifest cannot contain an ephemeral container.
type ephemeralViewer struct {
	server.Viewer
	w      *writableAPI
	mu     sync.Mutex   // guards the following fields
	input  *server.View // the View from which output was made
	output *server.View // the last result with ephemeral containers
}

func (d *ephemeralViewer) View() *server.View {
	v := d.Viewer.View()
	if !d.w.hasEphemeral.Load() {
		return v
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.input == v {
		return d.output
	}
	more := *v
	more.Pods = nil
	for _, p := range v.Pods {
		with := *p
		with.Pod = p.Pod.DeepCopy()
		with.Pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug", Image: "shell"}}}
		more.Pods = append(more.Pods, &with)
	}
	d.input, d.output = v, &more
	return d.output
}

// fakeRouterManifests records deletions instead of passing them to a router.
type fakeRouterManifests struct {
	apiManifests
	w *writableAPI
}

func (e fakeRouterManifests) Delete(_ context.Context, pod server.Key, _ types.UID, grace time.Duration) error {
	e.w.deleted.Store(pod.Name, grace)
	return nil
}

func (e fakeRouterManifests) CancelDelete(_ context.Context, pod server.Key, _ types.UID) error {
	e.w.deleted.Delete(pod.Name)
	return nil
}

func (e fakeRouterManifests) Remove(kind string, key server.Key) error {
	if e.w.isDiskFull.Load() {
		return syscall.ENOSPC
	}
	return e.apiManifests.Remove(kind, key)
}

// newWritable starts a writableAPI. It stops when the test ends.
func newWritable(t *testing.T) *writableAPI {
	w := &writableAPI{t: t, dir: filepath.Join(t.TempDir(), "api"), otherDir: t.TempDir()}
	dir, err := apidir.Open(w.dir, false)
	if err != nil {
		t.Fatal(err)
	}
	options := source.Options{NodeName: "n1"}
	apiOptions := options
	apiOptions.IsWrittenByAPI = true
	shown := view.NewPublisher(view.Options{Base: server.View{Node: "n1"}, APISource: w.dir})
	ctx, cancel := context.WithCancel(context.Background())
	sets := source.Watch(ctx, source.NewDir(w.dir, apiOptions), source.NewDir(w.otherDir, options))
	var published sync.WaitGroup
	published.Go(func() {
		var before *manifest.Set
		for set := range sets {
			c := reconcile.Change{Set: set, SetChanged: true}
			if before != nil {
				for key := range maps.Keys(before.Pods) {
					if set.Pods[key] == nil {
						c.Removed = append(c.Removed, &state.Report{Key: key})
					}
				}
			}
			before = set
			shown.Publish(c)
		}
	})
	api := &kube.API{State: &ephemeralViewer{Viewer: shown.Latest, w: w}, Authorizer: auth.AllowAll{}, Manifests: fakeRouterManifests{apiManifests{dir: dir, decodeOptions: decode.Options{NodeName: "n1", IsWrittenByAPI: true}}, w}}
	s := httptest.NewServer(api.Handler())
	t.Cleanup(func() { s.Close(); cancel(); published.Wait() })
	w.url = s.URL
	return w
}

// A response is a decoded response of the API.
type response struct {
	code     int
	warnings []string
	body     string
	meta     metav1.ObjectMeta // metadata of the object in body
}

// do sends a request and returns the response.
func (w *writableAPI) do(method, path, mediaType, body string) response {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", mediaType)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		w.t.Fatal(err)
	}
	a := response{code: resp.StatusCode, warnings: resp.Header.Values("Warning"), body: b.String()}
	var o struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal(b.Bytes(), &o); err != nil {
		w.t.Fatalf("%s %s: decoding the response: %v: %s", method, path, err, a.body)
	}
	a.meta = o.Metadata
	return a
}

const (
	podsPath         = "/api/v1/namespaces/default/pods"
	configPath       = "/api/v1/namespaces/default/configmaps"
	trustBundlesPath = "/apis/certificates.k8s.io/v1/clustertrustbundles"
	csiDriversPath   = "/apis/storage.k8s.io/v1/csidrivers"

	asJSON         = "application/json"
	mergePatchType = "application/merge-patch+json"
	asApply        = "application/apply-patch+yaml"
)

const csiDriverText = `{"apiVersion":"storage.k8s.io/v1","kind":"CSIDriver","metadata":{"name":"disk.example.com"},"spec":{"attachRequired":false}}`

// trustBundleText returns the manifest of the ClusterTrustBundle example.com:mesh:a.
func trustBundleText(t *testing.T) string {
	return fmt.Sprintf(`{"apiVersion":"certificates.k8s.io/v1","kind":"ClusterTrustBundle","metadata":{"name":"example.com:mesh:a"},"spec":{"signerName":"example.com/mesh","trustBundle":%q}}`, manifesttest.CACertificate(t, "a"))
}

// podText returns the JSON manifest of a pod with the containers a and b. meta and spec contain
// additional fields of metadata and spec, each with a comma before it.
func podText(name, meta, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q%s},"spec":{"containers":[{"name":"a","image":"a:1"},{"name":"b","image":"b:1","env":[{"name":"X","value":"y"}]}]%s}}`, name, meta, spec)
}

// check returns an error unless the response has the status code, and the body contains each of words.
func (r response) check(code int, words ...string) error {
	if r.code != code {
		return fmt.Errorf("got status %d, body %s; want status %d", r.code, r.body, code)
	}
	for _, word := range words {
		if !strings.Contains(r.body, word) {
			return fmt.Errorf("got body %s, want one that contains %q", r.body, word)
		}
	}
	return nil
}

// TestWrite_Create checks which pods clients can create, and which fields the server sets or removes.
func TestWrite_Create(t *testing.T) {
	w := newWritable(t)
	otherFile := filepath.Join(w.otherDir, "web.yaml")
	if err := os.WriteFile(otherFile, []byte(podText("fixed", "", "")), 0o600); err != nil {
		t.Fatal(err)
	}
	for attempt := range 10_000 {
		if w.do("GET", podsPath+"/fixed-n1", "", "").code == 200 {
			break
		} else if attempt == 9_999 {
			t.Fatal("the pod in the other manifest directory did not appear")
		}
	}
	for _, c := range []struct {
		name, path, mediaType, body string
		code                        int
		words                       []string
	}{
		{"pod", "", asJSON, podText("web", "", ""), 201, []string{`"name":"web"`, `"nodeName":"n1"`, `"phase":"Pending"`}},
		{"existing pod", "", asJSON, podText("web", "", ""), 409, []string{"AlreadyExists"}},
		{"pod in the other manifest directory", "", asJSON, podText("fixed-n1", "", ""), 409, []string{otherFile}},
		{"YAML", "", "application/yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: yaml}\nspec: {containers: [{name: a, image: a}]}", 201, nil},
		{"missing kind", "", asJSON, `{"metadata":{"name":"x"}}`, 400, []string{"must be Pod v1"}},
		{"other kind", "", asJSON, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}`, 400, []string{"must be Pod v1"}},
		{"invalid JSON", "", asJSON, `{`, 400, nil},
		{"unsupported media type", "", "text/plain", podText("x", "", ""), 415, nil},
		{"other namespace", "", asJSON, podText("x", `,"namespace":"shop"`, ""), 400, []string{"does not match the namespace"}},
		{"resourceVersion", "", asJSON, podText("x", `,"resourceVersion":"1"`, ""), 400, []string{"resourceVersion should not be set"}},
		{"unknown field", "?fieldValidation=Strict", asJSON, podText("x", "", `,"foo":1`), 400, []string{`unknown field \"spec.foo\"`}},
		{"duplicate field", "?fieldValidation=Strict", asJSON, podText("x", "", `,"hostNetwork":true,"hostNetwork":true`), 400, []string{`duplicate field`}},
		{"missing image", "", asJSON, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":[{"name":"a"}]}}`, 422, []string{`"field":"spec.containers[0].image"`, `"reason":"Invalid"`}},
		{"path as a name", "", asJSON, podText("../../etc/x", "", ""), 422, []string{"metadata.name"}},
		{"missing name", "", asJSON, podText("", "", ""), 422, []string{"metadata.name"}},
		{"dry run", "?dryRun=All", asJSON, podText("dry", "", ""), 201, []string{`"name":"dry"`}},
		{"invalid dryRun", "?dryRun=Some", asJSON, podText("dry", "", ""), 400, nil},
		{"many escaped characters", "", asJSON, podText("less", `,"annotations":{"a":"`+strings.Repeat("<", 200<<10)+`"}`, ""), 201, nil},
		{"file would be too large", "?dryRun=All", asJSON, podText("x", "", `,"nodeSelector":{"a":"`+strings.Repeat("\u2028", 800<<10)+`"}`), 422, []string{"too large to be stored as a manifest file"}},
		{"request is too large", "", asJSON, podText("x", "", `,"x":"`+strings.Repeat("x", 3<<20)+`"`), 413, nil},
	} {
		if err := w.do("POST", podsPath+c.path, c.mediaType, c.body).check(c.code, c.words...); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	a := w.do("POST", podsPath, asJSON, podText("odd", `,"uid":"mine","creationTimestamp":"2001-01-01T00:00:00Z","deletionTimestamp":"2001-01-01T00:00:00Z"`, `,"foo":1},"status":{"phase":"Failed"`))
	if err := a.check(201, `"phase":"Pending"`); err != nil || len(a.meta.UID) != 36 || a.meta.CreationTimestamp.Year() == 2001 || a.meta.DeletionTimestamp != nil {
		t.Errorf("pod with fields that only the server sets: got error %v, metadata %+v, want phase Pending, a UID of 36 characters, the current creationTimestamp and no deletionTimestamp", err, a.meta)
	}
	if len(a.warnings) != 1 || !strings.Contains(a.warnings[0], "spec.foo") {
		t.Errorf("got warnings %q, want one for spec.foo", a.warnings)
	}
	if got := w.do("GET", podsPath+"/odd", "", ""); got.meta.UID != a.meta.UID || got.meta.ResourceVersion != a.meta.ResourceVersion || !got.meta.CreationTimestamp.Equal(&a.meta.CreationTimestamp) {
		t.Errorf("GET after POST: got metadata %+v, want that of the response to the POST: %+v", got.meta, a.meta)
	}
	text, err := os.ReadFile(filepath.Join(w.dir, "pod_default_odd.json"))
	if err != nil || strings.Contains(string(text), "Failed") || strings.Contains(string(text), "resourceVersion") {
		t.Errorf("got file %s, error %v; want no status and no resourceVersion", text, err)
	}
}

// TestWrite_Update checks which changes of a pod clients can make with PATCH. A rejected change must not
// modify the pod.
func TestWrite_Update(t *testing.T) {
	for _, c := range []struct {
		name, spec, mediaType, patch string // spec contains additional fields of the pod before the patch
		code                         int
		words                        []string
	}{
		{"labels", "", mergePatchType, `{"metadata":{"labels":{"a":"b"}}}`, 200, []string{`"labels":{"a":"b"}`}},
		{"invalid label", "", mergePatchType, `{"metadata":{"labels":{"a b":"b"}}}`, 422, []string{"metadata.labels"}},
		{"annotations", "", mergePatchType, `{"metadata":{"annotations":{"a":"b"}}}`, 200, []string{`"a":"b"`}},
		{"image", "", "application/strategic-merge-patch+json", `{"spec":{"containers":[{"name":"b","image":"b:2"}]}}`, 200, []string{`"image":"a:1"`, `"image":"b:2"`}},
		{"empty image", "", "application/strategic-merge-patch+json", `{"spec":{"containers":[{"name":"b","image":""}]}}`, 422, []string{"spec.containers[1].image"}},
		{"deadline added", "", mergePatchType, `{"spec":{"activeDeadlineSeconds":100}}`, 200, []string{`"activeDeadlineSeconds":100`}},
		{"shorter deadline", `,"activeDeadlineSeconds":100`, mergePatchType, `{"spec":{"activeDeadlineSeconds":50}}`, 200, nil},
		{"longer deadline", `,"activeDeadlineSeconds":100`, mergePatchType, `{"spec":{"activeDeadlineSeconds":200}}`, 422, []string{"less than or equal"}},
		{"deadline removed", `,"activeDeadlineSeconds":100`, mergePatchType, `{"spec":{"activeDeadlineSeconds":null}}`, 422, []string{"to nil value"}},
		{"toleration added", `,"tolerations":[{"key":"a","operator":"Exists"}]`, mergePatchType, `{"spec":{"tolerations":[{"key":"a","operator":"Exists"},{"operator":"Exists"}]}}`, 200, nil},
		{"toleration replaced", `,"tolerations":[{"key":"a","operator":"Exists"}]`, mergePatchType, `{"spec":{"tolerations":[{"key":"b","operator":"Exists"}]}}`, 422, []string{"spec.tolerations"}},
		{"longer toleration", `,"tolerations":[{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":5}]`, mergePatchType, `{"spec":{"tolerations":[{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":50}]}}`, 200, []string{`"tolerationSeconds":50`}},
		{"environment variable", "", "application/json-patch+json", `[{"op":"replace","path":"/spec/containers/1/env/0/value","value":"secret"}]`, 422, []string{"spec.containers[1].env[0].value", "pod updates may not change fields other than"}},
		{"container added", "", "application/strategic-merge-patch+json", `{"spec":{"containers":[{"name":"c","image":"c"}]}}`, 422, []string{"may not add or remove containers"}},
		{"restart policy", "", mergePatchType, `{"spec":{"restartPolicy":"Never"}}`, 422, []string{"spec.restartPolicy"}},
		{"grace period", "", mergePatchType, `{"spec":{"terminationGracePeriodSeconds":1}}`, 422, []string{"spec.terminationGracePeriodSeconds"}},
		{"other name", "", mergePatchType, `{"metadata":{"name":"db"}}`, 400, []string{"does not match the name"}},
		{"other UID", "", mergePatchType, `{"metadata":{"uid":"x"}}`, 409, []string{"UID in precondition"}},
		{"old resource version", "", mergePatchType, `{"metadata":{"resourceVersion":"1"}}`, 409, []string{"has been modified"}},
		{"status", "", mergePatchType, `{"status":{"phase":"Failed"}}`, 200, []string{`"phase":"Pending"`}},
		{"other namespace", "", mergePatchType, `{"metadata":{"namespace":"shop"}}`, 400, nil},
		{"unknown field", "", mergePatchType, `{"spec":{"foo":1}}`, 200, nil},
		{"no change", "", mergePatchType, `{}`, 200, nil},
		{"apply", "", asApply, "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {x: z}}\nspec: {containers: [{name: a, image: a:1}]}", 200, []string{`"x":"z"`, `"image":"a:1"`, `"image":"b:1"`}},
		{"apply to an immutable field", "", asApply, "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {hostNetwork: true}", 422, []string{"spec.hostNetwork"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWritable(t)
			first := w.do("POST", podsPath+"?fieldManager=test", asJSON, podText("web", "", c.spec))
			if err := first.check(201); err != nil {
				t.Fatal(err)
			}
			got := w.do("PATCH", podsPath+"/web?fieldManager=test", c.mediaType, c.patch)
			if err := got.check(c.code, c.words...); err != nil {
				t.Error(err)
			}
			if strings.Contains(got.body, "secret") {
				t.Errorf("got response %s, want it without the value of the environment variable", got.body)
			}
			now := w.do("GET", podsPath+"/web", "", "")
			if now.meta.UID != first.meta.UID {
				t.Errorf("GET after PATCH: got UID %s, want %s", now.meta.UID, first.meta.UID)
			}
			if c.code == 200 && now.body != got.body {
				t.Errorf("GET after PATCH: got %s, want the response to the PATCH: %s", now.body, got.body)
			}
			if c.code != 200 && now.body != first.body {
				t.Errorf("GET after a rejected PATCH: got %s, want the unmodified pod %s", now.body, first.body)
			}
		})
	}
}

// TestWrite_DryRun checks that the response to a dry run contains the current status and the change,
// and that the object is not modified.
func TestWrite_DryRun(t *testing.T) {
	w := newWritable(t)
	if err := w.do("POST", podsPath, asJSON, podText("web", "", "")).check(201); err != nil {
		t.Fatal(err)
	}
	const claims = "/api/v1/namespaces/default/persistentvolumeclaims"
	if err := w.do("POST", claims, asJSON, `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`).check(201); err != nil {
		t.Fatal(err)
	}
	for path, phase := range map[string]string{podsPath + "/web": "Pending", claims + "/c": "Bound"} {
		before := w.do("GET", path, "", "")
		if err := w.do("PATCH", path+"?dryRun=All", mergePatchType, `{"metadata":{"labels":{"x":"y"}}}`).check(200, `"x":"y"`, `"phase":"`+phase+`"`); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if now := w.do("GET", path, "", ""); now.body != before.body {
			t.Errorf("%s: got %s after a dry run, want the unmodified object %s", path, now.body, before.body)
		}
	}
}

// TestWrite_AppArmorAnnotation checks that clients cannot add, change or remove the annotation with the
// AppArmor profile of a container.
func TestWrite_AppArmorAnnotation(t *testing.T) {
	const key = "container.apparmor.security.beta.kubernetes.io/a"
	for _, c := range []struct {
		name, before, patch string
		code                int
	}{
		{"added", "", `"runtime/default"`, 422},
		{"changed", "runtime/default", `"unconfined"`, 422},
		{"removed", "runtime/default", `null`, 422},
		{"unchanged", "runtime/default", `"runtime/default"`, 200},
	} {
		w := newWritable(t)
		meta := ""
		if c.before != "" {
			meta = fmt.Sprintf(`,"annotations":{%q:%q}`, key, c.before)
		}
		if err := w.do("POST", podsPath, asJSON, podText("web", meta, "")).check(201); err != nil {
			t.Fatal(err)
		}
		got := w.do("PATCH", podsPath+"/web", mergePatchType, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, c.patch))
		if err := got.check(c.code); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.code == 422 && !strings.Contains(got.body, "AppArmor annotations") {
			t.Errorf("%s: got body %s, want one that contains \"AppArmor annotations\"", c.name, got.body)
		}
	}
}

// TestWrite_Resize checks that clients can change the CPU and memory of a pod only with the subresource
// resize, and no other field with this subresource. If a resize could make a rejected change, the error
// must name the subresource.
func TestWrite_Resize(t *testing.T) {
	w := newWritable(t)
	requests100m := strings.Replace(podText("web", "", ""), `"image":"a:1"`, `"image":"a:1","resources":{"requests":{"cpu":"100m"}}`, 1)
	if err := w.do("POST", podsPath, asJSON, requests100m).check(201); err != nil {
		t.Fatal(err)
	}
	const strategic = "application/strategic-merge-patch+json"
	if err := w.do("PATCH", podsPath+"/web", strategic, `{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"200m"}}}]}}`).check(422, "resources.requests.cpu", "--subresource resize"); err != nil {
		t.Errorf("PATCH of requests: %v", err)
	}
	if more := w.do("PATCH", podsPath+"/web", strategic, `{"spec":{"hostNetwork":true,"containers":[{"name":"a","resources":{"requests":{"cpu":"200m"}}}]}}`); more.check(422) != nil || strings.Contains(more.body, "--subresource") {
		t.Errorf("PATCH of requests and hostNetwork: got status %d, body %s; want 422 without a hint, because a resize cannot change hostNetwork", more.code, more.body)
	}
	if err := w.do("PATCH", podsPath+"/web/resize", strategic, `{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"200m"}}}]}}`).check(200, `"cpu":"200m"`); err != nil {
		t.Errorf("resize: %v", err)
	}
	if err := w.do("PATCH", podsPath+"/web/resize", strategic, `{"spec":{"containers":[{"name":"a","image":"a:2"}]}}`).check(422, "only cpu and memory"); err != nil {
		t.Errorf("resize of an image: %v", err)
	}
	if err := w.do("PATCH", podsPath+"/web/resize", strategic, `{"spec":{"containers":[{"name":"b","resources":{"requests":{"cpu":"1"},"limits":{"cpu":"1"}}}]}}`).check(422); err != nil {
		t.Errorf("resize of a container without resources: %v", err)
	}
}

// TestWrite_EphemeralContainer checks that clients can change a pod with an ephemeral container, and
// that this container is not written to the manifest file.
func TestWrite_EphemeralContainer(t *testing.T) {
	w := newWritable(t)
	if err := w.do("POST", podsPath, asJSON, podText("web", "", "")).check(201); err != nil {
		t.Fatal(err)
	}
	w.hasEphemeral.Store(true)
	for _, c := range []struct {
		name, method, query, mediaType, body string
	}{
		{"label", "PATCH", "", mergePatchType, `{"metadata":{"labels":{"a":"1"}}}`},
		{"strategic merge patch", "PATCH", "", "application/strategic-merge-patch+json", `{"metadata":{"labels":{"a":"2"}},"spec":{"containers":[{"name":"a","image":"a:2"}]}}`},
		{"apply", "PATCH", "?fieldManager=one&force=1", asApply, podText("web", `,"labels":{"a":"3"}`, "")},
		{"replace", "PUT", "", asJSON, ""},
	} {
		body := c.body
		if body == "" {
			body = strings.Replace(w.do("GET", podsPath+"/web", "", "").body, `"a":"3"`, `"a":"4"`, 1)
		}
		a := w.do(c.method, podsPath+"/web"+c.query, c.mediaType, body)
		if err := a.check(200, `"ephemeralContainers":[{"name":"debug"`); err != nil || a.meta.Labels["a"] == "" {
			t.Errorf("%s: got body %s, error %v; want a label \"a\" and the ephemeral container", c.name, a.body, err)
		}
	}
	if a := w.do("GET", podsPath+"/web", "", ""); a.meta.Labels["a"] != "4" {
		t.Errorf("GET after all changes: got %s, want the label a=4", a.body)
	}
	text, err := os.ReadFile(filepath.Join(w.dir, "pod_default_web.json"))
	if err != nil || strings.Contains(strings.ToLower(string(text)), "ephemeral") {
		t.Errorf("got file %s, error %v; want no ephemeral container", text, err)
	}
}

// TestWrite_Objects checks writes of objects other than pods, and that an immutable ConfigMap cannot be
// changed.
func TestWrite_Objects(t *testing.T) {
	w := newWritable(t)
	const conf = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"conf"},"data":{"a":"b"}}`
	first := w.do("POST", configPath, asJSON, conf)
	if err := first.check(201, `"a":"b"`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, patch string
		code        int
	}{
		{"data", `{"data":{"a":"c"}}`, 200},
		{"invalid key", `{"data":{"a/b":"c"}}`, 422},
		{"immutable set to true", `{"immutable":true}`, 200},
		{"data of an immutable object", `{"data":{"a":"d"}}`, 422},
		{"immutable set to false", `{"immutable":false}`, 422},
		{"labels of an immutable object", `{"metadata":{"labels":{"x":"y"}}}`, 200},
	} {
		if err := w.do("PATCH", configPath+"/conf", mergePatchType, c.patch).check(c.code); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if now := w.do("GET", configPath+"/conf", "", ""); now.meta.UID != first.meta.UID || !now.meta.CreationTimestamp.Equal(&first.meta.CreationTimestamp) {
		t.Errorf("ConfigMap after the changes: got metadata %+v, want the UID and creationTimestamp of %+v", now.meta, first.meta)
	}
	if err := w.do("DELETE", configPath+"/conf", "", "").check(200, `"status":"Success"`, string(first.meta.UID)); err != nil {
		t.Errorf("DELETE of the ConfigMap: %v", err)
	}
	if err := w.do("GET", configPath+"/conf", "", "").check(404); err != nil {
		t.Errorf("GET of the deleted ConfigMap: %v", err)
	}
	for path, body := range map[string]string{
		"/api/v1/namespaces/default/secrets":                `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"a":"b"}}`,
		"/api/v1/namespaces/default/persistentvolumeclaims": `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`,
		"/api/v1/persistentvolumes":                         `{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"v"},"spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},"hostPath":{"path":"/srv"},"storageClassName":"x"}}`,
		trustBundlesPath:                                    trustBundleText(t),
		csiDriversPath:                                      csiDriverText,
	} {
		created := w.do("POST", path, asJSON, body)
		if err := created.check(201); err != nil {
			t.Errorf("%s: POST: %v", path, err)
			continue
		}
		objectPath := path + "/" + created.meta.Name
		if err := w.do("PATCH", objectPath, mergePatchType, `{"metadata":{"labels":{"x":"y"}}}`).check(200, `"x":"y"`); err != nil {
			t.Errorf("%s: PATCH: %v", path, err)
		}
		current := w.do("GET", objectPath, "", "")
		if err := w.do("PUT", objectPath, asJSON, current.body).check(200); err != nil {
			t.Errorf("%s: PUT of the current object: %v", path, err)
		}
		if err := w.do("DELETE", objectPath, "", "").check(200); err != nil {
			t.Errorf("%s: DELETE: %v", path, err)
		}
	}
}

// TestWrite_Concurrent checks concurrent writes. At most one of several updates with the same resource
// version may succeed. All updates without a resource version must succeed. Exactly one of several
// requests to create the same pod must succeed.
func TestWrite_Concurrent(t *testing.T) {
	w := newWritable(t)
	first := w.do("POST", configPath, asJSON, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"conf"},"data":{}}`)
	var updates, conflicts, creates atomic.Int32
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"data":{"winner":"%d"}}`, first.meta.ResourceVersion, n)
			switch w.do("PATCH", configPath+"/conf", mergePatchType, patch).code {
			case 200:
				updates.Add(1)
			case 409:
				conflicts.Add(1)
			}
			w.do("PATCH", configPath+"/conf", mergePatchType, fmt.Sprintf(`{"data":{"k%d":"v"}}`, n))
			if w.do("POST", podsPath, asJSON, podText("same", "", "")).code == 201 {
				creates.Add(1)
			}
		})
	}
	all.Wait()
	if updates.Load() > 1 || updates.Load()+conflicts.Load() != 8 {
		t.Errorf("8 updates with the same resource version: got %d successes, %d conflicts; want at most 1 success, and conflicts for all other updates", updates.Load(), conflicts.Load())
	}
	if creates.Load() != 1 {
		t.Errorf("got %d successful creates of one pod, want 1", creates.Load())
	}
	var c v1.ConfigMap
	if err := json.Unmarshal([]byte(w.do("GET", configPath+"/conf", "", "").body), &c); err != nil {
		t.Fatal(err)
	}
	for n := range 8 {
		if c.Data[fmt.Sprintf("k%d", n)] != "v" {
			t.Errorf("updates without a resource version: got data %v, want the key k%d in it", c.Data, n)
		}
	}
}

// TestWrite_Errors checks requests that are rejected, the success of a repeated apply, and the verbs in
// the list of resources.
func TestWrite_Errors(t *testing.T) {
	w := newWritable(t)
	if err := w.do("POST", "/api/v1/nodes", asJSON, `{}`).check(405); err != nil {
		t.Errorf("POST of a node: %v", err)
	}
	if err := w.do("DELETE", podsPath+"/none", "", "").check(404); err != nil {
		t.Errorf("DELETE of a missing pod: %v", err)
	}
	if err := w.do("PATCH", podsPath+"/none", mergePatchType, `{}`).check(404); err != nil {
		t.Errorf("PATCH of a missing pod: %v", err)
	}
	if err := w.do("PATCH", podsPath+"/none", asApply, podText("none", "", "")).check(422, "fieldManager"); err != nil {
		t.Errorf("apply without a field manager: %v", err)
	}
	if a := w.do("PATCH", podsPath+"/web?fieldManager=x", asApply, podText("web", "", "")); a.check(201) != nil || len(a.warnings) > 0 {
		t.Errorf("first apply: got status %d, body %s, warnings %q; want 201 without warnings", a.code, a.body, a.warnings)
	}
	if a := w.do("PATCH", podsPath+"/web?fieldManager=x", asApply, podText("web", "", "")); a.check(200) != nil || len(a.warnings) > 0 {
		t.Errorf("second apply: got status %d, body %s, warnings %q; want 200 without warnings", a.code, a.body, a.warnings)
	}
	for _, body := range []string{`{"kind":"Pod","apiVersion":"v1"}`, `{`, `{"propagationPolicy":"x"}`} {
		if err := w.do("DELETE", podsPath+"/web", asJSON, body).check(400); err != nil {
			t.Errorf("DELETE with the body %s: %v", body, err)
		}
	}
	if err := w.do("DELETE", podsPath+"/web?gracePeriodSeconds=0&dryRun=All", "", "").check(200, `"name":"web"`); err != nil {
		t.Errorf("dry run of DELETE: %v", err)
	}
	if err := w.do("GET", podsPath+"/web", "", "").check(200); err != nil {
		t.Errorf("GET after the dry run: %v", err)
	}
	w.isDiskFull.Store(true)
	if err := w.do("DELETE", podsPath+"/web?gracePeriodSeconds=0", "", "").check(507); err != nil {
		t.Errorf("DELETE with a full disk: %v", err)
	}
	if grace, isDeleted := w.deleted.Load("web"); isDeleted {
		t.Errorf("DELETE with a full disk: pod deleted with grace period %v, want no deletion, because the file was not removed", grace)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal([]byte(w.do("GET", "/api/v1", "", "").body), &list); err != nil {
		t.Fatal(err)
	}
	for _, r := range list.APIResources {
		want := map[string]string{"pods": "[get list watch create update patch delete deletecollection]", "nodes": "[get list watch]", "pods/resize": "[get patch update]"}[r.Name]
		if want != "" && want != r.Verbs.String() {
			t.Errorf("%s: got verbs %v, want %v", r.Name, r.Verbs, want)
		}
	}
}

// TestWrite_CSIDriver checks that changes of a CSIDriver are validated.
func TestWrite_CSIDriver(t *testing.T) {
	w := newWritable(t)
	driverPath := csiDriversPath + "/disk.example.com"
	if err := w.do("POST", csiDriversPath, asJSON, csiDriverText).check(201, `"kind":"CSIDriver","apiVersion":"storage.k8s.io/v1"`, `"fsGroupPolicy":"ReadWriteOnceWithFSType"`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		patch string
		code  int
		want  string
	}{
		{`{"spec":{"fsGroupPolicy":"File","podInfoOnMount":true}}`, 200, `"fsGroupPolicy":"File"`},
		{`{"spec":{"fsGroupPolicy":"Often"}}`, 422, "spec.fsGroupPolicy"},
		{`{"spec":{"attachRequired":true}}`, 422, "spec.attachRequired: Forbidden: field is immutable"},
		{`{"spec":{"volumeLifecycleModes":["Ephemeral"]}}`, 422, "spec.volumeLifecycleModes: Forbidden: field is immutable"},
		{`{"spec":{"tokenRequests":[{"audience":"vault"}]}}`, 422, "spec.tokenRequests"},
	} {
		if err := w.do("PATCH", driverPath, mergePatchType, c.patch).check(c.code, c.want); err != nil {
			t.Errorf("%s: %v", c.patch, err)
		}
	}
}

// TestWrite_TrustBundle checks that changes of a ClusterTrustBundle are validated, and that clients can
// select bundles by signer.
func TestWrite_TrustBundle(t *testing.T) {
	w, text := newWritable(t), trustBundleText(t)
	bundlePath := trustBundlesPath + "/example.com:mesh:a"
	if err := w.do("POST", trustBundlesPath, asJSON, text).check(201, `"kind":"ClusterTrustBundle","apiVersion":"certificates.k8s.io/v1"`); err != nil {
		t.Fatal(err)
	}
	if err := w.do("POST", trustBundlesPath, asJSON, text).check(409, "already exists"); err != nil {
		t.Errorf("POST of an existing bundle: %v", err)
	}
	for _, c := range []struct{ patch, want string }{
		{`{"spec":{"signerName":"example.com/other"}}`, "must begin with"},
		{`{"spec":{"signerName":null}}`, "must not contain a colon"},
		{`{"spec":{"trustBundle":"none"}}`, "contains no PEM block"},
	} {
		if err := w.do("PATCH", bundlePath, mergePatchType, c.patch).check(422, c.want); err != nil {
			t.Errorf("%s: %v", c.patch, err)
		}
	}
	for signer, isSelected := range map[string]bool{"example.com/mesh": true, "example.com/other": false} {
		list := w.do("GET", trustBundlesPath+"?fieldSelector=spec.signerName%3D"+url.QueryEscape(signer), "", "")
		if got := strings.Contains(list.body, `"name":"example.com:mesh:a"`); list.code != 200 || got != isSelected {
			t.Errorf("bundles with signer %s: got status %d, body %s; want status 200, bundle in the body: %t", signer, list.code, list.body, isSelected)
		}
	}
	for _, name := range []string{"a_b", "..", "a::b", ":"} {
		if err := w.do("POST", trustBundlesPath, asJSON, strings.Replace(text, "example.com:mesh:a", name, 1)).check(422, "metadata.name"); err != nil {
			t.Errorf("name %q: %v", name, err)
		}
	}
}
