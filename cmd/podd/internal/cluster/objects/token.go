package objects

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	authentication "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/backoff"
	"podd/manifest"
)

// A token is renewed after four fifths of its lifetime or after maxTokenAge, whichever is first.
// A random time of up to tokenJitter is subtracted, so that nodes that started at the same time
// do not renew at the same time.
const (
	maxTokenAge = 24 * time.Hour
	tokenJitter = 10 * time.Second
)

// renewToken requests a service account token that is bound to the pod, sends it, and renews it
// until ctx is done. If a renewal fails, the last token stays in use and renewToken retries.
func (l *lookup) renewToken(ctx context.Context, pod *v1.Pod, t *v1.ServiceAccountTokenProjection) {
	b, startTime := backoff.Backoff{InitialWait: firstLookupWait}, time.Now()
	for ctx.Err() == nil {
		response, err := requestToken(ctx, l.client, tokenRequest{pod: pod, account: pod.Spec.ServiceAccountName, audience: t.Audience, expirationSeconds: t.ExpirationSeconds})
		if err != nil {
			if !l.hasSentResult && apiserver.IsAPIError(err) && time.Since(startTime) >= bindingLag {
				l.send(ctx, lookupResult{missing: manifest.MissingObject{Message: fmt.Sprintf("failed to fetch token: %v", apiserver.WithoutHost(err))}})
				l.hasSentResult = false
			}
			backoff.Sleep(ctx, backoff.WithJitter(b.NextUpTo(apiserver.MaxUncachedWait)))
			continue
		}
		b = backoff.Backoff{InitialWait: firstLookupWait}
		l.send(ctx, lookupResult{object: token{[]byte(response.Status.Token), response.Status.ExpirationTimestamp}})
		backoff.Sleep(ctx, renewalDelay(time.Duration(*response.Spec.ExpirationSeconds)*time.Second)-rand.N(tokenJitter))
	}
}

// renewalDelay returns the time between the request and the renewal of a token with the given
// lifetime. It does not use the expiration time, because the clock of the API server may differ.
func renewalDelay(lifetime time.Duration) time.Duration {
	return max(min(lifetime*4/5, maxTokenAge), 2*tokenJitter)
}

// A tokenRequest describes a service account token that is bound to a pod.
type tokenRequest struct {
	pod               *v1.Pod   // only its metadata is used
	account           string    // name of the service account
	accountUID        types.UID // the required UID of the service account, or ""
	audience          string    // "" means the audience of the API server
	expirationSeconds *int64    // nil means the default of the API server
}

// requestToken requests a service account token that is bound to a pod.
func requestToken(ctx context.Context, c *apiserver.Client, r tokenRequest) (*authentication.TokenRequest, error) {
	body := &authentication.TokenRequest{
		ObjectMeta: metav1.ObjectMeta{UID: r.accountUID},
		Spec: authentication.TokenRequestSpec{
			ExpirationSeconds: r.expirationSeconds,
			BoundObjectRef:    &authentication.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: r.pod.Name, UID: r.pod.UID},
		},
	}
	if r.audience != "" {
		body.Spec.Audiences = []string{r.audience}
	}
	var response authentication.TokenRequest
	q := c.Core.Post().Namespace(r.pod.Namespace).Resource("serviceaccounts").Name(r.account).SubResource("token").Body(body)
	if err := c.Do(ctx, q, &response); err != nil {
		return nil, err
	}
	if response.Status.Token == "" || response.Spec.ExpirationSeconds == nil {
		return nil, c.WithHost(errors.New("the response to the token request contains no token or no expirationSeconds"))
	}
	return &response, nil
}
