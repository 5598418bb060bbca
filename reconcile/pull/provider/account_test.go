package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	config "k8s.io/kubelet/config/v1"
)

// An issuer is an API server with service accounts with names that begin with "sa".
type issuer struct {
	annotations map[string]string
	err         error
	tokens      int // the number of issued tokens
}

func (i *issuer) ServiceAccount(_ context.Context, namespace, name string) (*core.ServiceAccount, error) {
	if !strings.HasPrefix(name, "sa") {
		return nil, errors.New("not found")
	}
	return &core.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), Annotations: i.annotations}}, nil
}

func (i *issuer) PodToken(_ context.Context, pod Pod, account types.UID, audience string) (string, time.Duration, error) {
	i.tokens++
	return fmt.Sprintf("token-%d-of-%s-%s-for-%s", i.tokens, pod.UID, account, audience), time.Hour, i.err
}

// withTokens returns a plugin for a.io that uses tokens.
func withTokens(cacheType config.ServiceAccountTokenCacheType, required bool, args ...string) config.CredentialProvider {
	p := pluginFor("a.io", args...)
	p.TokenAttributes = &config.ServiceAccountTokenAttributes{
		ServiceAccountTokenAudience: "me", CacheType: cacheType, RequireServiceAccount: &required, OptionalServiceAccountAnnotationKeys: []string{"x.io/optional"},
	}
	return p
}

func newAccountFixture(t *testing.T, i *issuer, p config.CredentialProvider) *fixture {
	t.Helper()
	b := newFixture(t, p)
	b.plugins[0].accounts = i
	return b
}

// request requests credentials for a pod and returns the users, each with its service account.
func (b *fixture) request(pod, account string) (string, error) {
	r := Request{Repository: "a.io/web", Pod: Pod{NamespacedName: types.NamespacedName{Namespace: "ns", Name: pod}, UID: types.UID(pod), ServiceAccount: account}}
	all, err := b.Credentials(b.t.Context(), r)
	var users []string
	for _, c := range all {
		user := c.Auth.Username
		if s := c.ServiceAccount; s != nil {
			user += "@" + s.Namespace + "/" + s.Name + "/" + s.UID
		}
		users = append(users, user)
	}
	return strings.Join(users, " "), err
}

// TestToken checks the request of a plugin that uses tokens.
func TestToken(t *testing.T) {
	b := newAccountFixture(t, &issuer{annotations: map[string]string{"x.io/optional": "o", "x.io/other": "hidden"}}, withTokens(config.ServiceAccountServiceAccountTokenCacheType, true, "answer", response("ann", `"cacheKeyType": "Image"`)))
	if users, err := b.request("p1", "sa1"); users != "ann@ns/sa1/uid-sa1" || err != nil {
		t.Errorf("got users %q (error %v), want ann with the service account", users, err)
	}
	data, err := os.ReadFile(b.requestLog)
	want := `{"kind":"CredentialProviderRequest","apiVersion":"` + v1 + `","image":"a.io/web","serviceAccountToken":"token-1-of-p1-uid-sa1-for-me","serviceAccountAnnotations":{"x.io/optional":"o"}}` + "\n"
	if string(data) != want || err != nil {
		t.Errorf("got request %s, want %s; %v", data, want, err)
	}
}

// TestToken_Pods checks for which pods a plugin that uses tokens runs, and with which result.
func TestToken_Pods(t *testing.T) {
	answer := []string{"answer", response("ann", `"cacheKeyType": "Image"`)}
	needsAnnotation := withTokens(config.TokenServiceAccountTokenCacheType, true, answer...)
	needsAnnotation.TokenAttributes.RequiredServiceAccountAnnotationKeys = []string{"x.io/id"}
	echo := response("token", `"cacheKeyType": "Image"`)
	echo = strings.Replace(echo, "hunter2", "token-1-of-p1-uid-sa1-for-me", 1)
	for name, test := range map[string]struct {
		plugin   config.CredentialProvider
		issuer   issuer
		account  string
		users    string
		err      string
		requests int
	}{
		"a service account":             {withTokens("ServiceAccount", true, answer...), issuer{}, "sa1", "ann@ns/sa1/uid-sa1", "", 1},
		"none, but one is required":     {withTokens("ServiceAccount", true, answer...), issuer{}, "", "", "", 0},
		"none, and none is required":    {withTokens("ServiceAccount", false, answer...), issuer{}, "", "ann", "", 1},
		"a missing service account":     {withTokens("ServiceAccount", false, answer...), issuer{}, "other", "", "getting service account ns/other: not found", 0},
		"no token":                      {withTokens("ServiceAccount", true, answer...), issuer{err: errors.New("forbidden")}, "sa1", "", "requesting a token of service account ns/sa1: forbidden", 0},
		"a required annotation":         {needsAnnotation, issuer{annotations: map[string]string{"x.io/id": "1"}}, "sa1", "ann@ns/sa1/uid-sa1", "", 1},
		"no required annotation":        {needsAnnotation, issuer{}, "sa1", "", "", 0},
		"the token as a password":       {withTokens("Token", true, "answer", echo), issuer{}, "sa1", "token@ns/sa1/uid-sa1", "", 1},
		"a token that would be shared":  {withTokens("ServiceAccount", true, "answer", echo), issuer{}, "sa1", "", "set cacheType: Token", 1},
		"a plugin that uses no account": {pluginFor("a.io", answer...), issuer{}, "sa1", "ann", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newAccountFixture(t, &test.issuer, test.plugin)
			users, err := b.request("p1", test.account)
			if users != test.users || (err == nil) != (test.err == "") || err != nil && (!strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), "token-1")) {
				t.Errorf("got users %q and error %v; want users %q and error %q", users, err, test.users, test.err)
			}
			if got := b.requests(); got != test.requests {
				t.Errorf("got %d requests, want %d", got, test.requests)
			}
		})
	}
}

