package objects

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/manifest"
)

func TestRenewalDelay(t *testing.T) {
	for lifetime, want := range map[time.Duration]time.Duration{
		10 * time.Minute: 8 * time.Minute, time.Hour: 48 * time.Minute, 365 * 24 * time.Hour: 24 * time.Hour, -time.Hour: 20 * time.Second,
	} {
		if got := renewalDelay(lifetime); got != want {
			t.Errorf("renewalDelay(%s): got %s, want %s", lifetime, got, want)
		}
	}
}

// tokenVolume returns a volume with a service account token.
func tokenVolume(audience string, seconds int64) v1.VolumeSource {
	return v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
		{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Audience: audience, ExpirationSeconds: &seconds, Path: "token"}}}}}
}

// TestToken checks that podd requests one token for each combination of pod, audience and lifetime.
// podd must renew a token before it expires, and keep the token if the renewal fails.
func TestToken(t *testing.T) {
	runResolver(t, nil, func(l *testResolver) {
		token := func(name string) string {
			return string(l.objects().Cluster.Tokens[types.NamespacedName{Namespace: "default", Name: name}].Text)
		}
		l.Change(func() {
			l.PutPod(clustertest.NewPodWithVolumes("a", tokenVolume("", 3600), tokenVolume("", 3600), tokenVolume("vault", 600)), "ADDED")
		})
		if n := len(l.TokenRequests); n != 2 || token("uid-a/3600/") == "" || token("uid-a/600/vault") == "" {
			t.Fatalf("got %d token requests, tokens %v; want the 2 tokens uid-a/3600/ and uid-a/600/vault", n, l.objects().Cluster.Tokens)
		}
		for _, q := range l.TokenRequests {
			ref := q.Spec.BoundObjectRef
			if ref == nil || ref.UID != "uid-a" || ref.Name != "a" || ref.Kind != "Pod" || (*q.Spec.ExpirationSeconds == 600) != (len(q.Spec.Audiences) == 1) {
				t.Errorf("got token request %+v, want one that is bound to pod a, and that either requests 600 s for the audience vault, or another lifetime without an audience", q.Spec)
			}
		}
		first := token("uid-a/3600/")
		l.Change(func() { l.RejectsTokens = true })
		clustertest.Advance(50 * time.Minute)
		if token("uid-a/3600/") != first {
			t.Error("50m after the issue of a token for 1h, with rejected renewals: got another token, want the first")
		}
		l.Change(func() { l.RejectsTokens = false })
		clustertest.Advance(apiserver.MaxUncachedWait)
		if token("uid-a/3600/") == first {
			t.Error("after the API server issues tokens again: got the first token, want a new one")
		}
		l.Change(func() { l.PutPod(clustertest.NewPodWithVolumes("a"), "DELETED"); l.TokenRequests = nil })
		clustertest.Advance(2 * time.Hour)
		if n := len(l.TokenRequests); n > 0 || len(l.objects().Cluster.Tokens) > 0 {
			t.Errorf("in 2h after the deletion of the pod: got %d token requests, %d tokens; want no requests, no tokens", n, len(l.objects().Cluster.Tokens))
		}
	})
}

// TestToken_Clock checks that podd renews a token in time even if the clock of this host is wrong.
func TestToken_Clock(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		runResolver(t, nil, func(l *testResolver) {
			l.Change(func() {
				l.ClockLag = ahead
				l.PutPod(clustertest.NewPodWithVolumes("a", tokenVolume("", 3600)), "ADDED")
			})
			clustertest.Advance(90 * time.Minute)
			if n := len(l.TokenRequests); n != 2 {
				t.Errorf("clock ahead by %s: got %d requests for a token of 1h in 90 minutes, want 2", ahead, n)
			}
		})
	}
}

// TestToken_Rejected checks that podd reports why a token is missing if the API server rejects the
// request, and that a later request succeeds.
func TestToken_Rejected(t *testing.T) {
	runResolver(t, nil, func(l *testResolver) {
		l.Change(func() {
			l.RejectsTokens = true
			l.PutPod(clustertest.NewPodWithVolumes("a", tokenVolume("", 3600)), "ADDED")
		})
		clustertest.Advance(3 * time.Second) // podd only reports errors one second after the start of the lookup, and may send the next request 1.3 s later
		ref := manifest.ObjectRef{Kind: "TokenRequest", NamespacedName: types.NamespacedName{Namespace: "default", Name: "uid-a/3600/"}}
		if got, want := l.objects().Cluster.Missing[ref].Message, `failed to fetch token: serviceaccounts "robot" not found`; got != want {
			t.Errorf("rejected request: got %q, want %q", got, want)
		}
		l.Change(func() { l.RejectsTokens = false })
		clustertest.Advance(apiserver.MaxUncachedWait)
		if len(l.objects().Cluster.Tokens) != 1 || len(l.objects().Cluster.Missing) > 0 {
			t.Errorf("accepted request: got objects %+v, want one token and no missing object", l.objects().Cluster)
		}
	})
}
