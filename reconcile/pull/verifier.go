package pull

import (
	"context"
	"errors"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/reconcile/effect"
	"podd/reconcile/pull/verify"
	"podd/runtime"
)

// A verifier reads and writes the records for package verify. It is safe for concurrent use.
type verifier struct {
	o Options

	mu           sync.Mutex // guards hasRecovered, and is held during Recover
	hasRecovered bool
}

// lookup returns the records of the image with this name and ID. It returns the zero value if
// credentials are not verified or the image is not present.
func (v *verifier) lookup(ctx context.Context, name, id string, present bool) verify.Records {
	if v.o.Records == nil || !present {
		return verify.Records{}
	}
	v.recoverOnce(ctx)
	known, err := v.o.Records.Lookup(name, id)
	v.log(err, "the image is pulled again")
	return known
}

// recoverOnce handles the pulls that the previous process has not completed. After the first call, it
// does nothing unless the runtime was unavailable.
func (v *verifier) recoverOnce(ctx context.Context) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.hasRecovered {
		return
	}
	err := v.o.Records.Recover(ctx, v.o.Runtime)
	v.hasRecovered = ctx.Err() == nil && !errors.Is(err, runtime.ErrUnavailable)
	v.log(err, "an image that was pulled before the restart of podd may count as preloaded")
}

// decide decides whether a pod may use an image.
func (v *verifier) decide(r effect.ImageRequest, have runtime.Image, present bool, known verify.Records, logins []login) verify.Decision {
	return v.apply(r.Image, have.ID, verify.Decide(v.input(r, have, present, known, logins)))
}

// input returns the facts for a decision.
func (v *verifier) input(r effect.ImageRequest, have runtime.Image, present bool, known verify.Records, logins []login) verify.Input {
	in := verify.Input{
		Image: r.Image, PullPolicy: v1.PullPolicy(r.Policy), IsPresent: present, Names: slices.Concat(have.Tags, have.Digests),
		Records: known, Secrets: secretsOf(logins),
	}
	if v.o.Records != nil {
		in.Policy = &v.o.VerificationPolicy
	}
	return in
}

// apply reports the result of d, and records the Secret that it contains. It returns d.
func (v *verifier) apply(image, id string, d verify.Decision) verify.Decision {
	if d.Result != "" && v.o.OnVerify != nil {
		v.o.OnVerify(d.Result)
	}
	if d.Learned != nil {
		v.add(image, id, kubelet.ImagePullCredentials{KubernetesSecrets: []kubelet.ImagePullSecret{*d.Learned}})
	}
	return d
}

// mayUseOffline reports whether a pod may use a present image whose registry is unreachable.
func (v *verifier) mayUseOffline(r effect.ImageRequest, have runtime.Image, known verify.Records, logins []login) bool {
	return v.apply(r.Image, have.ID, verify.DecideOffline(v.input(r, have, true, known, logins))).Action == verify.Use
}

// learnJoined records the Secret of a pod that has joined the pull of another pod with equal
// credentials.
func (v *verifier) learnJoined(image string, got pullResult, logins []login) {
	if got.id == "" || got.used == nil || got.used.secret == nil {
		return
	}
	for _, l := range logins {
		if s := l.secret; *s != *got.used.secret && s.CredentialHash == got.used.secret.CredentialHash {
			v.add(image, got.id, kubelet.ImagePullCredentials{KubernetesSecrets: []kubelet.ImagePullSecret{*s}})
		}
	}
}

// add adds credentials to the record of an image.
func (v *verifier) add(image, id string, credentials kubelet.ImagePullCredentials) {
	v.log(v.o.Records.Add(id, verify.Repository(image), credentials), "pods whose Secret changes need to pull the image again")
}

// log logs that a record could not be read or written, unless err is nil. consequence describes what
// happens next.
func (v *verifier) log(err error, consequence string) {
	if err != nil {
		v.o.Log.Warn("using the records of image pulls failed; "+consequence, "err", err)
	}
}

// secretsOf returns the Secrets that contain logins.
func secretsOf(logins []login) (secrets []kubelet.ImagePullSecret) {
	for _, l := range logins {
		if l.secret != nil {
			secrets = append(secrets, *l.secret)
		}
	}
	return secrets
}
