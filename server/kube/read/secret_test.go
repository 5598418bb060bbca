package read

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
	"podd/server/auth"
	"podd/server/kube/kubetest"
)

// withSecrets returns a node with Secrets in two namespaces. Each of their values,
// and the annotation that repeats it, contains "hidden".
func withSecrets() *kubetest.Node {
	n := kubetest.NewNode()
	secret := func(namespace, name string) *server.ObjectView {
		return &server.ObjectView{Object: &v1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{
				v1.LastAppliedConfigAnnotation: `{"stringData":{"k":"hidden"}}`, "team": "blue",
			}},
			Data: map[string][]byte{"k": []byte("hidden")}, StringData: map[string]string{"k": "hidden"}, Type: v1.SecretTypeOpaque,
		}}
	}
	n.UpdateView(func(v *server.View) {
		v.Objects = func() *server.Objects {
			return &server.Objects{Secrets: []*server.ObjectView{secret("bank", "key"), secret("shop", "key"), secret("shop", "own")}}
		}
	})
	return n
}

// bobMay allows bob to read some Secrets, as "namespace" or "namespace/name".
func bobMay(all ...string) func(context.Context, auth.User, string, string) bool {
	return func(_ context.Context, u auth.User, namespace, name string) bool {
		for _, may := range all {
			if u.Name == "bob" && (may == namespace || may == namespace+"/"+name) {
				return true
			}
		}
		return false
	}
}

const hidden = "aGlkZGVu" // base64 of "hidden"

// TestSecretData checks that, in a cluster, a user who may not read the data of a Secret sees the
// object without data, in every representation.
func TestSecretData(t *testing.T) {
	const (
		all    = "/api/v1/secrets"
		shop   = "/api/v1/namespaces/shop/secrets"
		own    = shop + "/own"
		asOwn  = shop + "?fieldSelector=metadata.name%3Down"
		plain  = "application/json"
		table  = "application/json;as=Table;v=v1;g=meta.k8s.io"
		meta   = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
		metas  = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
		object = "&includeObject=Object"
	)
	for _, c := range []struct {
		may            []string
		target, accept string
		forwarded      bool
		values         int // number of values of Secrets in the response; the node has 3
	}{
		{nil, all, plain, false, 0},
		{nil, own, plain, false, 0},
		{nil, all + "?" + object, table, false, 0},
		{nil, all, table, false, 0},
		{nil, own, meta, false, 0},
		{nil, all, metas, false, 0},
		{[]string{"shop"}, all, plain, false, 2},
		{[]string{"shop"}, shop, plain, false, 2},
		{[]string{"shop"}, own, plain, false, 1},
		{[]string{"shop"}, all + "?" + object, table, false, 2},
		{[]string{"shop/own"}, own, plain, false, 1},
		{[]string{"shop/own"}, asOwn, plain, false, 1},
		{[]string{"shop/own"}, shop + "/key", plain, false, 0},
		{[]string{"shop/own"}, shop, plain, false, 0}, // a list needs permission for the namespace
		{[]string{"shop", "bank"}, all, plain, false, 3},
		{[]string{"shop", "bank"}, all, plain, true, 0},
		{[]string{"shop", "bank"}, own, plain, true, 0},
	} {
		h := serve(Options{State: withSecrets(), MayReadSecret: bobMay(c.may...)})
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", c.target, nil)
		r.Header.Set("Accept", c.accept)
		if c.forwarded {
			r.Header.Set("X-Forwarded-For", "192.0.2.7")
		}
		h.ServeHTTP(w, r.WithContext(auth.WithUser(r.Context(), auth.User{Name: "bob"})))
		body := w.Body.String()
		if got := strings.Count(body, hidden); w.Code != 200 || got != c.values || c.values == 0 && strings.Contains(body, "hidden") {
			t.Errorf("bob may read %v: %s as %s, forwarded %t: got status %d with %d values of Secrets, want 200 with %d:\n%s", c.may, c.target, c.accept, c.forwarded, w.Code, got, c.values, body)
		}
		if !strings.Contains(body, "team") && c.accept != table {
			t.Errorf("%s: got %s, want the annotation \"team\" in it", c.target, body)
		}
		isComplete := c.values == 3 || c.values == 2 && strings.HasPrefix(c.target, shop) || c.values == 1
		if warned := w.Header().Get("Warning") != ""; warned == isComplete {
			t.Errorf("bob may read %v: %s: got Warning %q, want a warning: %t", c.may, c.target, w.Header().Get("Warning"), !isComplete)
		}
	}
}

// TestSecretData_Watch checks that a watch checks the permission of the user for each event, and that
// the event contains the data only if the user may read the data. A change of hidden data also causes
// an event.
func TestSecretData_Watch(t *testing.T) {
	n := withSecrets()
	may := make(chan bool, 8)
	h := serve(Options{State: n, MayReadSecret: func(context.Context, auth.User, string, string) bool { return <-may }})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(auth.WithUser(r.Context(), auth.User{Name: "bob"})))
	}))
	t.Cleanup(s.Close)
	may <- false
	may <- true
	may <- false
	e := startWatch(t, s.URL, "/api/v1/secrets?watch=1")
	shows := func(want bool) {
		t.Helper()
		if !e.lines.Scan() {
			t.Fatal("the watch ended, want another event")
		}
		if got := strings.Contains(e.lines.Text(), hidden); got != want {
			t.Errorf("event contains the data of the Secret: got %t, want %t: %s", got, want, e.lines.Text())
		}
	}
	shows(false)
	shows(true)
	shows(false)
	may <- false
	n.UpdateView(func(v *server.View) {
		o := v.Objects().Secrets
		o[0] = &server.ObjectView{Object: &v1.Secret{ObjectMeta: o[0].Object.(*v1.Secret).ObjectMeta, Data: map[string][]byte{"k": []byte("hidden too")}}}
		v.Objects = func() *server.Objects { return &server.Objects{Secrets: o} }
	})
	shows(false)
	may <- true // the event of a deletion contains the last data
	n.UpdateView(func(v *server.View) {
		o := v.Objects().Secrets[1:]
		v.Objects = func() *server.Objects { return &server.Objects{Secrets: o} }
	})
	shows(true)
}
