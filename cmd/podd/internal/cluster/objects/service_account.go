package objects

import (
	"context"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/reconcile/pull/provider"
)

// ServiceAccounts requests service accounts and tokens for credential providers. It is safe for
// concurrent use.
type ServiceAccounts struct {
	client atomic.Pointer[apiserver.Client] // nil until SetClient is called
}

// providerTokenSeconds is the lifetime of tokens for credential providers: the default of the API
// server, which the kubelet uses.
const providerTokenSeconds = 3600

var _ provider.ServiceAccounts = (*ServiceAccounts)(nil)

// SetClient sets the client for further requests. Requests fail until SetClient is called.
func (s *ServiceAccounts) SetClient(c *apiserver.Client) { s.client.Store(c) }

// ServiceAccount returns the service account with this name. It sends a request each time, because a node
// is not allowed to watch service accounts.
func (s *ServiceAccounts) ServiceAccount(ctx context.Context, namespace, name string) (*v1.ServiceAccount, error) {
	c := s.client.Load()
	if c == nil {
		return nil, apiserver.ErrNotConnected
	}
	var account v1.ServiceAccount
	if err := c.Do(ctx, c.Core.Get().Namespace(namespace).Resource("serviceaccounts").Name(name), &account); err != nil {
		return nil, apiserver.WithoutHost(err)
	}
	return &account, nil
}

// PodToken implements provider.ServiceAccounts. The API server rejects the request if the service
// account has another UID.
func (s *ServiceAccounts) PodToken(ctx context.Context, pod provider.Pod, account types.UID, audience string) (token string, lifetime time.Duration, err error) {
	c := s.client.Load()
	if c == nil {
		return "", 0, apiserver.ErrNotConnected
	}
	response, err := requestToken(ctx, c, tokenRequest{
		pod:     &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}},
		account: pod.ServiceAccount, accountUID: account, audience: audience, expirationSeconds: new(int64(providerTokenSeconds)),
	})
	if err != nil {
		return "", 0, apiserver.WithoutHost(err)
	}
	return response.Status.Token, time.Duration(*response.Spec.ExpirationSeconds) * time.Second, nil
}
