package pull

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"podd/reconcile/effect"
	"podd/reconcile/pull/provider"
	"podd/reconcile/pull/verify"
	"podd/runtime"
)

// pullOnce waits for a slot and tries to pull an image once. An unreadable file with credentials does
// not prevent the pull, because the image may need none. The result contains a warning if the pull
// succeeded although such a file was unreadable or a credential provider failed.
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
	if p.o.Credentials == nil {
		return p.pullAndRecord(ctx, o, o.logins)
	}
	fileAuths, fileErr := p.o.Credentials(o.image)
	pulled, err := p.pullAndRecord(ctx, o, slices.Concat(o.logins, nodeLogins(fileAuths)))
	switch {
	case fileErr == nil:
		return pulled, err
	case err != nil:
		return pulled, addCredentialsError(err, fileErr)
	}
	pulled.addWarning(fmt.Sprintf("pulled image %s without the credentials of a file: %v", o.image, fileErr))
	return pulled, nil
}

// pullAndRecord pulls with logins and records the credentials with which the pull succeeded.
func (p *Puller) pullAndRecord(ctx context.Context, o request, logins []login) (pullResult, error) {
	if p.o.Records == nil {
		pulled, err := p.pullAndMeasure(ctx, o, logins)
		if err == nil {
			pulled.size = p.querySize(ctx, o.image)
		}
		return pulled, err
	}
	if err := p.o.Records.BeginPull(o.image, o.preloadedID); err != nil {
		return pullResult{}, imageError(o.image, "ErrImagePull", err)
	}
	pulled, err := p.pullAndMeasure(ctx, o, logins)
	isKnown := ctx.Err() == nil && !errors.Is(err, runtime.ErrUnavailable)
	if err == nil {
		recordErr := p.recordPull(ctx, o.image, &pulled)
		isKnown = recordErr == nil
		p.verifier.log(recordErr, "pods must pull the image again")
	}
	p.verifier.log(p.o.Records.EndPull(o.image, isKnown), "after a restart of podd, pods may have to pull the image again")
	return pulled, err
}

// recordPull records the credentials of a successful pull, and sets the ID and the size in pulled.
// It inspects the image, because CRI-O may return a digest from a pull, and records have the ID.
func (p *Puller) recordPull(ctx context.Context, image string, pulled *pullResult) error {
	imageStatus, isPresent, err := p.o.Runtime.ImageStatus(ctx, pulled.ref)
	if err != nil {
		return fmt.Errorf("inspecting the pulled image %s: %w", image, err)
	}
	if !isPresent {
		return fmt.Errorf("inspecting the pulled image %s: the runtime does not have it; another program may have removed it", image)
	}
	pulled.id, pulled.size = imageStatus.ID, imageStatus.SizeBytes
	return p.o.Records.Add(pulled.id, verify.Repository(image), credentialsOf(pulled.usedLogin))
}

// sizeTimeout limits the query for the size of a pulled image. It is short because the query delays
// the start of the container, and the size is used only for messages.
const sizeTimeout = 200 * time.Millisecond

// querySize returns the size of a pulled image in bytes, or 0 if the runtime does not report
// it within sizeTimeout.
func (p *Puller) querySize(ctx context.Context, image string) uint64 {
	ctx, cancel := context.WithTimeout(ctx, sizeTimeout)
	defer cancel()
	imageStatus, _, err := p.o.Runtime.ImageStatus(ctx, image)
	if err != nil {
		return 0
	}
	return imageStatus.SizeBytes
}

// pullAndMeasure calls pullWithCredentials and sets the duration of the pull.
func (p *Puller) pullAndMeasure(ctx context.Context, o request, logins []login) (pullResult, error) {
	start := time.Now()
	pulled, err := p.pullWithCredentials(ctx, o, logins)
	pulled.pullTime = time.Since(start)
	return pulled, err
}

