// Package pull pulls images according to their pull policy. Pods that need the same
// image with the same credentials share one pull, its result and its back-off. Pulls of
// different images run in parallel up to a limit, so that a registry that does not
// respond blocks only one slot. A pull is canceled when no pod waits for it.
//
// Credentials are tried in the kubelet's order until the registry accepts them:
//
//	imagePullSecrets ─▶ CredentialFiles ─▶ credential providers
//
// The credential providers are run only if no other credentials are accepted, because the providers
// are programs that may be slow. If there are no credentials at all, the image is pulled without
// credentials. Pods with different service accounts do not share a pull if a credential provider uses
// the tokens of service accounts.
//
// An image can be damaged, for example after a power cut. If the runtime cannot inspect the image
// (CRI-O, if its manifest or config is damaged), Ensure pulls it again, which replaces it. If the runtime
// can inspect the image, but cannot create a container from it, Repair removes it first, because a
// pull does not replace layers that the runtime has recorded. Both are done once. If the image is still
// damaged, the error of the container reports it. Damage that the runtime does not report is not
// repaired, such as missing or truncated files in an unpacked layer.
//
// A pod may use an image that another pod has pulled only if it has the credentials of that pull:
// package verify decides this, and package record stores the credentials of pulls.
package pull

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/reconcile/effect"
	"podd/reconcile/event"
	"podd/reconcile/pull/provider"
	"podd/reconcile/pull/record"
	"podd/reconcile/pull/verify"
	"podd/reconcile/result"
	"podd/runtime"
)

// The delays of the back-off of failed pulls, as in the kubelet.
const (
	firstDelay = 10 * time.Second
	maxDelay   = 5 * time.Minute
	// A failure is removed when forgetAfter has passed since the end of its back-off. After that,
	// the count of failures begins again.
	forgetAfter = 2 * maxDelay
)

// A Runtime is the part of a CRI runtime that pulls images.
type Runtime interface {
	record.Images
	// ImageCreated returns the time when a present image was built. It returns the zero time if the
	// time is unknown.
	ImageCreated(ctx context.Context, image string) (time.Time, error)
	PullImage(ctx context.Context, image string, auth *cri.AuthConfig, sandbox *cri.PodSandboxConfig) (string, error)
	// RemoveImage removes an image with all its names.
	RemoveImage(ctx context.Context, image string) error
}

// Providers runs credential providers.
type Providers interface {
	// Credentials returns credentials in the order to try them. If some providers fail, Credentials
	// returns the credentials of the other providers and an error that names the failed providers.
	Credentials(ctx context.Context, r provider.Request) ([]provider.Credential, error)
	// UsesServiceAccount reports whether the credentials depend on the service account of the pod.
	UsesServiceAccount(r provider.Request) bool
	// ServiceAccount returns the service account of the pod if the credentials depend on it, or nil.
	ServiceAccount(ctx context.Context, r provider.Request) (*kubelet.ImagePullServiceAccount, error)
}

// Options are the options of a Puller. Runtime is required.
type Options struct {
	Runtime Runtime
	// Credentials returns the credentials for an image, in the order to try them. If Credentials is
	// nil, there are no credentials.
	Credentials func(image string) ([]*cri.AuthConfig, error)
	// CredentialFiles are the files that Credentials reads. They are used for messages. When one of
	// the files changes, the back-offs of all images end.
	CredentialFiles CredentialFiles
	// Providers returns more credentials after all other credentials were rejected. If it is nil, there
	// are no more credentials.
	Providers Providers
	// MaxParallel is the maximum number of parallel pulls; 0 means no limit.
	MaxParallel int
	// QPS and Burst limit the rate of new pulls; a QPS of 0 means no limit.
	QPS, Burst int
	// UsePresentIfUnreachable allows the use of a present image if the policy is Always and the
	// registry of the image is unreachable.
	UsePresentIfUnreachable bool
	// Records stores the credentials with which images were pulled. If it is nil, a pod may use every
	// image that is on the node.
	Records *record.Store
	// VerificationPolicy decides for which images the credentials of pods are verified. It is used
	// only if Records is set.
	VerificationPolicy verify.Policy
	// OnVerify is called with the result of each verification. It must not block. It may be nil.
	OnVerify func(verify.Result)
	// Log receives the errors of Records, and the reason for the pull of a present image. If it is nil,
	// they are not logged.
	Log *slog.Logger
	// OnEnsure is called once for each call of Ensure, before a pull begins. It must not block. It
	// may be nil.
	OnEnsure func(Check)
}

