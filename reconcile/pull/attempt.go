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

// pull waits for a place and makes one attempt. The warning is of what an image
// was pulled without.
func (p *Puller) pull(ctx context.Context, o order) (landed, error) {
	if p.places != nil {
		select {
		case p.places <- struct{}{}:
			defer func() { <-p.places }()
		case <-ctx.Done():
			return landed{}, ctx.Err()
		}
	}
	if p.rate != nil {
		if err := p.rate.Wait(ctx); err != nil {
			return landed{}, err
		}
	}
	auths := o.auths
	if p.o.Credentials != nil {
		found, err := p.o.Credentials(o.image)
		if err != nil {
			return landed{}, imageError(o.image, "ErrImagePull", fmt.Errorf("pulling %s: %w", o.image, err))
		}
		auths = slices.Concat(auths, found)
	}
	began := time.Now()
	ref, warning, err := p.attempt(ctx, o, auths)
	got := landed{ref: ref, warning: warning, took: time.Since(began)}
	if err != nil {
		return got, err
	}
	got.size = p.size(ctx, o.image)
	return got, nil
}

// forSize is how long a start may wait for what only people read.
const forSize = 200 * time.Millisecond

// size is that of a pulled image; 0 when the runtime does not tell soon.
func (p *Puller) size(ctx context.Context, image string) uint64 {
	ctx, cancel := context.WithTimeout(ctx, forSize)
	defer cancel()
	found, _, err := p.o.Runtime.ImageStatus(ctx, image)
	if err != nil {
		return 0
	}
	return found.Size
}

// attempt tries auths, then what the providers have, or what can be had without
// credentials.
func (p *Puller) attempt(ctx context.Context, o order, auths []*cri.AuthConfig) (ref, warning string, err error) {
	ref, err = p.tryEach(ctx, o.image, auths)
	if len(auths) > 0 && (err == nil || !otherCredentialsMayHelp(err)) || ctx.Err() != nil {
		return ref, "", err
	}
	more, trouble := p.ask(ctx, o.image)
	switch {
	case ctx.Err() != nil:
		return "", "", ctx.Err()
	case len(more) > 0:
		ref, err = p.tryEach(ctx, o.image, more)
	case len(auths) == 0:
		if ref, err = p.o.Runtime.PullImage(ctx, o.image, nil, nil); err != nil {
			err = p.wantsCredentials(err, o)
		}
	}
	if trouble == nil {
		return ref, "", err
	}
	if err != nil {
		return "", "", withTrouble(err, trouble)
	}
	return ref, fmt.Sprintf("image %s was pulled without its help: %v", o.image, trouble), nil
}

func (p *Puller) ask(ctx context.Context, image string) ([]*cri.AuthConfig, error) {
	if p.o.Providers == nil {
		return nil, nil
	}
	return p.o.Providers(ctx, repositoryOf(image))
}

// tryEach pulls with one credential after the other until one is let in.
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

// otherCredentialsMayHelp: they make no difference to who does not answer.
func otherCredentialsMayHelp(err error) bool {
	failed, ok := errors.AsType[*runtime.PullError](err)
	return ok && !failed.Unreachable
}

// withTrouble tells, behind why a pull failed, which providers did.
func withTrouble(err, trouble error) error {
	pull, ok := errors.AsType[*runtime.PullError](err)
	if !ok {
		return err
	}
	told := *pull
	told.Err = fmt.Errorf("%w; %w", pull.Err, trouble)
	return &told
}

// wantsCredentials tells where credentials can be given, if a pull without any
// was refused for that.
func (p *Puller) wantsCredentials(err error, o order) error {
	pull, ok := errors.AsType[*runtime.PullError](err)
	if !ok || pull.Status != http.StatusUnauthorized || p.o.CredentialsIn == "" {
		return err
	}
	told := *pull
	told.Err = fmt.Errorf("%w; %s has none for %s", pull.Err, p.o.CredentialsIn, pull.Registry)
	if o.secrets {
		told.Err = fmt.Errorf("%w; neither its imagePullSecrets nor %s have any for %s", pull.Err, p.o.CredentialsIn, pull.Registry)
	}
	return &told
}