// pullWithCredentials pulls with logins. If the pull fails and other credentials may help,
// pullWithCredentials pulls with the credentials of the providers. If there are no credentials at
// all, it pulls without credentials. If the pull succeeded although a provider failed, the result
// contains a warning with the error of the provider.
func (p *Puller) pullWithCredentials(ctx context.Context, o request, logins []login) (pullResult, error) {
	pulled, err := p.tryEach(ctx, o.image, logins)
	if len(logins) > 0 && (err == nil || !otherCredentialsMayHelp(err)) || ctx.Err() != nil {
		return pulled, err
	}
	providerLogins, providerErr := p.providerCredentials(ctx, o.provider)
	switch {
	case ctx.Err() != nil:
		return pullResult{}, ctx.Err()
	case len(providerLogins) > 0:
		pulled, err = p.tryEach(ctx, o.image, providerLogins)
	case len(logins) == 0:
		if pulled.ref, err = p.o.Runtime.PullImage(ctx, o.image, nil, nil); err != nil {
			err = p.addCredentialsHint(err, o)
		}
	}
	if providerErr == nil {
		return pulled, err
	}
	if err != nil {
		return pullResult{}, addCredentialsError(err, providerErr)
	}
	pulled.addWarning(fmt.Sprintf("pulled image %s, but a credential provider failed: %v", o.image, providerErr))
	return pulled, nil
}

// providerCredentials returns the credentials of the providers for an image.
func (p *Puller) providerCredentials(ctx context.Context, r provider.Request) (logins []login, err error) {
	if p.o.Providers == nil {
		return nil, nil
	}
	credentials, err := p.o.Providers.Credentials(ctx, r)
	for _, c := range credentials {
		logins = append(logins, login{auth: c.Auth, account: c.ServiceAccount})
	}
	return logins, err
}

// providerRequest returns the request to credential providers for the image of r.
func providerRequest(r effect.ImageRequest) provider.Request {
	return provider.Request{
		Repository: fullRepository(r.Image),
		Pod:        provider.Pod{NamespacedName: r.Pod, UID: r.PodUID, ServiceAccount: r.ServiceAccount},
	}
}

// tryEach tries to pull with each element of logins. It stops when a pull succeeds, or fails for a
// reason other than its credentials.
func (p *Puller) tryEach(ctx context.Context, image string, logins []login) (pulled pullResult, err error) {
	for i, l := range logins {
		ref, err := p.o.Runtime.PullImage(ctx, image, l.auth, nil)
		switch {
		case err == nil:
			return pullResult{ref: ref, usedLogin: &logins[i]}, nil
		case ctx.Err() != nil:
			return pullResult{}, ctx.Err()
		case !otherCredentialsMayHelp(err) || i == len(logins)-1:
			return pullResult{}, err
		}
	}
	return pullResult{}, nil
}

// otherCredentialsMayHelp reports whether a pull that failed with err may succeed with other
// credentials. It returns false if the registry is unreachable, or if err is not a
// *runtime.PullError.
func otherCredentialsMayHelp(err error) bool {
	pullErr, ok := errors.AsType[*runtime.PullError](err)
	return ok && !pullErr.Unreachable
}

// addCredentialsError returns the error err of a pull with credentialsErr appended, which is the error
// of a credential provider or file. It returns err unchanged if err is not a *runtime.PullError.
func addCredentialsError(err, credentialsErr error) error {
	pull, ok := errors.AsType[*runtime.PullError](err)
	if !ok {
		return err
	}
	annotatedErr := *pull
	annotatedErr.Err = fmt.Errorf("%w; %w", pull.Err, credentialsErr)
	return &annotatedErr
}

// addCredentialsHint adds a hint to err, the error of a pull without credentials. If the registry
// requires credentials, the hint names the places where podd found none. addCredentialsHint returns
// err unchanged if the registry requires no credentials, or if there are no CredentialFiles.
func (p *Puller) addCredentialsHint(err error, o request) error {
	pull, ok := errors.AsType[*runtime.PullError](err)
	file := p.o.CredentialFiles.firstExisting()
	if !ok || pull.Status != http.StatusUnauthorized || file == "" {
		return err
	}
	annotatedErr := *pull
	annotatedErr.Err = fmt.Errorf("%w; %s has no credentials for %s", pull.Err, file, pull.Registry)
	if o.hasSecrets {
		annotatedErr.Err = fmt.Errorf("%w; neither the pod's imagePullSecrets nor %s have credentials for %s", pull.Err, file, pull.Registry)
	}
	return &annotatedErr
}
