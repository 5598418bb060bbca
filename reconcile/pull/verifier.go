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
func (v *verifier) lookup(ctx context.Context, name, id string, isPresent bool) verify.Records {
	if v.o.Records == nil || !isPresent {
		return verify.Records{}
	}
	v.recoverOnce(ctx)
	records, err := v.o.Records.Lookup(name, id)
	v.log(err, "the image is pulled again")
	return records
}

// recoverOnce handles the pulls that the previous process has not completed. It does nothing if an
// earlier call has reached the runtime.
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

// facts contains the facts for the decision whether a pod may use an image.
type facts struct {
	effect.ImageRequest
	isPresent bool
	image     runtime.Image // the present image; zero if there is none
	records   verify.Records
	logins    []login // the credentials in ImageRequest.Secrets
}

// decide decides with verify.Decide or verify.DecideOffline whether a pod may use an image. It reports
// the result, and records the Secret that the decision contains.
func (v *verifier) decide(ctx context.Context, f facts, decide func(verify.Input) verify.Decision) verify.Decision {
	in := verify.Input{
		Image: f.Image, PullPolicy: v1.PullPolicy(f.Policy), IsPresent: f.isPresent, Names: slices.Concat(f.image.Tags, f.image.Digests),
		Records: f.records, Secrets: secretsOf(f.logins),
	}
	if v.o.Records != nil {
		in.Policy = &v.o.VerificationPolicy
	}
	d := decide(in)
	if d.Result == verify.MustAuthenticate {
		if in.ServiceAccount = v.serviceAccount(ctx, f); in.ServiceAccount != nil {
			d = decide(in)
		}
	}
	if d.Result != "" && v.o.OnVerify != nil {
		v.o.OnVerify(d.Result)
	}
	if d.SecretToRecord != nil {
		v.add(f.Image, f.image.ID, kubelet.ImagePullCredentials{KubernetesSecrets: []kubelet.ImagePullSecret{*d.SecretToRecord}})
	}
	return d
}

// serviceAccount returns the service account of the pod if the image was pulled with the token of a
// service account and a credential provider uses tokens for it. Otherwise it returns nil. It sends a
// request to the API server only in this case.
func (v *verifier) serviceAccount(ctx context.Context, f facts) *kubelet.ImagePullServiceAccount {
	if v.o.Providers == nil || len(f.records.Credentials[verify.Repository(f.Image)].KubernetesServiceAccounts) == 0 {
		return nil
	}
	account, err := v.o.Providers.ServiceAccount(ctx, providerRequest(f.ImageRequest))
	if err != nil {
		v.o.Log.Warn("looking up the service account of a pod failed; pulling the image again", "pod", f.Pod, "image", f.Image, "err", err)
	}
	return account
}

// logPull logs that a pod must pull a present image because of decision d. The status of the pod does not
// contain this reason, because it would reveal to other tenants that the image is on the node.
func (v *verifier) logPull(f facts, d verify.Decision) {
	if d.Result == verify.MustAuthenticate {
		v.o.Log.Info("image is present, but the credentials of the pod are not verified for it; pulling it again", "pod", f.Pod, "image", f.Image)
	}
}

// recordSharedPull records the Secret of a pod that has joined the pull of another pod with equal
// credentials.
func (v *verifier) recordSharedPull(image string, pulled pullResult, logins []login) {
	if pulled.id == "" || pulled.usedLogin == nil || pulled.usedLogin.secret == nil {
		return
	}
	for _, l := range logins {
		if s := l.secret; s != nil && *s != *pulled.usedLogin.secret && s.CredentialHash == pulled.usedLogin.secret.CredentialHash {
			v.add(image, pulled.id, kubelet.ImagePullCredentials{KubernetesSecrets: []kubelet.ImagePullSecret{*s}})
		}
	}
}

// add adds credentials to the record of an image.
func (v *verifier) add(image, id string, credentials kubelet.ImagePullCredentials) {
	v.log(v.o.Records.Add(id, verify.Repository(image), credentials), "a pod must pull the image again after its Secret has changed")
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
