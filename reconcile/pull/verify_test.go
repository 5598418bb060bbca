package pull_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/reconcile/effect"
	"podd/reconcile/pull"
	"podd/reconcile/pull/provider"
	"podd/reconcile/pull/record"
	"podd/reconcile/pull/verify"
	"podd/runtime"
	"podd/runtime/runtimetest"
)

const private = "registry.example/team/web:1"

// keySecret returns a Secret with the credentials for the image private.
func keySecret(namespace, name, password string) *v1.Secret {
	return &v1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: v1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{v1.DockerConfigJsonKey: []byte(`{"auths": {"registry.example": {"username": "ann", "password": "` + password + `"}}}`)},
	}
}

// A verified is a fixture with records.
type verified struct {
	*fixture
	root    string
	options pull.Options
	results []verify.Result
}

// runVerified calls test with a Puller that verifies credentials. The image private needs
// credentials.
func runVerified(t *testing.T, mode kubelet.ImagePullCredentialsVerificationPolicy, o pull.Options, test func(v *verified)) {
	t.Helper()
	v := &verified{root: t.TempDir()}
	o.VerificationPolicy.Mode = mode
	o.Records = record.New(v.root)
	o.OnVerify = func(r verify.Result) { v.results = append(v.results, r) }
	run(t, o, func(b *fixture) {
		v.fixture, v.options = b, o
		v.options.Runtime = b.Client
		b.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: private}, Username: "ann", Password: "right", PullDuration: time.Second})
		test(v)
	})
}

// restart replaces the Puller with a new one. The new Puller has only the records that are stored
// in files.
func (v *verified) restart() {
	v.options.Records = record.New(v.root)
	v.Puller = pull.New(v.options)
}

// reason returns the reason of the error of Ensure, or "".
func (v *verified) reason(policy string, secrets ...*v1.Secret) string {
	v.t.Helper()
	_, err := v.Ensure(v.t.Context(), effect.ImageRequest{Image: private, Policy: policy, Secrets: secrets, Source: "files"}, func() {})
	if e, ok := errors.AsType[*runtime.PullError](err); ok {
		return e.Reason
	}
	if err != nil {
		v.t.Errorf("got error %v, want one with a reason", err)
	}
	return ""
}

// expect checks the result of Ensure and the number of pulls so far.
func (v *verified) expect(subject string, pulls int, want, got string) {
	v.t.Helper()
	if got != want || v.pulls() != pulls {
		v.t.Errorf("%s: got %d pulls and reason %q; want %d pulls and reason %q", subject, v.pulls(), got, pulls, want)
	}
}

// TestVerify checks which pods may use an image that was pulled with a Secret, also after a restart
// of podd.
func TestVerify(t *testing.T) {
	key := keySecret("team", "key", "right")
	runVerified(t, kubelet.NeverVerifyPreloadedImages, pull.Options{}, func(v *verified) {
		v.expect("the first pod", 1, "", v.reason("IfNotPresent", key))
		v.expect("the same Secret", 1, "", v.reason("IfNotPresent", key))
		v.expect("the same Secret, and no pull", 1, "", v.reason("Never", key))
		v.expect("no Secret, and no pull", 1, "ErrImageNeverPull", v.reason("Never"))
		v.expect("no Secret", 2, "ErrImagePull", v.reason("IfNotPresent"))
		v.restart()
		v.expect("the same Secret after a restart", 2, "", v.reason("IfNotPresent", key))
		v.expect("no Secret after a restart", 3, "ErrImagePull", v.reason("IfNotPresent"))
		v.expect("an equal Secret", 3, "", v.reason("Never", keySecret("other", "copy", "right")))
		v.expect("the equal Secret after a change", 3, "", v.reason("Never", keySecret("other", "copy", "new")))
		v.expect("another Secret", 4, "ErrImagePull", v.reason("IfNotPresent", keySecret("other", "key", "wrong")))
	})
}

