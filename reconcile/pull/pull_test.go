package pull_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/reconcile/effect"
	"podd/reconcile/pull"
	"podd/reconcile/result"
	"podd/runtime"
	"podd/runtime/runtimetest"
)

// A fixture is a Puller with an in-memory runtime in a synctest bubble.
type fixture struct {
	*runtimetest.Runtime
	*pull.Puller
	t *testing.T
}

func run(t *testing.T, o pull.Options, test func(b *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := runtimetest.New(t, runtimetest.Options{})
		o.Runtime = r.Client
		test(&fixture{r, pull.New(o), t})
	})
}

// remote adds an image to the registry. A pull of the image takes one second, or fails with err.
func (b *fixture) remote(name string, err error) {
	b.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: name}, PullDuration: time.Second, Err: err})
}

func (b *fixture) pulls() int { return len(b.Calls("PullImage")) }

// ensure calls Ensure without Secrets.
func (b *fixture) ensure(image, policy string) error {
	_, err := b.Ensure(b.t.Context(), effect.ImageRequest{Image: image, Policy: policy}, func() {})
	return err
}

// sleep advances the time of the bubble, and then waits until no goroutine can continue.
func sleep(d time.Duration) { <-time.After(d); synctest.Wait() }

var errUnreachable = errors.New(`failed to do request: Head "https://registry.example/v2/": dial tcp: lookup registry.example: no such host`)

// TestPolicies checks for each policy whether the image is pulled, and which image is used.
func TestPolicies(t *testing.T) {
	tests := map[string]struct {
		policy          string
		present, remote bool
		usePresent      bool
		pulls           int
		reason          string // part of the error; "" means no error
		warns           bool
	}{
		"always":                       {policy: "Always", present: true, remote: true, pulls: 1},
		"always, unreachable":          {policy: "Always", present: true, pulls: 1, reason: "ErrImagePull"},
		"always, unreachable, use it":  {policy: "Always", present: true, usePresent: true, pulls: 1, warns: true},
		"always, unreachable, missing": {policy: "Always", usePresent: true, pulls: 1, reason: "ErrImagePull"},
		"if not present":               {policy: "IfNotPresent", present: true, remote: true},
		"if not present, missing":      {policy: "IfNotPresent", remote: true, pulls: 1},
		"if not present, unreachable":  {policy: "IfNotPresent", pulls: 1, reason: "ErrImagePull"},
		"never":                        {policy: "Never", present: true},
		"never, missing":               {policy: "Never", remote: true, reason: "ErrImageNeverPull"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			run(t, pull.Options{UsePresentIfUnreachable: test.usePresent}, func(b *fixture) {
				if test.present {
					b.AddImages("web:1")
				}
				b.remote("web:1", errUnreachable)
				if test.remote {
					b.remote("web:1", nil)
				}
				pullingCalls := 0
				got, err := b.Ensure(b.t.Context(), effect.ImageRequest{Image: "web:1", Policy: test.policy}, func() { pullingCalls++ })
				reason := ""
				if e, ok := errors.AsType[*runtime.PullError](err); ok {
					reason = e.Reason
				}
				if b.pulls() != test.pulls || reason != test.reason || (got.Warning != "") != test.warns || (got.Ref == "") != (err != nil) {
					b.t.Errorf("got %d pulls, image %+v and error %v; want %d pulls, an error with reason %q (\"\": no error) and a warning: %t", b.pulls(), got, err, test.pulls, test.reason, test.warns)
				}
				fetched := test.pulls > 0 && err == nil && !test.warns
				if pullingCalls != test.pulls || (got.Pull != nil) != fetched || fetched && (got.Pull.Took != time.Second || got.Pull.TookWithWait < got.Pull.Took) {
					b.t.Errorf("got %d calls of pulling and Pull %+v; want %d calls and a Pull of one second if an image was pulled", pullingCalls, got.Pull, test.pulls)
				}
			})
		})
	}
}

// A dated is a runtime that reports the time at which its images were built.
type dated struct {
	pull.Runtime
	built time.Time
}

func (d dated) ImageCreated(context.Context, string) (time.Time, error) { return d.built, nil }

