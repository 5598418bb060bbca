package write_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
	"podd/server/kube/kubetest"
)

// debugger shows added containers in the node's pods after a short delay.
type debugger struct {
	*kubetest.Node
	dry []bool
}

func (d *debugger) SetEphemeralContainers(_ context.Context, key types.NamespacedName, uid types.UID, containers []v1.EphemeralContainer, dry bool) error {
	p := *d.View().Pod(server.Key(key)).Pod
	d.dry = append(d.dry, dry)
	if p.UID != uid || slices.ContainsFunc(containers, func(c v1.EphemeralContainer) bool { return c.Image == "" }) {
		return apierrors.NewInvalid(v1.SchemeGroupVersion.WithKind("Pod").GroupKind(), key.Name, nil)
	}
	p.Spec.EphemeralContainers = containers
	if !dry {
		time.AfterFunc(time.Millisecond, func() { d.PutPod(&p) })
	}
	return nil
}

func send(h http.Handler, method, target, kind, body string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Content-Type", kind)
	h.ServeHTTP(w, r)
	return w
}

func TestAddEphemeral(t *testing.T) {
	const (
		sub       = "/api/v1/namespaces/default/pods/web-n1/ephemeralcontainers"
		plain     = "application/json"
		merge     = "application/merge-patch+json"
		strategic = "application/strategic-merge-patch+json"
		add       = `{"spec":{"$setElementOrder/ephemeralContainers":[{"name":"d"}],"ephemeralContainers":[{"name":"d","image":"busybox","env":[{"name":"T","value":"s3cret"}]}]}}`
	)
	for _, c := range []struct {
		name, method, query, kind, body string
		status                          int
		want                            string
	}{
		{"a patch of kubectl debug", "PATCH", "", strategic, add, 200, `"ephemeralContainers":[{"name":"d","image":"busybox"`},
		{"a merge patch", "PATCH", "", merge, `{"spec":{"ephemeralContainers":[{"name":"d","image":"busybox"}]}}`, 200, `{"name":"d"`},
		{"a JSON patch", "PATCH", "", "application/json-patch+json", `[{"op":"add","path":"/spec/ephemeralContainers","value":[{"name":"d","image":"b"}]}]`, 200, `{"name":"d"`},
		{"a whole pod", "PUT", "", plain, `{"metadata":{"name":"web-n1","namespace":"default","uid":"u1","resourceVersion":"1001"},"spec":{"ephemeralContainers":[{"name":"d","image":"b"}]}}`, 200, `{"name":"d"`},
		{"other fields are ignored", "PATCH", "", merge, `{"metadata":{"labels":{"app":"x"}},"spec":{"nodeName":"n2"}}`, 200, `"nodeName":"n1"`},
		{"dry run", "PATCH", "?dryRun=All", strategic, add, 200, `"containers":[{"name":"main"`},
		{"invalid dry run", "PATCH", "?dryRun=all", strategic, add, 400, "only All is supported"},
		{"invalid container", "PATCH", "", strategic, `{"spec":{"ephemeralContainers":[{"name":"d"}]}}`, 422, `"reason":"Invalid"`},
		{"of an older version", "PATCH", "", merge, `{"metadata":{"resourceVersion":"7"},"spec":{}}`, 409, "the object has been modified"},
		{"of another pod", "PATCH", "", merge, `{"metadata":{"uid":"u7"}}`, 409, "UID in precondition"},
		{"under another name", "PUT", "", plain, `{"metadata":{"name":"other","namespace":"default"}}`, 400, "in the path"},
		{"an unknown field", "PATCH", "?fieldValidation=Strict", merge, `{"spec":{"ephemeralContainers":[{"name":"d","image":"b","imagee":"s3cret"}]}}`, 400, `unknown field \"spec.ephemeralContainers[0].imagee\"`},
		{"not a pod", "PUT", "", plain, `[]`, 400, "reading the pod"},
		{"not a patch", "PATCH", "", merge, `{`, 400, "BadRequest"},
		{"a server side apply", "PATCH", "", "application/apply-patch+yaml", add, 415, "UnsupportedMediaType"},
		{"a PUT of YAML", "PUT", "", "application/yaml", "a: b", 415, "UnsupportedMediaType"},
		{"a DELETE", "DELETE", "", plain, "", 405, "MethodNotAllowed"},
	} {
		var w *httptest.ResponseRecorder
		synctest.Test(t, func(*testing.T) {
			n := kubetest.NewNode()
			api := newAPI(n)
			api.Debugger = &debugger{Node: n}
			w = send(api.Handler(), c.method, sub+c.query, c.kind, c.body)
		})
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: got %d %.600s\nwant %d %s", c.name, w.Code, w.Body, c.status, c.want)
		}
		if c.status >= 400 && strings.Contains(w.Body.String(), "s3cret") {
			t.Errorf("%s: the response contains a secret: %s", c.name, w.Body)
		}
	}
}

func TestAddEphemeral_Availability(t *testing.T) {
	const sub = "/api/v1/namespaces/default/pods/web-n1/ephemeralcontainers"
	n := kubetest.NewNode()
	api := newAPI(n)
	d := &debugger{Node: n}
	api.Debugger, api.DebuggingEnabled = d, false
	h := api.Handler()
	if w := send(h, "PATCH", sub, "application/merge-patch+json", `{}`); w.Code != 405 || len(d.dry) > 0 {
		t.Errorf("debugging is disabled: got %d %s, want 405 and no call", w.Code, w.Body)
	}
	if w := send(h, "GET", sub, "", ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"kind":"Pod"`) {
		t.Errorf("GET: got %d %s, want 200 and the pod", w.Code, w.Body)
	}
	if w := send(h, "GET", "/api/v1", "", ""); !strings.Contains(w.Body.String(), `{"name":"pods/ephemeralcontainers","singularName":"","namespaced":true,"kind":"Pod","verbs":["get","patch","update"]}`) {
		t.Errorf("discovery: got %s, want pods/ephemeralcontainers in it", w.Body)
	}
	api.DebuggingEnabled = true
	if w := send(h, "PATCH", strings.Replace(sub, "web-n1", "no", 1), "application/merge-patch+json", `{}`); w.Code != 404 {
		t.Errorf("missing pod: got %d %s, want 404", w.Code, w.Body)
	}
	w := send(h, "PATCH", sub+"?dryRun=All", "application/merge-patch+json", `{"spec":{"ephemeralContainers":[{"name":"d","image":"b"}]}}`)
	if w.Code != 200 || !slices.Equal(d.dry, []bool{true}) || !strings.Contains(w.Body.String(), "ephemeralContainers") || len(d.View().Pods[0].Pod.Spec.EphemeralContainers) > 0 {
		t.Errorf("dry run: got %d, dry %v and %s, want 200, [true] and an unchanged pod in the View", w.Code, d.dry, w.Body)
	}
}