// TestVerify_Kubelet checks that a pod may use an image that a kubelet has pulled with the same
// credentials. The hash of the kubelet includes the email address.
func TestVerify_Kubelet(t *testing.T) {
	runVerified(t, kubelet.NeverVerifyPreloadedImages, pull.Options{}, func(v *verified) {
		v.AddImage(runtimetest.Image{Name: private, ID: "sha256:1"})
		file := filepath.Join(v.root, "image_manager/pulled", "sha256-51ae7fa00c92525c319404a3a6d400e52ff9372c5a39cb415e0486fe425f3165")
		const text = `{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1","lastUpdatedTime":"2026-01-02T03:04:05Z","imageRef":"sha256:1",` +
			`"credentialMapping":{"registry.example/team/web":{"kubernetesSecrets":[{"uid":"u","namespace":"n","name":"key","credentialHash":"dadde23f46a4a6e11b4d61f12c1b9c9a330115784292203b12259efcebcc7245"}]}}}`
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			v.t.Fatal(err)
		}
		key := pullSecret(v1.SecretTypeDockercfg, v1.DockerConfigKey, `{"registry.example": {"auth": "YW5uOnJpZ2h0", "email": "ann@registry.example"}}`)
		v.expect("the same credentials", 0, "", v.reason("Never", key))
		v.expect("other credentials", 0, "ErrImageNeverPull", v.reason("Never", keySecret("team", "other", "right")))
	})
}

func TestVerify_NeverVerify(t *testing.T) {
	runVerified(t, kubelet.NeverVerify, pull.Options{}, func(v *verified) {
		v.expect("the first pod", 1, "", v.reason("IfNotPresent", keySecret("team", "key", "right")))
		v.expect("no Secret", 1, "", v.reason("IfNotPresent"))
		v.options.VerificationPolicy.Mode = kubelet.NeverVerifyPreloadedImages
		v.restart()
		v.expect("no Secret, with another policy", 2, "ErrImagePull", v.reason("IfNotPresent"))
	})
}

func TestVerify_Preloaded(t *testing.T) {
	runVerified(t, kubelet.NeverVerifyPreloadedImages, pull.Options{}, func(v *verified) {
		v.AddImages(private)
		v.expect("a preloaded image", 0, "", v.reason("IfNotPresent"))
		v.options.VerificationPolicy.Mode = kubelet.AlwaysVerify
		v.restart()
		v.expect("a preloaded image, and all are verified", 1, "ErrImagePull", v.reason("IfNotPresent"))
		v.expect("a Secret for a preloaded image", 2, "", v.reason("IfNotPresent", keySecret("team", "key", "right")))
		want := []verify.Result{verify.PolicyAllowed, verify.MustAuthenticate, verify.MustAuthenticate}
		if diff := cmp.Diff(want, v.results); diff != "" {
			v.t.Errorf("results (-want +got):\n%s", diff)
		}
	})
}

// TestVerify_Log checks that the reason for the pull of an image that is on the node is logged once
// for each pull.
func TestVerify_Log(t *testing.T) {
	var log strings.Builder
	o := pull.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}
	runVerified(t, kubelet.NeverVerifyPreloadedImages, o, func(v *verified) {
		key := keySecret("team", "key", "right")
		v.expect("the first pod", 1, "", v.reason("IfNotPresent", key))
		v.expect("the same Secret", 1, "", v.reason("IfNotPresent", key))
		v.expect("the pull policy Always", 2, "", v.reason("Always", key))
		if log.Len() > 0 {
			v.t.Errorf("got the log %s, want none", log.String())
		}
		v.expect("no Secret", 3, "ErrImagePull", v.reason("IfNotPresent"))
		v.expect("no Secret during the back-off", 3, "ErrImagePull", v.reason("IfNotPresent"))
		if got := log.String(); strings.Count(got, "image is present") != 1 || !strings.Contains(got, private) {
			v.t.Errorf("got the log %s, want one line about the image", got)
		}
	})
}