// TestAge checks that the warning about a failed pull contains the age of the image on the node.
func TestAge(t *testing.T) {
	run(t, pull.Options{}, func(b *fixture) {
		b.AddImages("web:1")
		b.remote("web:1", errUnreachable)
		p := pull.New(pull.Options{Runtime: dated{b.Client, time.Now().Add(-12 * 24 * time.Hour)}, UsePresentIfUnreachable: true})
		got, err := p.Ensure(b.t.Context(), effect.ImageRequest{Image: "web:1", Policy: "Always"}, func() {})
		if err != nil || !strings.Contains(got.Warning, "built 12d ago") {
			b.t.Errorf("got warning %q (error %v), want the age of the image", got.Warning, err)
		}
	})
}

// TestAge_Unknown checks the warning for an image of unknown age.
func TestAge_Unknown(t *testing.T) {
	run(t, pull.Options{}, func(b *fixture) {
		b.AddImages("web:1")
		b.remote("web:1", errUnreachable)
		p := pull.New(pull.Options{Runtime: dated{b.Client, time.Time{}}, UsePresentIfUnreachable: true})
		if got, err := p.Ensure(b.t.Context(), effect.ImageRequest{Image: "web:1", Policy: "Always"}, func() {}); err != nil || !strings.Contains(got.Warning, "built at an unknown time") {
			b.t.Errorf("got warning %q (error %v), want an unknown age", got.Warning, err)
		}
	})
}

// TestCredentialsChanged checks that a change of the file ends the back-off.
func TestCredentialsChanged(t *testing.T) {
	file := write(t, `{"auths": {"registry.example": {"username": "b", "password": "old"}}}`)
	run(t, pull.Options{Credentials: pull.CredentialFiles{{Path: file}}.Credentials, CredentialFiles: pull.CredentialFiles{{Path: file}}}, func(b *fixture) {
		b.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: "registry.example/web:1"}, Username: "b", Password: "newer"})
		for range 2 {
			if b.ensure("registry.example/web:1", "Always") == nil || b.pulls() != 1 {
				b.t.Fatalf("got %d pulls, want 1", b.pulls())
			}
		}
		if err := os.WriteFile(file, []byte(`{"auths": {"registry.example": {"username": "b", "password": "newer"}}}`), 0o600); err != nil {
			b.t.Fatal(err)
		}
		if err := b.ensure("registry.example/web:1", "Always"); err != nil {
			b.t.Error(err)
		}
	})
}

// TestShared checks that pods that need the same image share one pull and its result.
func TestShared(t *testing.T) {
	for _, err := range []error{nil, errUnreachable} {
		run(t, pull.Options{}, func(b *fixture) {
			b.remote("web:1", err)
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() {
					if got := b.ensure("web:1", "IfNotPresent"); (got == nil) != (err == nil) {
						b.t.Errorf("error: got %v, want one exactly if the pull fails with %v", got, err)
					}
				})
			}
			all.Wait()
			if b.pulls() != 1 {
				b.t.Errorf("got %d pulls, want 1", b.pulls())
			}
		})
	}
}

// TestCancel checks that a pull is canceled when its last waiter is canceled, and not before.
func TestCancel(t *testing.T) {
	run(t, pull.Options{}, func(b *fixture) {
		b.Inject(runtimetest.Fault{Method: "PullImage", Hangs: true})
		first, leaveFirst := context.WithCancel(b.t.Context())
		second, leaveSecond := context.WithCancel(b.t.Context())
		var all sync.WaitGroup
		for _, ctx := range []context.Context{first, second} {
			all.Go(func() {
				if _, err := b.Ensure(ctx, effect.ImageRequest{Image: "web:1", Policy: "Always"}, func() {}); !errors.Is(err, context.Canceled) {
					b.t.Errorf("canceled caller: got error %v, want %v", err, context.Canceled)
				}
			})
		}
		sleep(time.Minute)
		leaveFirst()
		sleep(time.Minute)
		if b.pulls() != 0 { // calls are recorded when they return
			b.t.Fatalf("returned pulls while a caller waits: got %d, want none", b.pulls())
		}
		leaveSecond()
		all.Wait()
		if b.pulls() != 1 {
			b.t.Fatalf("returned pulls: got %d, want 1", b.pulls())
		}
	})
}

// TestCancel_NoBackOff checks that a canceled pull causes no back-off.
func TestCancel_NoBackOff(t *testing.T) {
	run(t, pull.Options{}, func(b *fixture) {
		b.remote("web:1", nil)
		remove := b.Inject(runtimetest.Fault{Method: "PullImage", Hangs: true})
		ctx, cancel := context.WithTimeout(b.t.Context(), time.Second)
		defer cancel()
		if _, err := b.Ensure(ctx, effect.ImageRequest{Image: "web:1", Policy: "Always"}, func() {}); err == nil {
			b.t.Fatal("canceled pull: got no error, want one")
		}
		remove()
		if err := b.ensure("web:1", "Always"); err != nil {
			b.t.Error(err)
		}
	})
}

