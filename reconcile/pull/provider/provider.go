// Package provider asks image credential-provider plugins: programs that know
// the credentials of some registries, as the kubelet's
// --image-credential-provider-config describes them.
//
//	image ─▶ matchImages ─▶ cache ─▶ plugin ─▶ cache
//	            │ no           │ yes    │ failed
//	            ▼              ▼        ▼
//	          nothing      credentials  nothing, and an error
//
// What plugins answer is secret: no error and no log quotes it.
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

// Plugins are asked together. Safe for concurrent use.
type Plugins struct {
	all []*plugin
}

// New returns those that providers describe, checked before, whose programs are
// in dir.
func New(dir string, providers []config.CredentialProvider) *Plugins {
	p := &Plugins{}
	for _, c := range providers {
		p.all = append(p.all, &plugin{
			CredentialProvider: c, path: filepath.Join(dir, c.Name), patience: time.Minute,
			asking: asking{flights: map[string]*flight{}, kept: map[string]kept{}},
		})
	}
	return p
}

// Credentials are those of all plugins for a repository such as
// "docker.io/library/nginx", in the order to try them: by the key they stand
// under, the more specific first, then by plugin. An error tells of each plugin
// that failed, and comes beside what the others have.
func (p *Plugins) Credentials(ctx context.Context, repository string) ([]*cri.AuthConfig, error) {
	ring := keyring{}
	var failed []string
	for _, one := range p.all {
		if !one.serves(repository) {
			continue
		}
		auth, err := one.ask(ctx, repository)
		if err != nil {
			failed = append(failed, fmt.Sprintf("credential provider %s, asked for %s: %v", one.Name, repository, err))
		}
		ring.add(auth)
	}
	if len(failed) > 0 {
		return ring.matching(repository), errors.New(strings.Join(failed, "; "))
	}
	return ring.matching(repository), nil
}

// plugin is one program with what it said.
type plugin struct {
	config.CredentialProvider
	path     string
	patience time.Duration // with one run; Kubernetes' limit

	asking // what is under way and what is kept
}

func (p *plugin) serves(repository string) bool {
	for _, pattern := range p.MatchImages {
		if matches(pattern, repository) {
			return true
		}
	}
	return false
}

// lasting is for how long an answer is kept; 0: not at all.
func (p *plugin) lasting(r *wire.CredentialProviderResponse) time.Duration {
	switch {
	case r.CacheDuration != nil:
		return r.CacheDuration.Duration
	case p.DefaultCacheDuration != nil:
		return p.DefaultCacheDuration.Duration
	}
	return 0
}