// TestToken_Cache checks which pods share a response.
func TestToken_Cache(t *testing.T) {
	for _, test := range []struct {
		cacheType config.ServiceAccountTokenCacheType
		pods      string // pod/account
		requests  int
	}{
		{"ServiceAccount", "p1/sa1 p1/sa1 p2/sa1", 1},
		{"ServiceAccount", "p1/sa1 p2/sa2", 2},
		{"ServiceAccount", "p1/sa1 p2/", 2},
		{"Token", "p1/sa1 p1/sa1", 1},
		{"Token", "p1/sa1 p2/sa1", 2},
	} {
		b := newAccountFixture(t, &issuer{}, withTokens(test.cacheType, false, "answer", response("ann", `"cacheKeyType": "Global", "cacheDuration": "1h"`)))
		for pod := range strings.FieldsSeq(test.pods) {
			name, account, _ := strings.Cut(pod, "/")
			users, err := b.request(name, account)
			if want := account != ""; err != nil || strings.Contains(users, "ns/"+account+"/") != want {
				t.Errorf("pod %s: got users %q and error %v; want a user with the pod's service account: %t", pod, users, err, want)
			}
		}
		if got := b.requests(); got != test.requests {
			t.Errorf("cache type %s, pods %s: got %d requests, want %d", test.cacheType, test.pods, got, test.requests)
		}
	}
}

// TestTokenCache checks when another token is requested.
func TestTokenCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, requests := tokenCache{tokens: map[tokenKey]cachedToken{}}, 0
		get := func(pod types.UID) string {
			token, err := c.get(tokenKey{pod: pod}, func() (string, time.Duration, error) {
				requests++
				return fmt.Sprint(requests), time.Hour, nil
			})
			if err != nil {
				t.Error(err)
			}
			return token
		}
		got := get("a") + get("a") + get("b")
		time.Sleep(48*time.Minute - 1)
		got += get("a")
		time.Sleep(time.Nanosecond)
		if got += get("a"); got != "11213" || len(c.tokens) != 1 {
			t.Errorf("got the sequence of tokens %s and %d tokens in the cache; want 11213 and 1", got, len(c.tokens))
		}
	})
}

// TestServiceAccount checks which service account a request uses.
func TestServiceAccount(t *testing.T) {
	b := newAccountFixture(t, &issuer{}, withTokens("Token", true, "fail"))
	for account, want := range map[string]string{"sa1": "uid-sa1", "": ""} {
		r := Request{Repository: "a.io/web", Pod: Pod{ServiceAccount: account}}
		got, err := b.ServiceAccount(t.Context(), r)
		if err != nil || b.UsesServiceAccount(r) != (want != "") || (got != nil) != (want != "") || got != nil && got.UID != want {
			t.Errorf("%q: got %+v (error %v); want UID %q", account, got, err, want)
		}
		r.Repository = "b.io/web"
		if got, err := b.ServiceAccount(t.Context(), r); got != nil || err != nil || b.UsesServiceAccount(r) {
			t.Errorf("an image that does not match: got %+v (error %v); want none", got, err)
		}
	}
	if _, err := b.ServiceAccount(t.Context(), Request{Repository: "a.io/web", Pod: Pod{ServiceAccount: "other"}}); err == nil {
		t.Error("a missing service account: got no error, want one")
	}
}
