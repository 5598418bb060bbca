// Package pull makes images present by their pull policy. Pods that want the
// same image with the same credentials share one pull, one back-off and its result; pulls of different
// images run side by side up to a bound, so a registry that hangs holds one
// place and no more. A pull that no pod waits for any longer is cancelled.
//
// Credentials are tried one by one until the registry takes some, in the
// kubelet's order:
//
//	imagePullSecrets ─▶ config.json ─▶ credential providers
//
// The providers, being programs that take their time, are asked only when it
// comes to them. Where nobody has any, there is one try without.
package pull

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/reconcile"
	"podd/reconcile/event"
	"podd/runtime"
)

// Back-off of a failed pull, Kubernetes' numbers.
const (
	firstDelay = 10 * time.Second
	maxDelay   = 5 * time.Minute
	// forgetAfter is how long after the end of a wait a failure counts on.
	forgetAfter = 2 * maxDelay
)

// Runtime is the part of a CRI runtime that pulls.
type Runtime interface {
	ImageStatus(ctx context.Context, image string) (runtime.Image, bool, error)
	// ImageCreated is when a present image was built; zero when nobody knows.
	ImageCreated(ctx context.Context, image string) (time.Time, error)
	PullImage(ctx context.Context, image string, auth *cri.AuthConfig, sandbox *cri.PodSandboxConfig) (string, error)
}

// Options are what a Puller works with. Runtime is required.
type Options struct {
	Runtime Runtime
	// Credentials for an image, to be tried in order; nil: none are known.
	Credentials func(image string) ([]*cri.AuthConfig, error)
	// CredentialsIn names the file they are read from, for messages; once it
	// changes, no failure from before keeps anybody waiting. "": none.
	CredentialsIn string
	// Providers have further credentials for a repository with its registry, such
	// as "docker.io/library/nginx", to be tried in order when no others are let
	// in; nil: there are none. An error tells of those that failed and comes
	// beside what the others have.
	Providers func(ctx context.Context, repository string) ([]*cri.AuthConfig, error)
	// Parallel bounds the pulls at once; 0: no bound.
	Parallel int
	// QPS and Burst limit how often pulls begin; QPS 0: no limit.
	QPS, Burst int
	// UsePresent lets policy Always start from a present image when no
	// registry answers.
	UsePresent bool
}

// Puller pulls images. Safe for concurrent use.
type Puller struct {
	o      Options
	places chan struct{} // nil: no bound
	rate   *rate.Limiter // nil: no limit

	mu       sync.Mutex         // guards all following fields
	flights  map[string]*flight // by order.key
	failures map[string]failure // likewise
}

var _ reconcile.Images = (*Puller)(nil)

// flight is one pull under way.
type flight struct {
	waiters int
	cancel  context.CancelFunc
	done    chan struct{} // closed when all following fields are set
	landed
	err error
}

// landed is what a pull brought.
type landed struct {
	ref, warning string
	took         time.Duration // without waiting for a place
	size         uint64        // 0: not known
}

type failure struct {
	count int
	until time.Time
	err   error
	stamp stamp // of the credentials' file when the pull began
}

// New returns a Puller.
func New(o Options) *Puller {
	p := &Puller{o: o, flights: map[string]*flight{}, failures: map[string]failure{}}
	if o.Parallel > 0 {
		p.places = make(chan struct{}, o.Parallel)
	}
	if o.QPS > 0 {
		p.rate = rate.NewLimiter(rate.Limit(o.QPS), max(o.Burst, 1))
	}
	return p
}

