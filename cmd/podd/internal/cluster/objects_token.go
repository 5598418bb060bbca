package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	authentication "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// A token is asked for anew after four fifths of its life or a day, whichever comes
// first, less up to ten seconds: nodes that began together do not go on together.
const (
	oldest  = 24 * time.Hour
	earlier = 10 * time.Second
)

// token keeps a token of a pod's service account, good for that pod alone, valid.
// While the cluster gives no other, the last one stays.
func (l *lookup) token(ctx context.Context, pod *v1.Pod, t *v1.ServiceAccountTokenProjection) {
	b, began := backoff{first: soon}, time.Now()
	for ctx.Err() == nil {
		got, err := l.client.token(ctx, pod, t)
		if err != nil {
			if !l.told && answered(err) && time.Since(began) >= lag {
				l.send(ctx, finding{lack: manifest.Lack{Why: fmt.Sprintf("failed to fetch token: %v", told(err))}})
				l.told = false
			}
			sleep(ctx, spread(b.upTo(mostBlind)))
			continue
		}
		b = backoff{first: soon}
		l.send(ctx, finding{object: token{[]byte(got.Status.Token), got.Status.ExpirationTimestamp}})
		sleep(ctx, renewal(time.Duration(*got.Spec.ExpirationSeconds)*time.Second)-rand.N(earlier))
	}
}

// renewal is, whatever this machine's clock says, when a token with so much life before it is to be asked for anew.
func renewal(life time.Duration) time.Duration {
	return max(min(life*4/5, oldest), 2*earlier)
}

func (c *client) token(ctx context.Context, pod *v1.Pod, t *v1.ServiceAccountTokenProjection) (*authentication.TokenRequest, error) {
	ask := &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{
		ExpirationSeconds: t.ExpirationSeconds,
		BoundObjectRef:    &authentication.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	if t.Audience != "" {
		ask.Spec.Audiences = []string{t.Audience}
	}
	var got authentication.TokenRequest
	q := c.core.Post().Namespace(pod.Namespace).Resource("serviceaccounts").Name(pod.Spec.ServiceAccountName).SubResource("token").Body(ask)
	if err := c.into(ctx, q, &got); err != nil {
		return nil, err
	}
	if got.Status.Token == "" || got.Spec.ExpirationSeconds == nil {
		return nil, c.at(fmt.Errorf("the answer has no token, or does not say how long it is good for"))
	}
	return &got, nil
}
