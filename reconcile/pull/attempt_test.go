package pull_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/reconcile/effect"
	"podd/reconcile/pull"
	"podd/reconcile/pull/provider"
	"podd/runtime/runtimetest"
)

// TestOrder checks that credentials are tried in this order: the Secrets of the pod, config.json,
// the providers. Providers are run only if the registry rejects all other credentials. A failure of
// a provider does not prevent a pull.
func TestOrder(t *testing.T) {
	secret := func(password string) *v1.Secret {
		return pullSecret(v1.SecretTypeDockercfg, v1.DockerConfigKey, `{"registry.example": {"username": "b", "password": "`+password+`"}}`)
	}
	providerErr := errors.New("credential provider x failed")
	for name, test := range map[string]struct {
		secret, file, provider string // passwords; only "right" is accepted
		providerErr            error
		tried                  string
		warns, fails           string
	}{
		"by the Secret":           {"right", "old", "old", nil, "right", "", ""},
		"by the file":             {"old", "right", "none", nil, "old right", "", ""},
		"by the provider":         {"old", "older", "right", nil, "old older query right", "", ""},
		"by the provider alone":   {"", "", "right", nil, "query right", "", ""},
		"no credentials":          {"", "", "", nil, "query -", "", "without credentials"},
		"no valid credentials":    {"old", "older", "oldest", nil, "old older query oldest", "", "rejected the credentials"},
		"failed, others valid":    {"", "", "right", providerErr, "query right", "credential provider x failed", ""},
		"failed, others rejected": {"old", "", "", providerErr, "old query", "", "credential provider x failed"},
		"failed, no others":       {"", "", "", providerErr, "query -", "", "credential provider x failed"},
		"failing one not needed":  {"right", "", "", providerErr, "right", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			auth := func(password string) []*cri.AuthConfig {
				if password == "" {
					return nil
				}
				return []*cri.AuthConfig{{Username: "b", Password: password}}
			}
			var tried []string
			o := pull.Options{
				Credentials: func(string) ([]*cri.AuthConfig, error) { return auth(test.file), nil },
				Providers: providers(func(r provider.Request) ([]provider.Credential, error) {
					if tried = append(tried, "query"); r.Repository != "registry.example/web" {
						t.Errorf("repository in the request to the provider: got %s, want registry.example/web", r.Repository)
					}
					var all []provider.Credential
					for _, a := range auth(test.provider) {
						all = append(all, provider.Credential{Auth: a})
					}
					return all, test.providerErr
				}),
			}
			run(t, o, func(b *fixture) {
				b.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: "registry.example/web:1"}, Username: "b", Password: "right"})
				b.Inject(runtimetest.Fault{Method: "PullImage", Match: func(q any) bool {
					password := q.(*cri.PullImageRequest).GetAuth().GetPassword()
					if password == "" {
						password = "-"
					}
					tried = append(tried, password)
					return false
				}})
				var secrets []*v1.Secret
				if test.secret != "" {
					secrets = append(secrets, secret(test.secret))
				}
				got, err := b.Ensure(b.t.Context(), effect.ImageRequest{Image: "registry.example/web:1", Policy: "Always", Secrets: secrets}, func() {})
				if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) ||
					(got.Warning == "") != (test.warns == "") || !strings.Contains(got.Warning, test.warns) {
					b.t.Errorf("got warning %q and error %v; want warning %q and error %q", got.Warning, err, test.warns, test.fails)
				}
				if got := strings.Join(tried, " "); got != test.tried {
					b.t.Errorf("got attempts %q, want %q", got, test.tried)
				}
			})
		})
	}
}

// providers returns the result of a function as the credentials of providers. The credentials depend on
// the service account if the pod has one. The UID of a service account is its name.
type providers func(provider.Request) ([]provider.Credential, error)

func (f providers) Credentials(_ context.Context, r provider.Request) ([]provider.Credential, error) {
	return f(r)
}

func (f providers) UsesServiceAccount(r provider.Request) bool { return r.Pod.ServiceAccount != "" }

func (f providers) ServiceAccount(_ context.Context, r provider.Request) (*kubelet.ImagePullServiceAccount, error) {
	if r.Pod.ServiceAccount == "" {
		return nil, nil
	}
	return &kubelet.ImagePullServiceAccount{UID: r.Pod.ServiceAccount, Namespace: r.Pod.Namespace, Name: r.Pod.ServiceAccount}, nil
}

// TestRepository checks the name of the image in requests to providers.
func TestRepository(t *testing.T) {
	for image, want := range map[string]string{
		"nginx":                            "docker.io/library/nginx",
		"me/web:1":                         "docker.io/me/web",
		"index.docker.io/nginx":            "docker.io/library/nginx",
		"a.io:5000/team/web:1@sha256:abcd": "a.io:5000/team/web",
		"localhost/web@sha256:abcd":        "localhost/web",
	} {
		got := ""
		o := pull.Options{Providers: providers(func(r provider.Request) ([]provider.Credential, error) {
			got = r.Repository
			return nil, nil
		})}
		run(t, o, func(b *fixture) { _ = b.ensure(image, "Always") })
		if got != want {
			t.Errorf("%s: got %q, want %q", image, got, want)
		}
	}
}