// TestBackOff checks that the back-off doubles from 10s to 5m, is shared by all callers,
// and is reset by a success or after a long time without failures.
func TestBackOff(t *testing.T) {
	run(t, pull.Options{}, func(b *fixture) {
		b.remote("web:1", errUnreachable)
		var waits []time.Duration
		fails := func() time.Duration {
			err := b.ensure("web:1", "Always")
			later, ok := errors.AsType[*result.RetryLaterError](err)
			if !ok {
				b.t.Fatalf("got error %v, want a *result.RetryLaterError", err)
			}
			return time.Until(later.Until)
		}
		for range 7 {
			wait := fails()
			waits = append(waits, wait)
			before := b.pulls()
			if again := fails(); again != wait || b.pulls() != before {
				b.t.Fatalf("immediate retry: got a wait of %s, want %s; got %d more pulls, want none", again, wait, b.pulls()-before)
			}
			sleep(wait)
		}
		s := time.Second
		for i, want := range []time.Duration{10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 300 * s, 300 * s} {
			if waits[i] != want {
				b.t.Errorf("wait %d: got %s, want %s", i, waits[i], want)
			}
		}
		b.remote("web:1", nil)
		if err := b.ensure("web:1", "Always"); err != nil {
			b.t.Fatal(err)
		}
		b.remote("web:1", errUnreachable)
		if wait := fails(); wait != 10*s {
			b.t.Errorf("first wait after a success: got %s, want 10s", wait)
		}
		sleep(10 * s)
		if wait := fails(); wait != 20*s {
			b.t.Errorf("second wait: got %s, want 20s", wait)
		}
		sleep(time.Hour)
		if wait := fails(); wait != 10*s {
			b.t.Errorf("first wait an hour later: got %s, want 10s", wait)
		}
	})
}

// TestRuntimeUnavailable checks that an unavailable runtime causes no back-off.
func TestRuntimeUnavailable(t *testing.T) {
	run(t, pull.Options{}, func(b *fixture) {
		b.remote("web:1", nil)
		b.Inject(runtimetest.Fault{Method: "PullImage", Nth: 1})
		err := b.ensure("web:1", "Always")
		if _, waits := errors.AsType[*result.RetryLaterError](err); err == nil || waits || !errors.Is(err, runtime.ErrUnavailable) {
			b.t.Fatalf("got error %v, want %v without a back-off", err, runtime.ErrUnavailable)
		}
		if err := b.ensure("web:1", "Always"); err != nil {
			b.t.Error(err)
		}
	})
}

// TestParallel checks that pulls run in parallel up to the limit, and that a pull that hangs
// occupies only one slot.
func TestParallel(t *testing.T) {
	run(t, pull.Options{MaxParallel: 2}, func(b *fixture) {
		b.Inject(runtimetest.Fault{Method: "PullImage", Hangs: true, Match: func(q any) bool {
			return strings.HasPrefix(q.(*cri.PullImageRequest).GetImage().GetImage(), "hung")
		}})
		ctx, cancel := context.WithCancel(b.t.Context())
		var all sync.WaitGroup
		all.Go(func() { _, _ = b.Ensure(ctx, effect.ImageRequest{Image: "hung:1", Policy: "Always"}, func() {}) })
		sleep(time.Second)
		began := time.Now()
		for _, name := range []string{"a:1", "b:1", "c:1"} {
			b.remote(name, nil)
			all.Go(func() {
				if err := b.ensure(name, "Always"); err != nil {
					b.t.Error(err)
				}
			})
		}
		sleep(3 * time.Second)
		if b.pulls() != 3 || time.Since(began) > 3*time.Second {
			b.t.Errorf("got %d pulls after %s; want 3", b.pulls(), time.Since(began))
		}
		cancel()
		all.Wait()
	})
}

// TestRate checks the rate limit of new pulls.
func TestRate(t *testing.T) {
	run(t, pull.Options{QPS: 1, Burst: 2}, func(b *fixture) {
		var all sync.WaitGroup
		for _, name := range []string{"a:1", "b:1", "c:1", "d:1"} {
			b.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: name}})
			all.Go(func() {
				if err := b.ensure(name, "Always"); err != nil {
					b.t.Error(err)
				}
			})
		}
		sleep(time.Millisecond)
		if b.pulls() != 2 {
			b.t.Errorf("got %d pulls at once, want 2", b.pulls())
		}
		all.Wait()
	})
}

