// Package provider runs image credential provider plugins: programs that return the
// credentials for some registries, as configured by the kubelet's flag
// --image-credential-provider-config. A plugin may use a token of the pod's service account (KEP-4412).
//
//	image ─▶ matchImages ─▶ service account ─▶ cache ─▶ plugin ─▶ cache
//	            │ no                              │ yes    │ failed
//	            ▼                                 ▼        ▼
//	          nothing                     credentials  nothing, and an error
//
// The responses of plugins are secret: no error and no log quotes them.
package provider

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	config "k8s.io/kubelet/config/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
	wire "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

// Plugins is a list of plugins. It is safe for concurrent use.
type Plugins struct {
	plugins []*plugin
}

// A Request describes an image for which credentials are requested.
type Request struct {
	// Repository is the name of the image with its registry and without tag and digest, such as
	// "docker.io/library/nginx".
	Repository string
	Pod        Pod
}

// A Credential is a user and a password for an image.
type Credential struct {
	Auth *cri.AuthConfig
	// ServiceAccount is the service account of the token that the plugin has received, or nil.
	ServiceAccount *kubelet.ImagePullServiceAccount
}

// Options configure Plugins.
type Options struct {
	// Dir is the directory of the programs.
	Dir string
	// Providers is the configuration of the plugins. It must be valid.
	Providers []config.CredentialProvider
	// Accounts is nil if no API server issues tokens for pods.
	Accounts ServiceAccounts
	// OnRun is called after each run of a plugin. It must be safe for concurrent use. It may be nil.
	OnRun func(Run)
}

// A Run is a run of the program of a plugin.
type Run struct {
	Plugin string // name of the plugin
	Took   time.Duration
	// HasFailed reports whether the program failed, timed out or wrote too much. As in the kubelet, a
	// program with an invalid response has not failed.
	HasFailed bool
}

// New returns the configured plugins.
func New(o Options) *Plugins {
	p := &Plugins{}
	for _, c := range o.Providers {
		p.plugins = append(p.plugins, &plugin{
			CredentialProvider: c, path: filepath.Join(o.Dir, c.Name), timeout: time.Minute, onRun: o.OnRun,
			accounts: o.Accounts, tokens: &tokenCache{tokens: map[tokenKey]cachedToken{}},
			cache: cache{runs: map[cacheKey]*sharedRun{}, entries: map[cacheKey]cacheEntry{}},
		})
	}
	return p
}

// Credentials returns the credentials of all plugins for an image, in the order to try them:
// credentials with a more specific key come first. Credentials with equal keys are in the order of the
// plugins. If plugins fail, Credentials returns an error that names each of them, together with the
// credentials of the other plugins.
func (p *Plugins) Credentials(ctx context.Context, r Request) ([]Credential, error) {
	ring := keyring{}
	var messages []string
	for _, pl := range p.plugins {
		if !pl.matchesImage(r.Repository) {
			continue
		}
		auth, account, err := pl.credentialsForPod(ctx, r)
		if err != nil {
			messages = append(messages, fmt.Sprintf("credential provider %s failed for %s: %v", pl.Name, r.Repository, err))
		}
		ring.add(auth, account)
	}
	if len(messages) > 0 {
		return ring.credentialsForRepository(r.Repository), errors.New(strings.Join(messages, "; "))
	}
	return ring.credentialsForRepository(r.Repository), nil
}

// UsesServiceAccount reports whether the credentials for an image depend on the service account of the
// pod.
func (p *Plugins) UsesServiceAccount(r Request) bool {
	return slices.ContainsFunc(p.plugins, func(each *plugin) bool { return each.usesServiceAccount(r) })
}

// ServiceAccount returns the service account of the pod if a plugin uses it for the image. Otherwise it
// returns nil.
func (p *Plugins) ServiceAccount(ctx context.Context, r Request) (*kubelet.ImagePullServiceAccount, error) {
	var messages []string
	for _, pl := range p.plugins {
		if !pl.usesServiceAccount(r) {
			continue
		}
		a, _, err := pl.identify(ctx, r.Pod)
		if a != nil {
			return &a.ImagePullServiceAccount, nil
		}
		if err != nil {
			messages = append(messages, fmt.Sprintf("credential provider %s failed for %s: %v", pl.Name, r.Repository, err))
		}
	}
	if len(messages) > 0 {
		return nil, errors.New(strings.Join(messages, "; "))
	}
	return nil, nil
}

// A plugin is the program of a credential provider, with its cached responses.
type plugin struct {
	config.CredentialProvider
	path    string
	timeout time.Duration // timeout of a run; one minute, as in the kubelet
	onRun   func(Run)     // see Options.OnRun

	accounts ServiceAccounts // nil if no API server issues tokens
	tokens   *tokenCache
	cache
}

// usesServiceAccount reports whether the plugin uses the service account of the pod for an image.
func (p *plugin) usesServiceAccount(r Request) bool {
	return p.TokenAttributes != nil && p.accounts != nil && r.Pod.ServiceAccount != "" && p.matchesImage(r.Repository)
}

// credentialsForPod returns the credentials for an image, and the service account to which they belong,
// or nil.
func (p *plugin) credentialsForPod(ctx context.Context, r Request) (credentials, *kubelet.ImagePullServiceAccount, error) {
	a, runs, err := p.authenticate(ctx, r.Pod)
	if err != nil || !runs {
		return nil, nil, err
	}
	auth, err := p.credentialsFor(ctx, r.Repository, a)
	if err != nil || a == nil {
		return auth, nil, err
	}
	return auth, &a.ImagePullServiceAccount, nil
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