// A Check describes an image before Ensure pulls it.
type Check struct {
	Policy string // the pull policy, such as "IfNotPresent"
	// Present reports whether the runtime had the image. PullRequired reports whether the policy
	// requires a pull. Each is nil if unknown.
	Present, PullRequired *bool
}

// newCheck returns the Check for a decision. An image that is missing with the policy Never is never
// pulled, so whether it needs a pull is unknown. With the policy Always, whether the image is present does
// not matter, and the kubelet does not check it.
func newCheck(r effect.ImageRequest, isPresent bool, d verify.Decision) Check {
	c := Check{Policy: r.Policy}
	if r.Policy != string(v1.PullAlways) {
		c.Present = &isPresent
	}
	if isPresent || d.Action != verify.Refuse {
		c.PullRequired = new(d.Action != verify.Use)
	}
	return c
}

// A Puller pulls images. It is safe for concurrent use.
type Puller struct {
	o     Options
	slots chan struct{} // nil if there is no limit
	rate  *rate.Limiter // nil if there is no limit

	verifier verifier

	mu       sync.Mutex             // guards all following fields
	pulls    map[string]*sharedPull // by request.key
	failures map[string]failure     // by request.key
	repairs  map[string]repair      // by reference of the image
	// replacements contains the images that the runtime cannot inspect, by name. A pull replaces them.
	replacements map[string]repair
}

var _ effect.Images = (*Puller)(nil)

// A sharedPull is a pull in progress with the callers that wait for it.
type sharedPull struct {
	waiterCount int
	cancel      context.CancelFunc
	done        chan struct{} // closed when all following fields are set
	pullResult
	err error
}

// A pullResult is the result of a successful pull.
type pullResult struct {
	ref       string        // the reference of the image
	warning   string        // a problem that did not make the pull fail
	id        string        // the ID of the image; "" if the pull was not recorded
	usedLogin *login        // the credentials of the pull; nil if it needed none
	pullTime  time.Duration // the duration without the wait for a slot
	size      uint64        // in bytes; 0 if unknown
}

// addWarning appends text to the warning of r.
func (r *pullResult) addWarning(text string) {
	if r.warning != "" {
		text = r.warning + "; " + text
	}
	r.warning = text
}

// A failure is a failed pull that is in back-off.
type failure struct {
	count        int // number of consecutive failures
	retryAt      time.Time
	err          error
	fileVersions []fileVersion // versions of the credential files when the pull began
}

// New returns a Puller.
func New(o Options) *Puller {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	p := &Puller{o: o, verifier: verifier{o: o}, pulls: map[string]*sharedPull{}, failures: map[string]failure{}, repairs: map[string]repair{}, replacements: map[string]repair{}}
	if o.MaxParallel > 0 {
		p.slots = make(chan struct{}, o.MaxParallel)
	}
	if o.QPS > 0 {
		p.rate = rate.NewLimiter(rate.Limit(o.QPS), max(o.Burst, 1))
	}
	return p
}