// TestVerify_Calls checks that the verification needs no additional calls to the runtime: one call for an
// image on the node, and two calls and the pull for an absent image.
func TestVerify_Calls(t *testing.T) {
	want := map[string][]string{
		"present": {"ImageStatus present"},
		private:   {"ImageStatus " + private, "PullImage " + private, "ImageStatus"},
	}
	for _, records := range []bool{true, false} {
		runVerified(t, kubelet.NeverVerifyPreloadedImages, pull.Options{}, func(v *verified) {
			if !records {
				v.options.Records = nil
				v.Puller = pull.New(v.options)
			}
			v.AddImages("present")
			for image, calls := range want {
				v.ForgetCalls()
				r := effect.ImageRequest{Image: image, Policy: "IfNotPresent", Source: "files"}
				if image == private {
					r.Secrets = []*v1.Secret{keySecret("team", "key", "right")}
				}
				if _, err := v.Ensure(v.t.Context(), r, func() {}); err != nil {
					v.t.Error(err)
				}
				var got []string
				for _, c := range v.Calls() {
					got = append(got, c.String())
				}
				if len(got) != len(calls) || !strings.HasPrefix(strings.Join(got, ", "), strings.Join(calls, ", ")) {
					v.t.Errorf("%s, records: %t: got the calls %v, want %v", image, records, got, calls)
				}
			}
		})
	}
}

// TestVerify_NodeCredentials checks that every pod may use an image that was pulled with credentials of
// the node or without credentials.
func TestVerify_NodeCredentials(t *testing.T) {
	file := write(t, `{"auths": {"registry.example": {"username": "ann", "password": "right"}}}`)
	runVerified(t, kubelet.AlwaysVerify, pull.Options{Credentials: pull.CredentialFiles{{Path: file}}.Credentials}, func(v *verified) {
		v.expect("the first pod", 1, "", v.reason("IfNotPresent"))
		v.expect("the second pod", 1, "", v.reason("Never"))
		v.remote("public:1", nil)
		if err := errors.Join(v.ensure("public:1", "IfNotPresent"), v.ensure("public:1", "Never")); err != nil {
			v.t.Error(err)
		}
	})
}

// TestVerify_Shared checks that two pods that share a pull with equal credentials are both
// recorded.
func TestVerify_Shared(t *testing.T) {
	runVerified(t, kubelet.NeverVerifyPreloadedImages, pull.Options{}, func(v *verified) {
		done := make(chan string)
		for _, namespace := range []string{"one", "two"} {
			go func() { done <- v.reason("IfNotPresent", keySecret(namespace, "key", "right")) }()
		}
		v.expect("the pods", 1, "", <-done+<-done)
		v.restart()
		for _, namespace := range []string{"one", "two"} {
			v.expect("namespace "+namespace+" with a changed Secret", 1, "", v.reason("Never", keySecret(namespace, "key", "new")))
		}
	})
}

