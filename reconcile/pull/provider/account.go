package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	config "k8s.io/kubelet/config/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

// A Pod is a pod for which credentials are requested. The zero value is a pod without a service
// account.
type Pod struct {
	types.NamespacedName
	UID types.UID
	// ServiceAccount is the name of the pod's service account. It is "" if no token can be requested
	// for the pod.
	ServiceAccount string
}

// ServiceAccounts requests service accounts from an API server. It must be safe for concurrent use.
type ServiceAccounts interface {
	ServiceAccount(ctx context.Context, namespace, name string) (*core.ServiceAccount, error)
	// PodToken returns a token of the pod's service account with the given UID. The token is bound to
	// the pod.
	PodToken(ctx context.Context, pod Pod, account types.UID, audience string) (token string, lifetime time.Duration, err error)
}

// An account is the service account that a plugin uses for a request.
type account struct {
	kubelet.ImagePullServiceAccount
	annotations map[string]string // the annotations that the plugin receives
	token       string
	// cacheKey identifies the requests for which the response to this request is valid.
	cacheKey string
}

// identify returns the service account of a pod, without a token. It returns nil if the plugin uses no
// service accounts or the pod has none. canRun is false if the plugin cannot return credentials for
// the pod, so that it must not run.
func (p *plugin) identify(ctx context.Context, pod Pod) (a *account, canRun bool, err error) {
	attributes := p.TokenAttributes
	if attributes == nil {
		return nil, true, nil
	}
	if pod.ServiceAccount == "" || p.accounts == nil {
		return nil, attributes.RequireServiceAccount == nil || !*attributes.RequireServiceAccount, nil
	}
	object, err := p.accounts.ServiceAccount(ctx, pod.Namespace, pod.ServiceAccount)
	if err != nil {
		return nil, false, fmt.Errorf("getting service account %s/%s: %w", pod.Namespace, pod.ServiceAccount, err)
	}
	a = &account{annotations: map[string]string{}, ImagePullServiceAccount: kubelet.ImagePullServiceAccount{
		UID: string(object.UID), Namespace: pod.Namespace, Name: pod.ServiceAccount,
	}}
	for _, key := range attributes.RequiredServiceAccountAnnotationKeys {
		value, ok := object.Annotations[key]
		if !ok {
			return nil, false, nil // the service account has not opted in
		}
		a.annotations[key] = value
	}
	for _, key := range attributes.OptionalServiceAccountAnnotationKeys {
		if value, ok := object.Annotations[key]; ok {
			a.annotations[key] = value
		}
	}
	return a, true, nil
}

// authenticate works like identify, but also sets the token and the cache key of the service account.
func (p *plugin) authenticate(ctx context.Context, pod Pod) (a *account, canRun bool, err error) {
	a, canRun, err = p.identify(ctx, pod)
	if a == nil || !canRun || err != nil {
		return nil, canRun, err
	}
	a.token, err = p.tokens.get(tokenKey{pod.UID, a.UID, p.TokenAttributes.ServiceAccountTokenAudience}, func() (string, time.Duration, error) {
		return p.accounts.PodToken(ctx, pod, types.UID(a.UID), p.TokenAttributes.ServiceAccountTokenAudience)
	})
	if err != nil {
		return nil, false, fmt.Errorf("requesting a token of service account %s/%s: %w", a.Namespace, a.Name, err)
	}
	token := ""
	if p.TokenAttributes.CacheType == config.TokenServiceAccountTokenCacheType {
		sum := sha256.Sum256([]byte(a.token))
		token = hex.EncodeToString(sum[:])
	}
	key, err := json.Marshal([]any{a.ImagePullServiceAccount, a.annotations, token})
	if err != nil {
		return nil, false, err
	}
	a.cacheKey = string(key)
	return a, true, nil
}

// A tokenKey identifies a token.
type tokenKey struct {
	pod      types.UID
	account  string // UID of the service account
	audience string
}

// A tokenCache contains the tokens of pods, because a pod may need several images.
type tokenCache struct {
	mu     sync.Mutex // guards tokens
	tokens map[tokenKey]cachedToken
}

// A cachedToken is a token that is used until a fifth of its lifetime is left.
type cachedToken struct {
	token      string
	validUntil time.Time
}

// get returns the cached token for key. If there is none, it calls request.
func (c *tokenCache) get(key tokenKey, request func() (token string, lifetime time.Duration, err error)) (string, error) {
	now := time.Now()
	c.mu.Lock()
	maps.DeleteFunc(c.tokens, func(_ tokenKey, t cachedToken) bool { return !now.Before(t.validUntil) })
	entry, ok := c.tokens[key]
	c.mu.Unlock()
	if ok {
		return entry.token, nil
	}
	token, lifetime, err := request()
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens[key] = cachedToken{token, now.Add(lifetime / 5 * 4)}
	return token, nil
}