// TestCredentialsTried checks that credentials are tried in order until the registry accepts them,
// and that no more credentials are tried if the registry is unreachable.
func TestCredentialsTried(t *testing.T) {
	auths := []*cri.AuthConfig{{Username: "a", Password: "secret-a"}, {Username: "b", Password: "secret-b"}}
	find := func(string) ([]*cri.AuthConfig, error) { return auths, nil }
	run(t, pull.Options{Credentials: find}, func(b *fixture) {
		b.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: "web:1"}, Username: "b", Password: "secret-b"})
		if err := b.ensure("web:1", "Always"); err != nil || b.pulls() != 2 {
			b.t.Errorf("got %d pulls and error %v; want 2 pulls and no error", b.pulls(), err)
		}
		b.ForgetCalls()
		b.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: "web:2"}, Username: "c", Password: "x"})
		err := b.ensure("web:2", "Always")
		if err == nil || strings.Contains(err.Error(), "secret") {
			b.t.Errorf("got error %v, want one without the content of the Secret", err)
		}
		b.ForgetCalls()
		b.remote("web:3", errUnreachable)
		if err := b.ensure("web:3", "Always"); err == nil || b.pulls() != 1 {
			b.t.Errorf("got %d pulls and error %v; want 1 pull and an error", b.pulls(), err)
		}
	})
}

// TestCredentialsMissing checks that the error names the file where credentials can be
// configured.
func TestCredentialsMissing(t *testing.T) {
	run(t, pull.Options{CredentialFiles: pull.NewCredentialFiles("/missing/root", "", "")}, func(b *fixture) {
		b.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: "registry.example/web:1"}, Username: "b", Password: "x"})
		err := b.ensure("registry.example/web:1", "Always")
		if err == nil || !strings.Contains(err.Error(), "/missing/root/config.json has no credentials for registry.example") {
			b.t.Errorf("got error %v, want a hint that names /missing/root/config.json", err)
		}
	})
}

// TestCredentialsBroken checks that an invalid file is reported, and that images that need no
// credentials of the file are pulled nevertheless.
func TestCredentialsBroken(t *testing.T) {
	find := func(string) ([]*cri.AuthConfig, error) {
		return nil, errors.New("the file is not a valid Docker config.json")
	}
	run(t, pull.Options{Credentials: find}, func(b *fixture) {
		b.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: "web:1"}, Username: "b", Password: "x"})
		if err := b.ensure("web:1", "Always"); err == nil || !strings.Contains(err.Error(), "Docker config.json") {
			b.t.Errorf("got error %v, want one that names the file", err)
		}
		b.remote("web:3", nil)
		if err := b.ensure("web:3", "Always"); err != nil {
			b.t.Errorf("public image: got error %v, want none", err)
		}
		b.AddImages("web:2")
		if err := b.ensure("web:2", "IfNotPresent"); err != nil {
			b.t.Error(err)
		}
	})
}

// TestInspectFails checks the error if the runtime cannot report the image.
func TestInspectFails(t *testing.T) {
	run(t, pull.Options{}, func(b *fixture) {
		b.Inject(runtimetest.Fault{Method: "ImageStatus", Err: status.Error(codes.Unknown, "disk I/O error")})
		err := b.ensure("web:1", "IfNotPresent")
		if e, ok := errors.AsType[*runtime.PullError](err); !ok || e.Reason != "ImageInspectError" {
			b.t.Errorf("got error %v, want reason ImageInspectError", err)
		}
	})
}

// TestOnEnsure checks the report about each call of Ensure.
func TestOnEnsure(t *testing.T) {
	var got []string
	format := func(b *bool) string {
		if b == nil {
			return "unknown"
		}
		return strconv.FormatBool(*b)
	}
	record := func(c pull.Check) {
		got = append(got, c.Policy+" "+format(c.Present)+" "+format(c.PullRequired))
	}
	run(t, pull.Options{OnEnsure: record}, func(b *fixture) {
		b.AddImages("web:1")
		b.remote("web:1", nil)
		for _, image := range []string{"web:1", "missing:1"} {
			for _, policy := range []string{"Always", "IfNotPresent", "Never"} {
				_ = b.ensure(image, policy)
			}
		}
		b.Inject(runtimetest.Fault{Method: "ImageStatus", Err: status.Error(codes.Unknown, "disk I/O error")})
		_ = b.ensure("web:1", "Always")
	})
	want := []string{
		"Always unknown true", "IfNotPresent true false", "Never true false",
		"Always unknown true", "IfNotPresent false true", "Never false unknown", "Always unknown unknown",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reports as \"policy, image on the node, pull required\" (-want +got):\n%s", diff)
	}
}