// TestVerify_ServiceAccount checks that only pods with the same service account may use an image that was
// pulled with its token, and that pods with different service accounts do not share a pull.
func TestVerify_ServiceAccount(t *testing.T) {
	give := providers(func(r provider.Request) ([]provider.Credential, error) {
		c := provider.Credential{Auth: &cri.AuthConfig{Username: "ann", Password: "wrong"}}
		if r.Pod.ServiceAccount == "builder" {
			c.Auth.Password = "right"
		}
		c.ServiceAccount, _ = providers(nil).ServiceAccount(t.Context(), r)
		return []provider.Credential{c}, nil
	})
	runVerified(t, kubelet.NeverVerifyPreloadedImages, pull.Options{Providers: give}, func(v *verified) {
		ensure := func(namespace, account, policy string) string {
			r := effect.ImageRequest{Image: private, Policy: policy, Pod: types.NamespacedName{Namespace: namespace, Name: "web"}, ServiceAccount: account}
			_, err := v.Ensure(v.t.Context(), r, func() {})
			if e, ok := errors.AsType[*runtime.PullError](err); ok {
				return e.Reason
			}
			return ""
		}
		done := make(chan string)
		go func() { done <- ensure("team", "other", "IfNotPresent") }()
		first, other := ensure("team", "builder", "IfNotPresent"), <-done
		v.expect("the first pod", 2, "", first)
		if other != "ErrImagePull" {
			v.t.Errorf("another service account at the same time: got reason %q, want ErrImagePull", other)
		}
		v.restart()
		v.expect("the same service account", 2, "", ensure("team", "builder", "Never"))
		v.expect("another namespace", 2, "ErrImageNeverPull", ensure("other", "builder", "Never"))
		v.expect("another service account", 2, "ErrImageNeverPull", ensure("team", "other", "Never"))
		v.expect("no service account", 2, "ErrImageNeverPull", ensure("team", "", "Never"))
	})
}

// TestVerify_Sources checks that Secrets with the same name in two sources are not the same Secret.
func TestVerify_Sources(t *testing.T) {
	runVerified(t, kubelet.NeverVerifyPreloadedImages, pull.Options{}, func(v *verified) {
		v.expect("the first pod", 1, "", v.reason("IfNotPresent", keySecret("team", "key", "right")))
		r := effect.ImageRequest{Image: private, Policy: "Never", Secrets: []*v1.Secret{keySecret("team", "key", "wrong")}, Source: "https://fleet.example"}
		if _, err := v.Ensure(v.t.Context(), r, func() {}); err == nil {
			v.t.Error("Secret of another source: got no error, want one")
		}
		r.Source = "files"
		if _, err := v.Ensure(v.t.Context(), r, func() {}); err != nil {
			v.t.Errorf("changed Secret: got error %v, want none", err)
		}
	})
}

// TestVerify_Canceled checks that an image is treated as pulled if podd was stopped during the pull
// and the runtime completed it.
func TestVerify_Canceled(t *testing.T) {
	for name, preloaded := range map[string]bool{"absent": false, "preloaded": true} {
		t.Run(name, func(t *testing.T) {
			runVerified(t, kubelet.NeverVerifyPreloadedImages, pull.Options{}, func(v *verified) {
				if preloaded {
					v.AddImages(private)
				}
				ctx, cancel := context.WithTimeout(v.t.Context(), time.Millisecond)
				defer cancel()
				r := effect.ImageRequest{Image: private, Policy: "Always", Secrets: []*v1.Secret{keySecret("team", "key", "right")}}
				if _, err := v.Ensure(ctx, r, func() {}); !errors.Is(err, context.DeadlineExceeded) {
					v.t.Errorf("got error %v, want an exceeded deadline", err)
				}
				v.AddImages(private)
				want := "ErrImageNeverPull"
				if preloaded { // and the image is still the same
					want = ""
				}
				v.expect("after the canceled pull", 1, want, v.reason("Never"))
				v.restart()
				v.expect("after a restart", 1, want, v.reason("Never"))
			})
		})
	}
}

// TestVerify_Offline checks that UsePresentIfUnreachable does not give a pod an image for which it has
// no credentials.
func TestVerify_Offline(t *testing.T) {
	key := keySecret("team", "key", "right")
	runVerified(t, kubelet.NeverVerifyPreloadedImages, pull.Options{UsePresentIfUnreachable: true}, func(v *verified) {
		v.expect("online", 1, "", v.reason("Always", key))
		v.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: private}, Err: errUnreachable})
		v.restart()
		v.expect("the same Secret", 2, "", v.reason("Always", key))
		v.expect("no Secret", 3, "ErrImagePull", v.reason("Always"))
		v.expect("the same Secret without a pull", 3, "", v.reason("IfNotPresent", key))
	})
	runVerified(t, kubelet.NeverVerifyPreloadedImages, pull.Options{UsePresentIfUnreachable: true}, func(v *verified) {
		v.AddImages(private)
		v.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: private}, Err: errUnreachable})
		v.expect("a preloaded image", 1, "", v.reason("Always"))
	})
}

