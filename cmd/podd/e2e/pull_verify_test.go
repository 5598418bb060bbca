//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/runtime/runtimetest/stack/registry"
	"podd/server"
)

// privatePod returns a pod with an image that needs credentials. secret is the name of the Secret in
// imagePullSecrets, or "".
func privatePod(d *daemon, name, image string, policy v1.PullPolicy, secret string) *v1.Pod {
	c := withImage(image, shell("main", serve(name)))
	c.ImagePullPolicy = policy
	p := d.pod(name, c)
	if secret != "" {
		p.Spec.ImagePullSecrets = []v1.LocalObjectReference{{Name: secret}}
	}
	return p
}

// writeKey writes the manifest of the Secret "key" with the credentials for r.
func writeKey(d *daemon, r testRegistry) {
	d.write("key", manifestText(d, newSecret("key", v1.SecretTypeDockerConfigJson, map[string]string{
		v1.DockerConfigJsonKey: fmt.Sprintf(`{"auths": {%q: {"username": "ann", "password": "hunter2"}}}`, r.Host()),
	})))
}

// pullRecord returns the path of the only record of an image pull.
func pullRecord(d *daemon) string {
	d.t.Helper()
	files, err := filepath.Glob(filepath.Join(d.root(), "image_manager/pulled/sha256-*"))
	if err != nil || len(files) != 1 {
		d.t.Fatalf("records of image pulls: got %v, error %v; want one", files, err)
	}
	return files[0]
}

// untilPullFails waits until a pod waits because its image cannot be pulled.
func untilPullFails(d *daemon, name string) {
	d.t.Helper()
	d.untilPod("waits for its image", name, func(p *server.PodView) error {
		for _, c := range p.Pod.Status.ContainerStatuses {
			if w := c.State.Waiting; w != nil && slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"}, w.Reason) {
				return nil
			}
		}
		return fmt.Errorf("got the containers %+v, want one that waits with ErrImagePull, ImagePullBackOff or RegistryUnavailable", p.Pod.Status.ContainerStatuses)
	})
}

// TestPull_VerifyCredentials checks that a pod without credentials cannot use an image that another pod
// has pulled with a Secret. A pod with this Secret can use the image without a second pull. Both must
// also be true after podd was killed and without a registry.
func TestPull_VerifyCredentials(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	r, ref := withRegistry(d, registry.Options{User: "ann", Password: "hunter2"})
	writeKey(d, r)
	d.apply(privatePod(d, "a", ref, v1.PullIfNotPresent, "key"))
	d.untilApplied("a")
	pulls := r.RequestCount("/manifests/")
	d.apply(privatePod(d, "c", ref, v1.PullIfNotPresent, "key"), privatePod(d, "never-c", ref, v1.PullNever, "key"))
	d.untilApplied("c")
	d.untilApplied("never-c")
	if now := r.RequestCount("/manifests/"); now != pulls {
		t.Errorf("requests for image manifests after the first pull: got %d, want none", now-pulls)
	}
	d.apply(privatePod(d, "b", ref, v1.PullIfNotPresent, ""), privatePod(d, "never-b", ref, v1.PullNever, ""))
	untilPullFails(d, "b")
	d.untilPod("waits", "never-b", waitingFor("main", "ErrImageNeverPull"))

	if data, err := os.ReadFile(pullRecord(d)); err != nil || strings.Contains(string(data), "hunter2") || !strings.Contains(string(data), `"name":"key"`) {
		t.Errorf("record of the image pull: got %s, error %v; want the name of the Secret and not its content", data, err)
	}

	d.kill()
	if err := r.close(); err != nil {
		t.Fatal(err)
	}
	d.start()
	d.apply(privatePod(d, "d", ref, v1.PullIfNotPresent, "key"), privatePod(d, "e", ref, v1.PullIfNotPresent, ""))
	d.untilApplied("d")
	untilPullFails(d, "e")
	untilPullFails(d, "b")

	d.kill()
	config := filepath.Join(d.dir, "kubelet.yaml")
	if err := os.WriteFile(config, []byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nimagePullCredentialsVerificationPolicy: NeverVerify\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.args = append(d.args, "--config", config)
	d.start()
	for _, name := range []string{"b", "never-b", "e"} {
		d.untilApplied(name)
	}
}

// TestPull_DamagedRecord damages podd's record of an image pull. podd must then pull the image again
// before a pod can use it, and must reject pods without credentials. If the registry is unreachable,
// podd must start pods with this image without a pull.
func TestPull_DamagedRecord(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	r, ref := withRegistry(d, registry.Options{User: "ann", Password: "hunter2"})
	writeKey(d, r)
	d.apply(privatePod(d, "a", ref, v1.PullIfNotPresent, "key"))
	d.untilApplied("a")
	damage := func() {
		if err := os.WriteFile(pullRecord(d), make([]byte, 100), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	damage()
	d.apply(privatePod(d, "b", ref, v1.PullIfNotPresent, ""), privatePod(d, "never-b", ref, v1.PullNever, ""))
	untilPullFails(d, "b")
	d.untilPod("waits", "never-b", waitingFor("main", "ErrImageNeverPull"))
	d.apply(privatePod(d, "c", ref, v1.PullIfNotPresent, "key"))
	d.untilApplied("c")
	d.apply(privatePod(d, "never-c", ref, v1.PullNever, "key")) // possible now, because the pull for pod c has replaced the damaged record
	d.untilApplied("never-c")

	damage()
	if err := r.close(); err != nil {
		t.Fatal(err)
	}
	d.apply(privatePod(d, "e", ref, v1.PullIfNotPresent, "key"))
	d.untilApplied("e")
	d.kill()
	d.start()
	d.untilApplied("b")
}
