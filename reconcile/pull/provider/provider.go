// Package provider runs image credential provider plugins: programs that return the
// credentials for some registries, as configured by the kubelet's flag
// --image-credential-provider-config.
//
//	image ─▶ matchImages ─▶ cache ─▶ plugin ─▶ cache
//	            │ no           │ yes    │ failed
//	            ▼              ▼        ▼
//	          nothing      credentials  nothing, and an error
//
// The responses of plugins are secret: no error and no log quotes them.
package provider

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	config "k8s.io/kubelet/config/v1"
	wire "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

// Plugins is a list of plugins. It is safe for concurrent use.
type Plugins struct {
	plugins []*plugin
}

// New returns the plugins that providers configures. providers must be valid. dir is the directory
// of the programs.
func New(dir string, providers []config.CredentialProvider) *Plugins {
	p := &Plugins{}
	for _, c := range providers {
		p.plugins = append(p.plugins, &plugin{
			CredentialProvider: c, path: filepath.Join(dir, c.Name), timeout: time.Minute,
			cache: cache{runs: map[string]*sharedRun{}, entries: map[string]cacheEntry{}},
		})
	}
	return p
}

// Credentials returns the credentials of all plugins for a repository such as
// "docker.io/library/nginx", in the order to try them: credentials with a more specific key come
// first. Credentials with equal keys are in the order of the plugins. If plugins fail, Credentials
// returns an error that names each of them, together with the credentials of the other plugins.
func (p *Plugins) Credentials(ctx context.Context, repository string) ([]*cri.AuthConfig, error) {
	ring := keyring{}
	var failed []string
	for _, each := range p.plugins {
		if !each.matchesImage(repository) {
			continue
		}
		auth, err := each.credentialsFor(ctx, repository)
		if err != nil {
			failed = append(failed, fmt.Sprintf("credential provider %s failed for %s: %v", each.Name, repository, err))
		}
		ring.add(auth)
	}
	if len(failed) > 0 {
		return ring.matching(repository), errors.New(strings.Join(failed, "; "))
	}
	return ring.matching(repository), nil
}

// A plugin is the program of a credential provider, with its cached responses.
type plugin struct {
	config.CredentialProvider
	path    string
	timeout time.Duration // timeout of a run; one minute, as in the kubelet

	cache
}

// matchesImage reports whether a pattern in matchImages of the plugin matches a repository.
func (p *plugin) matchesImage(repository string) bool {
	for _, pattern := range p.MatchImages {
		if matches(pattern, repository) {
			return true
		}
	}
	return false
}

// cacheDuration returns how long a response is cached. If the result is not positive, the response
// is not cached.
func (p *plugin) cacheDuration(r *wire.CredentialProviderResponse) time.Duration {
	switch {
	case r.CacheDuration != nil:
		return r.CacheDuration.Duration
	case p.DefaultCacheDuration != nil:
		return p.DefaultCacheDuration.Duration
	}
	return 0
}
