package objects

import (
	"errors"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/reconcile/pull/provider"
)

// TestServiceAccounts checks the requests for the service account and the token of a pod.
func TestServiceAccounts(t *testing.T) {
	f := &clustertest.API{}
	f.Objects = map[string]apiserver.Object{"serviceaccounts/team/robot": &v1.ServiceAccount{
		TypeMeta: metav1.TypeMeta{Kind: "ServiceAccount", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "robot", UID: "sa-uid"},
	}}
	api := clustertest.NewClient(t, f, apiserver.Options{QPS: 5000, Burst: 5000})
	var accounts ServiceAccounts
	pod := provider.Pod{NamespacedName: types.NamespacedName{Namespace: "team", Name: "web"}, UID: "pod-uid", ServiceAccount: "robot"}
	if _, err := accounts.ServiceAccount(t.Context(), "team", "robot"); !errors.Is(err, apiserver.ErrNotConnected) {
		t.Errorf("service account before the connection: got error %v, want %v", err, apiserver.ErrNotConnected)
	}
	if _, _, err := accounts.PodToken(t.Context(), pod, "sa-uid", "registry"); !errors.Is(err, apiserver.ErrNotConnected) {
		t.Errorf("token before the connection: got error %v, want %v", err, apiserver.ErrNotConnected)
	}
	accounts.SetClient(api)
	if got, err := accounts.ServiceAccount(t.Context(), "team", "robot"); err != nil || got.UID != "sa-uid" {
		t.Errorf("existing service account: got %+v, error %v; want UID sa-uid", got, err)
	}
	if _, err := accounts.ServiceAccount(t.Context(), "team", "missing"); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("missing service account: got error %v, want one that contains \"not found\"", err)
	}
	token, lifetime, err := accounts.PodToken(t.Context(), pod, "sa-uid", "registry")
	if token != "robot-1" || lifetime != time.Hour || err != nil {
		t.Errorf("got token %q, lifetime %s, error %v; want robot-1 and one hour", token, lifetime, err)
	}
	r := f.TokenRequests[0]
	if b := r.Spec.BoundObjectRef; r.UID != "sa-uid" || b == nil || b.Name != "web" || b.UID != "pod-uid" || len(r.Spec.Audiences) != 1 || r.Spec.Audiences[0] != "registry" {
		t.Errorf("got token request %+v, want one for the audience \"registry\" that is bound to the pod web and contains the UID of the service account", r)
	}
}