// TestRepair checks that a damaged image is removed once and pulled again, and that an image that
// cannot be pulled again is kept.
func TestRepair(t *testing.T) {
	damaged := errors.New("layer lost")
	run(t, pull.Options{}, func(b *fixture) {
		b.remote("web:1", nil)
		if err := b.ensure("web:1", "IfNotPresent"); err != nil {
			b.t.Fatal(err)
		}
		i, _, _ := b.ImageStatus(b.t.Context(), "web:1")
		repair := func(policy, want string) {
			b.t.Helper()
			err := b.Repair(b.t.Context(), "web:1", i.ID, policy, damaged)
			if !errors.Is(err, damaged) || !strings.Contains(err.Error(), want) {
				b.t.Errorf("got error %v, want one that wraps the cause and contains %q", err, want)
			}
		}
		wantRemovals := func(want int) {
			b.t.Helper()
			if got := len(b.Calls("RemoveImage")); got != want {
				b.t.Errorf("got %d removals, want %d", got, want)
			}
		}
		repair("Never", "imagePullPolicy is Never")
		b.AddImage(runtimetest.Image{Name: "web:1", Pinned: true})
		repair("IfNotPresent", "pinned by the configuration of the runtime")
		b.AddImage(runtimetest.Image{Name: "web:1"})
		wantRemovals(0)
		remove := b.Inject(runtimetest.Fault{Method: "RemoveImage", Err: errors.New("busy")})
		repair("IfNotPresent", "removing damaged image web:1 failed: busy")
		remove()
		b.ForgetCalls()
		repair("IfNotPresent", "podd has removed it and pulls it again")
		repair("IfNotPresent", "podd has removed it and pulls it again") // the start of another container
		wantRemovals(1)
		if err := b.ensure("web:1", "IfNotPresent"); err != nil || b.pulls() != 1 {
			b.t.Errorf("got error %v and %d pulls; want no error and 1 pull", err, b.pulls())
		}
		repair("IfNotPresent", "still damaged after podd has removed it and it was pulled or imported again")
		wantRemovals(1)
	})
}

// TestEnsure_UnreadableImage checks that an image that the runtime cannot inspect because it is damaged is
// pulled again once without being removed. If the image is still damaged, Ensure returns an error.
func TestEnsure_UnreadableImage(t *testing.T) {
	damaged := status.Error(codes.Unknown, "unexpected end of JSON input")
	run(t, pull.Options{}, func(b *fixture) {
		b.AddImages("web:1")
		b.remote("web:1", nil)
		damage := func() (repair func()) { return b.Inject(runtimetest.Fault{Method: "ImageStatus", Err: damaged}) }
		want := func(policy, text string, pulls int) {
			b.t.Helper()
			image, err := b.Ensure(b.t.Context(), effect.ImageRequest{Image: "web:1", Policy: policy}, func() {})
			if image.Warning != "" { // the user need not do anything
				b.t.Errorf("got warning %q, want none", image.Warning)
			}
			if text == "" && err != nil || text != "" && (err == nil || !strings.Contains(err.Error(), text)) || b.pulls() != pulls {
				b.t.Errorf("got error %v and %d pulls; want error %q and %d pulls", err, b.pulls(), text, pulls)
			}
		}
		repair := damage()
		want("Never", "image web:1 is damaged and imagePullPolicy is Never", 0)
		want("IfNotPresent", "", 1)
		sleep(time.Second)
		want("IfNotPresent", "image web:1 is still damaged after podd has pulled it again; check the disk of this node", 1)
		sleep(time.Hour)
		want("IfNotPresent", "", 2)
		repair()
		want("IfNotPresent", "", 2)
		sleep(time.Second)
		damage() // again
		want("IfNotPresent", "", 3)
		if got := len(b.Calls("RemoveImage")); got != 0 {
			b.t.Errorf("got %d removals, want 0", got)
		}
	})
}

