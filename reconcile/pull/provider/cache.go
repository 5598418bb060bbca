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

// A cache contains the responses and the runs in progress of a plugin.
type cache struct {
	mu      sync.Mutex            // guards all following fields
	runs    map[string]*sharedRun // by repository
	entries map[string]entry      // by cacheKey
}

// A sharedRun is a run of a plugin. Its result is shared by all callers that need the same
// credentials.
type sharedRun struct {
	done chan struct{} // closed when auth and err are set
	auth credentials
	err  error
}

// credentials contains the credentials of a response by the pattern of their images.
type credentials map[string]wire.AuthConfig

// An entry is a cached response.
type entry struct {
	credentials
	until time.Time
}

// globalKey is the key of responses for all images. It is not a valid repository name.
const globalKey = "<global>"

// cacheKey returns the key of a response for a repository, or "" for an unknown type.
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

// get returns the credentials for a repository: from the cache, from a run in progress,
// or by running the plugin.
func (p *plugin) get(ctx context.Context, repository string) (credentials, error) {
	for {
		cached, f, owner := p.join(repository)
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
			// If the caller that ran the plugin was canceled, try again.
			if !errors.Is(f.err, context.Canceled) {
				return f.auth, f.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// join returns the cached credentials for a repository. If there are none, f is the run in
// progress, or a new one. If owner is true, f is new, and the caller must run the plugin and
// call finish.
func (p *plugin) join(repository string) (cached credentials, f *sharedRun, owner bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(p.entries, func(_ string, k entry) bool { return !now.Before(k.until) })
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
		p.entries[cacheKey(res.CacheKeyType, repository)] = entry{f.auth, time.Now().Add(d)}
	}
}
