package provider

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	wire "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

// A cache contains the cached responses of a plugin and its runs in progress.
type cache struct {
	mu      sync.Mutex // guards all following fields
	runs    map[cacheKey]*sharedRun
	entries map[cacheKey]cacheEntry
}

// A cacheKey identifies a response or a run.
type cacheKey struct {
	scope   string // a repository, a registry or globalScope
	account string // account.cacheKey, or "" without a service account
}

// newCacheKey returns a cacheKey. a may be nil.
func newCacheKey(scope string, a *account) cacheKey {
	if a == nil {
		return cacheKey{scope: scope}
	}
	return cacheKey{scope, a.cacheKey}
}

// A sharedRun is a run of a plugin. Its result is shared by all callers that need the same
// credentials.
type sharedRun struct {
	done chan struct{} // closed when auth and err are set
	auth credentials
	err  error
}

// credentials contains the credentials of a response. The keys are patterns of images.
type credentials map[string]wire.AuthConfig

// A cacheEntry is a cached response.
type cacheEntry struct {
	credentials
	validUntil time.Time
}

// globalScope is the scope of responses that apply to all images. It is not a valid repository name,
// so it differs from all other scopes.
const globalScope = "<global>"

// scopeOf returns the scope of a response for a repository. kind is the cacheKeyType of the response.
// scopeOf returns "" if kind is unknown.
func scopeOf(kind wire.PluginCacheKeyType, repository string) string {
	switch kind {
	case wire.ImagePluginCacheKeyType:
		return repository
	case wire.RegistryPluginCacheKeyType:
		registry, _, _ := strings.Cut(repository, "/")
		return registry
	case wire.GlobalPluginCacheKeyType:
		return globalScope
	}
	return ""
}

// credentialsFor returns the credentials for a repository. It takes them from the cache or from a
// run in progress. Otherwise it runs the plugin. a is nil without a service account.
func (p *plugin) credentialsFor(ctx context.Context, repository string, a *account) (credentials, error) {
	for {
		cachedCredentials, f, isOwner := p.joinRun(repository, a)
		switch {
		case f == nil:
			return cachedCredentials, nil
		case isOwner:
			res, err := p.run(ctx, repository, a)
			p.finish(repository, a, f, res, err)
			return f.auth, f.err
		}
		select {
		case <-f.done:
			// If another caller ran the plugin and was canceled, try again.
			if !errors.Is(f.err, context.Canceled) {
				return f.auth, f.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// joinRun returns the cached credentials for a repository. If there are none, f is the run in
// progress or a new run. If isOwner is true, f is new, and the caller must run the plugin and call
// finish.
func (p *plugin) joinRun(repository string, a *account) (cachedCredentials credentials, f *sharedRun, isOwner bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(p.entries, func(_ cacheKey, k cacheEntry) bool { return !now.Before(k.validUntil) })
	for _, kind := range []wire.PluginCacheKeyType{
		wire.ImagePluginCacheKeyType, wire.RegistryPluginCacheKeyType, wire.GlobalPluginCacheKeyType,
	} {
		if k, ok := p.entries[newCacheKey(scopeOf(kind, repository), a)]; ok {
			return k.credentials, nil, false
		}
	}
	key := newCacheKey(repository, a)
	if f, ok := p.runs[key]; ok {
		return nil, f, false
	}
	f = &sharedRun{done: make(chan struct{})}
	p.runs[key] = f
	return nil, f, true
}

// finish records the result of a run and caches the response for its duration.
func (p *plugin) finish(repository string, a *account, f *sharedRun, res *wire.CredentialProviderResponse, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.runs, newCacheKey(repository, a))
	defer close(f.done)
	if f.err = err; err != nil {
		return
	}
	f.auth = res.Auth
	if d := p.cacheDuration(res); d > 0 {
		p.entries[newCacheKey(scopeOf(res.CacheKeyType, repository), a)] = cacheEntry{f.auth, time.Now().Add(d)}
	}
}