// TestVerify_BrokenRecord checks that an image with a broken record is pulled again, which replaces the
// record, and that every pod may use the image if the registry is unreachable.
func TestVerify_BrokenRecord(t *testing.T) {
	runVerified(t, kubelet.NeverVerifyPreloadedImages, pull.Options{}, func(v *verified) {
		v.expect("the first pod", 1, "", v.reason("IfNotPresent", keySecret("team", "key", "right")))
		files, err := filepath.Glob(filepath.Join(v.root, "image_manager/pulled/*"))
		if err != nil || len(files) != 1 {
			v.t.Fatalf("got files %v, want one record; %v", files, err)
		}
		if data, err := os.ReadFile(files[0]); err != nil || strings.Contains(string(data), "right") {
			v.t.Errorf("record: got %s (error %v), want one without the password", data, err)
		}
		damage := func() {
			if err := os.WriteFile(files[0], make([]byte, 100), 0o600); err != nil {
				v.t.Fatal(err)
			}
		}
		damage()
		v.expect("no Secret, and no pull", 1, "ErrImageNeverPull", v.reason("Never"))
		v.expect("no Secret", 2, "ErrImagePull", v.reason("IfNotPresent"))
		v.expect("the same Secret", 3, "", v.reason("IfNotPresent", keySecret("team", "key", "right")))
		v.expect("the same Secret with the new record", 3, "", v.reason("Never", keySecret("team", "key", "right")))
		damage()
		v.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: private}, Err: errUnreachable})
		v.restart()
		v.expect("offline", 4, "", v.reason("IfNotPresent"))
		v.expect("offline during the back-off", 4, "", v.reason("IfNotPresent"))
		v.expect("offline, and the pull policy Always", 4, "ErrImagePull", v.reason("Always"))
		v.options.VerificationPolicy.Mode = kubelet.AlwaysVerify
		v.restart()
		v.expect("offline, and all are verified", 5, "ErrImagePull", v.reason("IfNotPresent"))
	})
}

// TestVerify_OtherName checks that every pod may still use a preloaded image under its own name
// after the same image was pulled from a registry under another name.
func TestVerify_OtherName(t *testing.T) {
	runVerified(t, kubelet.NeverVerifyPreloadedImages, pull.Options{}, func(v *verified) {
		const id = "sha256:1"
		v.AddImage(runtimetest.Image{Name: "docker.io/library/web:1", ID: id})
		v.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: private, ID: id}, Username: "ann", Password: "right"})
		v.expect("the pod that pulls", 1, "", v.reason("IfNotPresent", keySecret("team", "key", "right")))
		if err := v.ensure("docker.io/library/web:1", "Never"); err != nil {
			v.t.Errorf("the preloaded name: got error %v, want none", err)
		}
		for _, name := range []string{private, id} {
			if err := v.ensure(name, "Never"); err == nil {
				v.t.Errorf("%s: pod without a Secret: got no error, want one", name)
			}
		}
	})
}

// TestVerify_FullDisk checks that no image is pulled if the pull cannot be recorded.
func TestVerify_FullDisk(t *testing.T) {
	runVerified(t, kubelet.NeverVerifyPreloadedImages, pull.Options{}, func(v *verified) {
		if err := os.WriteFile(filepath.Join(v.root, "image_manager"), nil, 0o600); err != nil {
			v.t.Fatal(err)
		}
		v.expect("the pod", 0, "ErrImagePull", v.reason("IfNotPresent", keySecret("team", "key", "right")))
	})
}
