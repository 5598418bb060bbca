package pull

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// pullOnce waits for a slot and tries to pull an image once. The result contains a warning if the
// pull succeeded although a credential provider failed.
func (p *Puller) pullOnce(ctx context.Context, o request) (pullResult, error) {
	if p.slots != nil {
		select {
		case p.slots <- struct{}{}:
			defer func() { <-p.slots }()
		case <-ctx.Done():
			return pullResult{}, ctx.Err()
		}
	}
	if p.rate != nil {
		if err := p.rate.Wait(ctx); err != nil {
			return pullResult{}, err
		}
	}
	auths := o.auths
	if p.o.Credentials != nil {
		found, err := p.o.Credentials(o.image)
		if err != nil {
			return pullResult{}, imageError(o.image, "ErrImagePull", fmt.Errorf("pulling %s: %w", o.image, err))
		}
		auths = slices.Concat(auths, found)
	}
	began := time.Now()
	ref, warning, err := p.pullWithCredentials(ctx, o, auths)
	got := pullResult{ref: ref, warning: warning, took: time.Since(began)}
	if err != nil {
		return got, err
	}
	got.size = p.querySize(ctx, o.image)
	return got, nil
}

// sizeTimeout limits the query for the size of a pulled image. It is short because the query delays
// the start of the container, and the size is used only for messages.
const sizeTimeout = 200 * time.Millisecond

// querySize returns the size of a pulled image in bytes, or 0 if the runtime does not report
// it within sizeTimeout.
func (p *Puller) querySize(ctx context.Context, image string) uint64 {
	ctx, cancel := context.WithTimeout(ctx, sizeTimeout)
	defer cancel()
	found, _, err := p.o.Runtime.ImageStatus(ctx, image)
	if err != nil {
		return 0
	}
	return found.SizeBytes
}

// pullWithCredentials pulls with auths. If the pull fails and other credentials may help,
// pullWithCredentials pulls with the credentials of the providers. If there are no credentials at
// all, it pulls without credentials. If the pull succeeded although a provider failed, warning
// contains the error of the provider; otherwise it is "".
func (p *Puller) pullWithCredentials(ctx context.Context, o request, auths []*cri.AuthConfig) (ref, warning string, err error) {
	ref, err = p.tryEach(ctx, o.image, auths)
	if len(auths) > 0 && (err == nil || !otherCredentialsMayHelp(err)) || ctx.Err() != nil {
		return ref, "", err
	}
	more, providerErr := p.providerCredentials(ctx, o.image)
	switch {
	case ctx.Err() != nil:
		return "", "", ctx.Err()
	case len(more) > 0:
		ref, err = p.tryEach(ctx, o.image, more)
	case len(auths) == 0:
		if ref, err = p.o.Runtime.PullImage(ctx, o.image, nil, nil); err != nil {
			err = p.addCredentialsHint(err, o)
		}
	}
	if providerErr == nil {
		return ref, "", err
	}
	if err != nil {
		return "", "", addProviderError(err, providerErr)
	}
	return ref, fmt.Sprintf("pulled image %s, but a credential provider failed: %v", o.image, providerErr), nil
}

// providerCredentials returns the credentials of the providers for an image.
func (p *Puller) providerCredentials(ctx context.Context, image string) ([]*cri.AuthConfig, error) {
	if p.o.ProviderCredentials == nil {
		return nil, nil
	}
	return p.o.ProviderCredentials(ctx, fullRepository(image))
}

// tryEach tries to pull with each element of auths. It stops when a pull succeeds, or fails for a
// reason other than its credentials.
func (p *Puller) tryEach(ctx context.Context, image string, auths []*cri.AuthConfig) (ref string, err error) {
	for _, auth := range auths {
		if ref, err = p.o.Runtime.PullImage(ctx, image, auth, nil); err == nil {
			return ref, nil
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if !otherCredentialsMayHelp(err) {
			break
		}
	}
	return "", err
}

// otherCredentialsMayHelp reports whether a pull that failed with err may succeed with other
// credentials. It returns false if the registry is unreachable, or if err is not a
// *runtime.PullError.
func otherCredentialsMayHelp(err error) bool {
	failed, ok := errors.AsType[*runtime.PullError](err)
	return ok && !failed.Unreachable
}

// addProviderError returns the error err of a pull with providerErr appended. It returns err
// unchanged if err is not a *runtime.PullError.
func addProviderError(err, providerErr error) error {
	pull, ok := errors.AsType[*runtime.PullError](err)
	if !ok {
		return err
	}
	annotated := *pull
	annotated.Err = fmt.Errorf("%w; %w", pull.Err, providerErr)
	return &annotated
}

// addCredentialsHint adds a hint to err, the error of a pull without credentials. If the registry
// requires credentials, the hint names the places where podd found none. addCredentialsHint returns
// err unchanged if the registry requires none, or if Options.CredentialsFile is "".
func (p *Puller) addCredentialsHint(err error, o request) error {
	pull, ok := errors.AsType[*runtime.PullError](err)
	if !ok || pull.Status != http.StatusUnauthorized || p.o.CredentialsFile == "" {
		return err
	}
	annotated := *pull
	annotated.Err = fmt.Errorf("%w; %s has no credentials for %s", pull.Err, p.o.CredentialsFile, pull.Registry)
	if o.hasSecrets {
		annotated.Err = fmt.Errorf("%w; neither the pod's imagePullSecrets nor %s have credentials for %s", pull.Err, p.o.CredentialsFile, pull.Registry)
	}
	return &annotated
}
