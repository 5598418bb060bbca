package kube

import (
	"net/http/httptest"
	"strings"
	"testing"

	"podd/server/auth"
	"podd/server/kube/kubetest"
)

// TestReview_Forwarded checks that a review of a request that an API server forwards reports
// neither the permissions of root nor the permission to read Secrets, because the data of Secrets
// is hidden from forwarded requests.
func TestReview_Forwarded(t *testing.T) {
	api := newAPI(kubetest.NewNode())
	api.Authorizer = auth.ProxyAuthorizer{Authorizer: auth.WriteAuthorizer{Authorizer: auth.AllowAll{}}, Node: "n1"}
	h := api.Handler()
	review := func(u auth.User, kind, spec string) string {
		t.Helper()
		body := `{"kind":"` + kind + `","apiVersion":"authorization.k8s.io/v1","spec":` + spec + `}`
		w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/apis/authorization.k8s.io/v1/"+strings.ToLower(kind)+"s", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(w, r.WithContext(auth.WithUser(r.Context(), u)))
		if w.Code != 201 {
			t.Fatalf("%s %s: got %d %s, want 201", kind, spec, w.Code, w.Body)
		}
		return w.Body.String()
	}
	for _, forwarded := range []bool{false, true} {
		user := auth.RootUser()
		user.IsForwarded = forwarded
		for spec, open := range map[string]bool{
			`{"verb":"list","resource":"pods"}`:                                  true,
			`{"verb":"create","resource":"pods","namespace":"a"}`:                false,
			`{"verb":"get","resource":"secrets","namespace":"a","name":"token"}`: false,
		} {
			want := `"allowed":false`
			if open || !forwarded {
				want = `"allowed":true`
			}
			if got := review(user, "SelfSubjectAccessReview", `{"resourceAttributes":`+spec+`}`); !strings.Contains(got, want) {
				t.Errorf("forwarded %t: %s: got %s, want %s", forwarded, spec, got, want)
			}
		}
		rules := review(user, "SelfSubjectRulesReview", `{"namespace":"a"}`)
		if all := strings.Contains(rules, `"resources":["*"]`); all == forwarded {
			t.Errorf("forwarded %t: got rules %s, want all resources in them only if the request is not forwarded", forwarded, rules)
		}
	}
}