// TestEnsure_UnreadableImageNotPulled checks that the pull of a damaged image is repeated if it fails.
func TestEnsure_UnreadableImageNotPulled(t *testing.T) {
	run(t, pull.Options{UsePresentIfUnreachable: true}, func(b *fixture) {
		b.AddImages("web:1")
		b.remote("web:1", errUnreachable)
		defer b.Inject(runtimetest.Fault{Method: "ImageStatus", Err: status.Error(codes.Unknown, "unexpected end of JSON input")})()
		for pulls := range 2 {
			if err := b.ensure("web:1", "IfNotPresent"); err == nil || !strings.Contains(err.Error(), "no such host") || b.pulls() != pulls+1 {
				b.t.Errorf("got error %v and %d pulls; want \"no such host\" and %d", err, b.pulls(), pulls+1)
			}
			sleep(time.Minute)
		}
	})
}

// An imported is a runtime whose images have the digests that an import gives them.
type imported struct {
	pull.Runtime
	digests []string
}

func (i imported) ImageStatus(ctx context.Context, name string) (runtime.Image, bool, error) {
	found, isPresent, err := i.Runtime.ImageStatus(ctx, name)
	found.Digests = i.digests
	return found, isPresent, err
}

// TestRepair_Imported checks that a damaged image is removed only if it was pulled from the
// registry that its name contains.
func TestRepair_Imported(t *testing.T) {
	const digest = "@sha256:1"
	for name, test := range map[string]struct {
		image    string
		digests  []string
		removals int
	}{
		"imported":                            {"web:1", nil, 0},
		"imported with another name":          {"web:1", []string{"docker.io/library/import-2026-01-01" + digest}, 0},
		"pulled from another registry":        {"registry.example/web:1", []string{"mirror.example/web" + digest}, 0},
		"pulled":                              {"registry.example:5000/web:1", []string{"mirror.example/web" + digest, "registry.example:5000/web" + digest}, 1},
		"pulled from the default registry":    {"web:1", []string{"docker.io/library/web" + digest}, 1},
		"pulled from a default registry user": {"team/web", []string{"docker.io/team/web" + digest}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, pull.Options{}, func(b *fixture) {
				b.AddImages(test.image)
				p := pull.New(pull.Options{Runtime: imported{b.Client, test.digests}})
				err := p.Repair(b.t.Context(), test.image, test.image, "IfNotPresent", errors.New("layer lost"))
				if got := len(b.Calls("RemoveImage")); got != test.removals {
					b.t.Errorf("got %d removals and error %v; want %d", got, err, test.removals)
				}
			})
		})
	}
}

// TestRepair_Again checks that an image is repaired again after the last repair has ended, but not
// while it is still damaged.
func TestRepair_Again(t *testing.T) {
	const done, still = "podd has removed it and pulls it again", "is still damaged"
	type step = func(b *fixture, ref string)
	pullAgain := func(b *fixture, _ string) {
		if err := b.ensure("web:1", "IfNotPresent"); err != nil {
			b.t.Fatal(err)
		}
	}
	addAgain := func(b *fixture, ref string) { b.AddImage(runtimetest.Image{Name: "web:1", ID: ref}) }
	create := func(b *fixture, ref string) { b.EndRepair(ref) }
	wait := func(b *fixture, _ string) { sleep(time.Hour) }
	for name, test := range map[string]struct {
		steps    []step
		want     string
		removals int
	}{
		"pulled":                                 {[]step{pullAgain}, still, 1},
		"pulled, container created":              {[]step{pullAgain, create}, done, 2},
		"pulled, expired":                        {[]step{pullAgain, wait}, done, 2},
		"added by another program":               {[]step{addAgain, pullAgain}, still, 1},
		"added by another program, then created": {[]step{addAgain, pullAgain, create}, done, 2},
		"added by another program, then expired": {[]step{addAgain, pullAgain, wait}, done, 2},
		"never pulled again, expired":            {[]step{wait, addAgain}, done, 2},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, pull.Options{}, func(b *fixture) {
				b.remote("web:1", nil)
				pullAgain(b, "")
				i, _, _ := b.ImageStatus(b.t.Context(), "web:1")
				repair := func() error { return b.Repair(b.t.Context(), "web:1", i.ID, "IfNotPresent", errors.New("layer lost")) }
				_ = repair()
				sleep(time.Second)
				for _, do := range test.steps {
					do(b, i.ID)
				}
				if err := repair(); !strings.Contains(err.Error(), test.want) {
					b.t.Errorf("got error %v, want %q", err, test.want)
				}
				if got := len(b.Calls("RemoveImage")); got != test.removals {
					b.t.Errorf("got %d removals, want %d", got, test.removals)
				}
			})
		})
	}
}
