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
	mu      sync.Mutex            // guards all following fields
	runs    map[string]*sharedRun // by repository
	entries map[string]cacheEntry // by cacheKey
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
	until time.Time
}

// globalKey is the cache key of responses that apply to all images. It is not a valid repository
// name, so it differs from all other keys.
const globalKey = "<global>"

// cacheKey returns the cache key of a response for a repository. kind is the cacheKeyType of the
// response. cacheKey returns "" if kind is unknown.
func cacheKey(kind wire.PluginCacheKeyType, repository string) string {
	switch kind {
	case wire.ImagePluginCacheKeyType:
		return repository
	case wire.RegistryPluginCacheKeyType:
		registry, _, _ := strings.Cut(repository, "/")
		return registry
	case wire.GlobalPluginCacheKeyType:
		return globalKey
	}
	return ""
}

// credentialsFor returns the credentials for a repository. It takes them from the cache or from a
// run in progress. Otherwise it runs the plugin.
func (p *plugin) credentialsFor(ctx context.Context, repository string) (credentials, error) {
	for {
		cached, f, owner := p.joinRun(repository)
		switch {
		case f == nil:
			return cached, nil
		case owner:
			res, err := p.run(ctx, repository)
			p.finish(repository, f, res, err)
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
// progress or a new run. If owner is true, f is new, and the caller must run the plugin and call
// finish.
func (p *plugin) joinRun(repository string) (cached credentials, f *sharedRun, owner bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(p.entries, func(_ string, k cacheEntry) bool { return !now.Before(k.until) })
	for _, kind := range []wire.PluginCacheKeyType{
		wire.ImagePluginCacheKeyType, wire.RegistryPluginCacheKeyType, wire.GlobalPluginCacheKeyType,
	} {
		if k, ok := p.entries[cacheKey(kind, repository)]; ok {
			return k.credentials, nil, false
		}
	}
	if f, ok := p.runs[repository]; ok {
		return nil, f, false
	}
	f = &sharedRun{done: make(chan struct{})}
	p.runs[repository] = f
	return nil, f, true
}

// finish records the result of a run and caches the response for its duration.
func (p *plugin) finish(repository string, f *sharedRun, res *wire.CredentialProviderResponse, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.runs, repository)
	defer close(f.done)
	if f.err = err; err != nil {
		return
	}
	f.auth = res.Auth
	if d := p.cacheDuration(res); d > 0 {
		p.entries[cacheKey(res.CacheKeyType, repository)] = cacheEntry{f.auth, time.Now().Add(d)}
	}
}