// Ensure pulls the image of r unless the pod may use the present image. If the pull policy is
// Never, it returns an error if the image is not present, or if the pod may not use it. It tries
// the credentials in the Secrets of r before the credentials of Options. It calls onPull when it
// begins or joins a pull. After a failed pull and during a back-off, it returns a
// *result.RetryLaterError.
func (p *Puller) Ensure(ctx context.Context, r effect.ImageRequest, onPull func()) (result.Image, error) {
	start := time.Now()
	presentImage, isPresent, statusErr := p.o.Runtime.ImageStatus(ctx, r.Image)
	if err := p.checkReplacement(r, start, statusErr); err != nil {
		p.onEnsure(Check{Policy: r.Policy})
		return result.Image{}, imageError(r.Image, "ImageInspectError", fmt.Errorf("inspecting image %s: %w", r.Image, err))
	}
	logins, secretErr := loginsFromSecrets(r)
	f := facts{ImageRequest: r, isPresent: isPresent, image: presentImage, records: p.verifier.lookup(ctx, r.Image, presentImage.ID, isPresent), logins: logins}
	d := p.verifier.decide(ctx, f, verify.Decide)
	p.onEnsure(newCheck(r, isPresent, d))
	switch {
	case d.Action == verify.Use:
		p.markReplaced(presentImage.ID, start)
		return result.Image{Ref: presentImage.ID, User: new(presentImage.User)}, nil // the user is copied, so that the other fields of presentImage can be garbage-collected
	case d.Action == verify.Refuse:
		return result.Image{}, imageError(r.Image, "ErrImageNeverPull", neverPullError(r.Image, p.o.Records != nil, secretErr))
	case secretErr != nil:
		return result.Image{}, imageError(r.Image, "ErrImagePull", fmt.Errorf("pulling %s: %w", r.Image, secretErr))
	}
	o := request{image: r.Image, logins: logins, hasSecrets: len(r.Secrets) > 0, provider: providerRequest(r)}
	if p.o.Providers != nil && p.o.Providers.UsesServiceAccount(o.provider) {
		o.account = r.Pod.Namespace + "/" + r.ServiceAccount
	}
	if isPresent && f.records.State == verify.Preloaded {
		o.preloadedID = presentImage.ID
	}
	pulled, err := p.pullShared(ctx, o, func() {
		p.verifier.logPull(f, d)
		onPull()
	})
	pull, isPullError := errors.AsType[*runtime.PullError](err)
	switch {
	case isPullError && pull.Unreachable && isPresent && p.canFallBack(r) && p.verifier.decide(ctx, f, verify.DecideOffline).Action == verify.Use:
		warning := fmt.Sprintf("the registry of %s is unreachable; using the image that is on the node, %s: %v", r.Image, p.describeAge(ctx, r.Image), err)
		return result.Image{Ref: presentImage.ID, User: new(presentImage.User), Warning: warning}, nil
	case err != nil:
		return result.Image{}, err
	}
	p.verifier.recordSharedPull(r.Image, pulled, logins)
	if statusErr != nil {
		p.o.Log.Warn("damaged image was pulled again", "image", r.Image, "err", statusErr)
	}
	return result.Image{
		Ref: pulled.ref, Warning: pulled.warning,
		Pull: &event.Pull{Took: pulled.pullTime, TookWithWait: time.Since(start), Size: pulled.size},
	}, nil
}

// canFallBack reports whether a pod uses a present image if the pull fails because the registry is
// unreachable. If the pull policy is not Always, the image is pulled only because of the verification.
func (p *Puller) canFallBack(r effect.ImageRequest) bool {
	return p.o.UsePresentIfUnreachable || r.Policy != string(v1.PullAlways)
}

// onEnsure calls Options.OnEnsure.
func (p *Puller) onEnsure(c Check) {
	if p.o.OnEnsure != nil {
		p.o.OnEnsure(c)
	}
}

// neverPullError returns the error of an image that a pod cannot use and must not pull. secretErr is the
// error of the pod's imagePullSecrets, or nil. If credentials are verified, the error is the same
// whether or not the image is present, because it must not reveal which images other pods use.
func neverPullError(image string, isVerified bool, secretErr error) error {
	const text = "image %s is not present, or the pod has no credentials for it, and its pull policy is Never"
	switch {
	case isVerified && secretErr != nil:
		return fmt.Errorf(text+"; %w", image, secretErr)
	case isVerified:
		return fmt.Errorf(text+"; load the image, add imagePullSecrets, or change imagePullPolicy", image)
	}
	return fmt.Errorf("image %s is not present and its pull policy is Never; load the image, or change imagePullPolicy", image)
}

