package pull_test

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/reconcile/effect"
	"podd/reconcile/pull"
	"podd/runtime/runtimetest"
)

func pullSecret(kind v1.SecretType, key, text string) *v1.Secret {
	return &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "creds"}, Type: kind, Data: map[string][]byte{key: []byte(text)}}
}

// TestSecrets checks that the credentials of a pod's Secrets are tried before the credentials of
// the file, and that their failure does not delay another pod.
func TestSecrets(t *testing.T) {
	const auths = `{"registry.example": {"username": "b", "password": "hunter2"}}`
	file := write(t, `{"auths": {"registry.example": {"username": "b", "password": "of the node"}}}`)
	for name, test := range map[string]struct {
		secrets []*v1.Secret
		pulls   int
		err     string
	}{
		"json":         {[]*v1.Secret{pullSecret(v1.SecretTypeDockerConfigJson, v1.DockerConfigJsonKey, `{"auths": `+auths+`}`)}, 1, ""},
		"old form":     {[]*v1.Secret{pullSecret(v1.SecretTypeDockercfg, v1.DockerConfigKey, auths)}, 1, ""},
		"the second":   {[]*v1.Secret{pullSecret(v1.SecretTypeDockercfg, v1.DockerConfigKey, strings.Replace(auths, "hunter2", "old", 1)), pullSecret(v1.SecretTypeDockercfg, v1.DockerConfigKey, auths)}, 2, ""},
		"other host":   {[]*v1.Secret{pullSecret(v1.SecretTypeDockercfg, v1.DockerConfigKey, strings.Replace(auths, "example", "else", 1))}, 1, "401"},
		"another type": {[]*v1.Secret{pullSecret(v1.SecretTypeOpaque, v1.DockerConfigKey, auths)}, 1, "401"},
		"broken":       {[]*v1.Secret{pullSecret(v1.SecretTypeDockercfg, v1.DockerConfigKey, `["hunter2"]`)}, 0, `the Secret "creds" of the pod's imagePullSecrets is not a Docker configuration`},
		"none":         {nil, 1, "401"},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, pull.Options{Credentials: pull.CredentialFiles{{Path: file}}.Credentials, CredentialFiles: pull.CredentialFiles{{Path: file}}}, func(b *fixture) {
				b.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: "registry.example/web:1"}, Username: "b", Password: "hunter2"})
				_, err := b.Ensure(b.t.Context(), effect.ImageRequest{Image: "registry.example/web:1", Policy: "Always", Secrets: test.secrets}, func() {})
				if (err == nil) != (test.err == "") || err != nil && (!strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), "hunter2")) || b.pulls() != test.pulls {
					b.t.Errorf("got %d pulls, want %d; error %v, want %q", b.pulls(), test.pulls, err, test.err)
				}
				// A pod with valid credentials does not wait for the back-off of the others.
				right := pullSecret(v1.SecretTypeDockercfg, v1.DockerConfigKey, auths)
				if _, err := b.Ensure(b.t.Context(), effect.ImageRequest{Image: "registry.example/web:1", Policy: "Always", Secrets: []*v1.Secret{right}}, func() {}); err != nil {
					b.t.Error(err)
				}
			})
		})
	}
}

// TestSecretsOrder checks that, as in the kubelet, the most specific entry of all Secrets comes
// first, and that equal entries keep the order of the Secrets.
func TestSecretsOrder(t *testing.T) {
	run(t, pull.Options{}, func(b *fixture) {
		b.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: "registry.example/team/web:1"}, Username: "last", Password: "p"})
		secrets := []*v1.Secret{
			pullSecret(v1.SecretTypeDockercfg, v1.DockerConfigKey, `{"*.example": {"username": "last", "password": "p"}, "registry.example/team": {"username": "first"}}`),
			pullSecret(v1.SecretTypeDockercfg, v1.DockerConfigKey, `{"registry.example/team": {"username": "second"}, "https://registry.example/v2/": {"username": "third"}}`),
		}
		if _, err := b.Ensure(b.t.Context(), effect.ImageRequest{Image: "registry.example/team/web:1", Policy: "Always", Secrets: secrets}, func() {}); err != nil {
			b.t.Error(err)
		}
		var users []string
		for _, c := range b.Calls("PullImage") {
			users = append(users, c.Request.(*cri.PullImageRequest).Auth.Username)
		}
		if got := strings.Join(users, " "); got != "first second third last" {
			b.t.Errorf("got users %s, want first second third last", got)
		}
	})
}
