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

// asking is what a plugin is being asked and what it has answered.
type asking struct {
	mu      sync.Mutex         // guards all following fields
	flights map[string]*flight // by repository
	kept    map[string]kept    // by cacheKey
}

// flight is a plugin being run, for all who ask the same at the time.
type flight struct {
	done chan struct{} // closed when auth and err are set
	auth credentials
	err  error
}

// credentials are by the pattern of the images that they are for.
type credentials map[string]wire.AuthConfig

type kept struct {
	credentials
	until time.Time
}

// everywhere is the key of what is for all images; no repository is so named.
const everywhere = "<global>"

// cacheKey is what an answer for a repository is kept under; "" for a type that
// does not exist.
func cacheKey(kind wire.PluginCacheKeyType, repository string) string {
	switch kind {
	case wire.ImagePluginCacheKeyType:
		return repository
	case wire.RegistryPluginCacheKeyType:
		registry, _, _ := strings.Cut(repository, "/")
		return registry
	case wire.GlobalPluginCacheKeyType:
		return everywhere
	}
	return ""
}

// ask returns what is kept, or joins who asks the same, or runs the plugin.
func (p *plugin) ask(ctx context.Context, repository string) (credentials, error) {
	for {
		known, f, mine := p.join(repository)
		switch {
		case f == nil:
			return known, nil
		case mine:
			answer, err := p.run(ctx, repository)
			p.land(repository, f, answer, err)
			return f.auth, f.err
		}
		select {
		case <-f.done:
			// That whoever ran it was no longer wanted says nothing to others.
			if !errors.Is(f.err, context.Canceled) {
				return f.auth, f.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// join finds what is kept for a repository, or else a flight; mine says that
// the caller has to make it.
func (p *plugin) join(repository string) (known credentials, f *flight, mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(p.kept, func(_ string, k kept) bool { return !now.Before(k.until) })
	for _, kind := range []wire.PluginCacheKeyType{
		wire.ImagePluginCacheKeyType, wire.RegistryPluginCacheKeyType, wire.GlobalPluginCacheKeyType,
	} {
		if k, ok := p.kept[cacheKey(kind, repository)]; ok {
			return k.credentials, nil, false
		}
	}
	if f, ok := p.flights[repository]; ok {
		return nil, f, false
	}
	f = &flight{done: make(chan struct{})}
	p.flights[repository] = f
	return nil, f, true
}

// land ends a flight and keeps what is to be kept.
func (p *plugin) land(repository string, f *flight, answer *wire.CredentialProviderResponse, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.flights, repository)
	defer close(f.done)
	if f.err = err; err != nil {
		return
	}
	f.auth = answer.Auth
	if d := p.lasting(answer); d > 0 {
		p.kept[cacheKey(answer.CacheKeyType, repository)] = kept{f.auth, time.Now().Add(d)}
	}
}