// describeAge returns the age of a present image as text, such as "built 12d ago".
func (p *Puller) describeAge(ctx context.Context, image string) string {
	built, err := p.o.Runtime.ImageCreated(ctx, image)
	if err != nil || built.IsZero() {
		return "built at an unknown time"
	}
	return "built " + duration.HumanDuration(max(time.Since(built), 0)) + " ago"
}

func imageError(image, reason string, err error) error {
	return &runtime.PullError{Image: image, Reason: reason, Err: err}
}

// pullShared joins the pull in progress for o. If there is none, it begins a pull. Then it waits for
// the result of the pull.
func (p *Puller) pullShared(ctx context.Context, o request, onPull func()) (pullResult, error) {
	key := o.key()
	f, err := p.joinPull(ctx, key, o)
	if err != nil {
		return pullResult{}, err
	}
	defer p.release(key, f)
	onPull()
	select {
	case <-f.done:
		return f.pullResult, f.err
	case <-ctx.Done():
		return pullResult{}, ctx.Err()
	}
}

// joinPull returns the pull in progress for o. If there is none, it begins a pull. During a
// back-off it returns a *result.RetryLaterError. The caller must call release for the returned
// pull.
func (p *Puller) joinPull(ctx context.Context, key string, o request) (*sharedPull, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f, ok := p.pulls[key]; ok {
		f.waiterCount++
		return f, nil
	}
	if f, ok := p.failures[key]; ok && time.Now().Before(f.retryAt) && slices.Equal(f.fileVersions, p.o.CredentialFiles.versions()) {
		return nil, &result.RetryLaterError{Until: f.retryAt, Err: f.err}
	}
	// The context of the pull is not the context of the caller that begins it: if this caller is
	// canceled, the pull continues while other callers wait for it.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &sharedPull{waiterCount: 1, cancel: cancel, done: make(chan struct{})}
	p.pulls[key] = f
	go p.runPull(ctx, key, o, f)
	return f, nil
}

// release ends the caller's wait for a pull. The last caller cancels the pull and waits
// until it has returned.
func (p *Puller) release(key string, f *sharedPull) {
	p.mu.Lock()
	f.waiterCount--
	isLast := f.waiterCount == 0
	if isLast && p.pulls[key] == f {
		delete(p.pulls, key)
	}
	p.mu.Unlock()
	if isLast {
		f.cancel()
		<-f.done
	}
}

// runPull carries out pull f and sets its result. If the pull fails, runPull begins a back-off.
func (p *Puller) runPull(ctx context.Context, key string, o request, f *sharedPull) {
	defer close(f.done)
	// The versions of the credential files are read before their content, so that a later change of a
	// file ends the back-off.
	fileVersions := p.o.CredentialFiles.versions()
	f.pullResult, f.err = p.pullOnce(ctx, o)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pulls[key] == f {
		delete(p.pulls, key)
	}
	if f.err == nil {
		if _, isRepair := p.repairs[f.ref]; isRepair {
			p.repairs[f.ref] = repair{repairReplaced, time.Now()}
		}
		if _, isReplacement := p.replacements[o.image]; isReplacement {
			p.replacements[o.image] = repair{repairReplaced, time.Now()}
		}
		delete(p.failures, key)
		return
	}
	// If the pull was canceled or the runtime is unavailable, no back-off begins, because the
	// image has not failed.
	if ctx.Err() != nil || errors.Is(f.err, runtime.ErrUnavailable) {
		return
	}
	p.dropExpiredLocked()

	count := p.failures[key].count + 1
	newFailure := failure{count, time.Now().Add(backoff(count)), f.err, fileVersions}
	p.failures[key] = newFailure
	f.err = &result.RetryLaterError{Until: newFailure.retryAt, Err: f.err}
}

// dropExpiredLocked removes the failures with a back-off that ended more than forgetAfter ago.
func (p *Puller) dropExpiredLocked() {
	for image, f := range p.failures {
		if time.Since(f.retryAt) > forgetAfter {
			delete(p.failures, image)
		}
	}
}

// backoff returns the duration of the back-off after this number of consecutive failures.
func backoff(failures int) time.Duration {
	d := firstDelay
	for ; failures > 1 && d < maxDelay; failures-- {
		d *= 2
	}
	return min(d, maxDelay)
}