// Ensure makes image present, with the credentials in secrets before those of
// Options.
func (p *Puller) Ensure(ctx context.Context, image, policy string, secrets []*v1.Secret, pulling func()) (reconcile.Image, error) {
	began := time.Now()
	have, present, err := p.o.Runtime.ImageStatus(ctx, image)
	if err != nil {
		return reconcile.Image{}, imageError(image, "ImageInspectError", fmt.Errorf("looking for image %s: %w", image, err))
	}
	switch {
	case present && policy != string(v1.PullAlways):
		return reconcile.Image{Ref: have.ID, User: new(have.User)}, nil // a copy: the rest is not kept
	case policy == string(v1.PullNever):
		return reconcile.Image{}, imageError(image, "ErrImageNeverPull", fmt.Errorf("image %s is not present and its pull policy is Never; load it, or change imagePullPolicy", image))
	}
	auths, err := fromSecrets(image, secrets)
	if err != nil {
		return reconcile.Image{}, imageError(image, "ErrImagePull", fmt.Errorf("pulling %s: %w", image, err))
	}
	got, err := p.shared(ctx, order{image, auths, len(secrets) > 0}, pulling)
	pull, failed := errors.AsType[*runtime.PullError](err)
	switch {
	case failed && pull.Unreachable && present && p.o.UsePresent:
		warning := fmt.Sprintf("no registry answers for %s; the present image%s is used (%v)", image, p.age(ctx, image), err)
		return reconcile.Image{Ref: have.ID, User: new(have.User), Warning: warning}, nil
	case err != nil:
		return reconcile.Image{}, err
	}
	return reconcile.Image{
		Ref: got.ref, Warning: got.warning,
		Pull: &event.Pull{Took: got.took, Waited: time.Since(began), Size: got.size},
	}, nil
}

// age is ", built 12d ago,", or that it is not known.
func (p *Puller) age(ctx context.Context, image string) string {
	built, err := p.o.Runtime.ImageCreated(ctx, image)
	if err != nil || built.IsZero() {
		return ", of unknown age,"
	}
	return ", built " + duration.HumanDuration(max(time.Since(built), 0)) + " ago,"
}

func imageError(image, reason string, err error) error {
	return &runtime.PullError{Image: image, Reason: reason, Err: err}
}

// shared joins the pull that o asks for, or begins it.
func (p *Puller) shared(ctx context.Context, o order, pulling func()) (landed, error) {
	key := o.key()
	f, err := p.join(ctx, key, o)
	if err != nil {
		return landed{}, err
	}
	defer p.leave(key, f)
	pulling()
	select {
	case <-f.done:
		return f.landed, f.err
	case <-ctx.Done():
		return landed{}, ctx.Err()
	}
}

func (p *Puller) join(ctx context.Context, key string, o order) (*flight, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f, ok := p.flights[key]; ok {
		f.waiters++
		return f, nil
	}
	if f, ok := p.failures[key]; ok && time.Now().Before(f.until) && f.stamp == stampOf(p.o.CredentialsIn) {
		return nil, &reconcile.Later{Until: f.until, Err: f.err}
	}
	// The pull outlives the one who began it while others wait for it.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight{waiters: 1, cancel: cancel, done: make(chan struct{})}
	p.flights[key] = f
	go p.fly(ctx, key, o, f)
	return f, nil
}

// leave gives up one's place; the last one to leave waits until the pull has
// ended, cancelled if need be.
func (p *Puller) leave(key string, f *flight) {
	p.mu.Lock()
	f.waiters--
	last := f.waiters == 0
	if last && p.flights[key] == f {
		delete(p.flights, key)
	}
	p.mu.Unlock()
	if last {
		f.cancel()
		<-f.done
	}
}

func (p *Puller) fly(ctx context.Context, key string, o order, f *flight) {
	defer close(f.done)
	stamp := stampOf(p.o.CredentialsIn) // before it is read
	f.landed, f.err = p.pull(ctx, o)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flights[key] == f {
		delete(p.flights, key)
	}
	if f.err == nil {
		delete(p.failures, key)
		return
	}
	// That nobody waited any more, or that the runtime went away, says nothing of
	// the image.
	if ctx.Err() != nil || errors.Is(f.err, runtime.ErrUnavailable) {
		return
	}
	p.forgiveLocked()
	n := p.failures[key].count + 1
	failed := failure{n, time.Now().Add(delay(n)), f.err, stamp}
	p.failures[key] = failed
	f.err = &reconcile.Later{Until: failed.until, Err: f.err}
}

// forgiveLocked forgets failures that nobody repeated for long.
func (p *Puller) forgiveLocked() {
	for image, f := range p.failures {
		if time.Since(f.until) > forgetAfter {
			delete(p.failures, image)
		}
	}
}

func delay(n int) time.Duration {
	d := firstDelay
	for ; n > 1 && d < maxDelay; n-- {
		d *= 2
	}
	return min(d, maxDelay)
}
