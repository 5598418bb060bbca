//go:build e2e

package e2e

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/registry"
	"podd/server"
)

// A testRegistry is a registry that a test may close before its end.
type testRegistry struct {
	*registry.Registry
	close func() error // may be called several times; the end of the test also calls it
}

// withRegistry starts a registry that contains busybox, and returns the reference of that image.
func withRegistry(d *daemon, o registry.Options) (r testRegistry, ref string) {
	d.t.Helper()
	r = startRegistry(d.t, o)
	return r, r.pushBusybox(d)
}

// startRegistry starts an empty registry.
func startRegistry(t testing.TB, o registry.Options) testRegistry {
	t.Helper()
	started, err := registry.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	r := testRegistry{started, sync.OnceValue(started.Close)}
	t.Cleanup(func() { _ = r.close() })
	return r
}

// pushBusybox pushes busybox and returns its reference. The repository is named after d, because a
// registry may get the port of an earlier one, whose images are still in the runtime.
func (r testRegistry) pushBusybox(d *daemon) (ref string) {
	d.t.Helper()
	image, err := registry.FromTarball(d.on.Tools.Images, stack.BusyboxImage)
	if err != nil {
		d.t.Fatal(err)
	}
	if ref, err = r.Push(image, "team/"+d.node+"/busybox:1"); err != nil {
		d.t.Fatal(err)
	}
	return ref
}

func withImage(image string, c v1.Container) v1.Container {
	c.Image = image
	return c
}

func TestEdit_MissingImage(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	r, ref := withRegistry(d, registry.Options{})
	d.apply(d.pod("web", shell("main", serve("one"))))
	d.untilApplied("web")
	was := d.container("web", "main")
	d.apply(d.pod("web", withImage(r.Host()+"/team/none:1", shell("main", serve("two")))))
	d.untilProblem("web", r.Host(), "team/none:1", "keeps running")
	d.untilPod("keeps running in its earlier version", "web", func(p *server.PodView) error {
		if !p.Ready || p.IsCurrent {
			return fmt.Errorf("got ready: %t, current version: %t; want ready: true, current version: false", p.Ready, p.IsCurrent)
		}
		return nil
	})
	if now := d.container("web", "main"); now != was {
		t.Errorf("container of the earlier version: got %+v, want %+v", now, was)
	}
	// After its restart, podd has only the manifest of the new version, but the earlier version must keep
	// running.
	d.crash()
	d.untilProblem("web", r.Host(), "team/none:1", "keeps running")
	if now := d.container("web", "main"); now != was {
		t.Errorf("container of the earlier version after podd was killed: got %+v, want %+v", now, was)
	}
	d.apply(d.pod("web", withImage(ref, shell("main", serve("three")))))
	d.untilApplied("web")
	d.untilNoted("one runs", "one TERM", "three runs")
}

func TestPullWithCredentials(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	r, ref := withRegistry(d, registry.Options{User: "ann", Password: "secret"})
	d.apply(d.pod("web", withImage(ref, shell("main", serve("web")))))
	problem := d.untilProblem("web", "401", r.Host(), "config.json")
	if strings.Contains(problem, "rpc error") {
		t.Errorf("problem of the failed pull: got %q, want no %q in it", problem, "rpc error")
	}
	auth := base64.StdEncoding.EncodeToString([]byte("ann:secret"))
	config := fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, r.Host(), auth)
	if err := os.WriteFile(filepath.Join(d.root(), "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	d.untilApplied("web")
	log, err := os.ReadFile(d.logFile())
	if err != nil || strings.Contains(string(log), "secret") || strings.Contains(string(log), auth) {
		t.Errorf("podd's log: got the password in it, or a read error (%v); want no password", err)
	}
}

// plugin is a credential provider. It records its requests and prints the file that its argument names,
// from the directory of the plugin. If this file does not exist, the plugin fails.
const plugin = `#!/bin/sh
here=$(dirname "$0")
cat >> "$here/requests"
cat "$here/$1"`

func TestPullWithCredentialProvider(t *testing.T) {
	t.Parallel()
	r := startRegistry(t, registry.Options{User: "ann", Password: "hunter2"})
	dir := t.TempDir()
	put := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	put("cloud", plugin, 0o755)
	put("config.yaml", fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: cloud
  matchImages: ["127.*.0.1:%[1]s/team", "localhost:%[1]s/team"]
  defaultCacheDuration: 1h
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  args: [answer.json]
`, r.Host()[strings.LastIndexByte(r.Host(), ':')+1:]), 0o600)
	d := startDaemon(t, "--image-credential-provider-config", filepath.Join(dir, "config.yaml"), "--image-credential-provider-bin-dir", dir)
	ref := r.pushBusybox(d)
	d.apply(d.pod("web", withImage(ref, shell("main", serve("web")))))
	d.untilProblem("web", "401", "credential provider cloud", r.Host()+"/team/"+d.node+"/busybox", "exit status 1; run the program manually")
	put("answer.json", fmt.Sprintf(`{"apiVersion": "credentialprovider.kubelet.k8s.io/v1", "kind": "CredentialProviderResponse",
		"cacheKeyType": "Registry", "auth": {%q: {"username": "ann", "password": "hunter2"}}}`, r.Host()), 0o600)
	d.untilApplied("web")
	requests, err := os.ReadFile(filepath.Join(dir, "requests"))
	want := fmt.Sprintf(`{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1","image":%q}`, r.Host()+"/team/"+d.node+"/busybox")
	if err != nil || !strings.HasPrefix(string(requests), want+"\n") {
		t.Errorf("requests to the credential provider: got %q, error %v; want the first line %q", requests, err, want)
	}
	if log, err := os.ReadFile(d.logFile()); err != nil || strings.Contains(string(log), "hunter2") {
		t.Errorf("podd's log: got the password in it, or a read error (%v); want no password", err)
	}
}

func TestPullBacksOff(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	r, ref := withRegistry(d, registry.Options{})
	r.Inject(registry.Fault{PathPart: "/manifests/", Status: 503})
	d.apply(d.pod("web", withImage(ref, shell("main", serve("web")))), d.pod("more", withImage(ref, shell("main", serve("more")))))
	d.untilProblem("web", "503", r.Host())
	d.untilProblem("more", "503", r.Host())
	// Both pods share one pull, which podd does not retry during the back-off. The test repeats the check,
	// because the back-off may end within the two seconds.
	d.eventually("podd does not retry the pull for two seconds", func() error {
		before := r.RequestCount("/manifests/")
		<-time.After(2 * time.Second)
		if now := r.RequestCount("/manifests/"); now != before {
			return fmt.Errorf("got %d additional requests within two seconds, want none", now-before)
		}
		return nil
	})
	d.untilPod("waits for its image, with a reason that a kubelet uses", "web", func(p *server.PodView) error {
		for _, c := range p.Pod.Status.ContainerStatuses {
			if c.State.Waiting == nil || c.State.Waiting.Reason != "ErrImagePull" && c.State.Waiting.Reason != "ImagePullBackOff" && c.State.Waiting.Reason != "RegistryUnavailable" {
				return fmt.Errorf("got the state %+v, want waiting with ErrImagePull, ImagePullBackOff or RegistryUnavailable", c.State)
			}
		}
		return nil
	})
	r.ClearFaults()
	d.untilApplied("web")
	d.untilApplied("more")
}

// TestImageByDigest checks an image that is named by digest. podd must pull it only once, so that another
// pod can use it without the registry. A pod with imagePullPolicy Never must wait until another pod has
// pulled the image.
func TestImageByDigest(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	r, ref := withRegistry(d, registry.Options{})
	image, err := registry.FromTarball(d.on.Tools.Images, stack.BusyboxImage)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(ref, r.Host()), ":")
	pinned := r.Host() + name + "@" + digest.String()
	p := d.pod("web", withImage(pinned, shell("main", serve("web"))))
	never := withImage(r.Host()+name+"@"+digest.String(), shell("main", serve("never")))
	never.ImagePullPolicy = v1.PullNever
	d.apply(d.pod("never", never))
	d.untilPod("waits", "never", waitingFor("main", "ErrImageNeverPull"))
	d.apply(p)
	view := d.untilApplied("web")
	// The image ID may contain the name of another registry, because other tests have pulled the same
	// image from their registries.
	if got := view.Pod.Status.ContainerStatuses[0].ImageID; !strings.HasSuffix(got, "@"+digest.String()) {
		t.Errorf("image ID in the status: got %q, want the digest %s at its end", got, digest)
	}
	d.untilApplied("never")
	_ = r.close()
	d.crash()
	d.apply(d.pod("two", withImage(pinned, shell("main", serve("two")))))
	d.untilApplied("two")
}

func TestPullOffline_LocalImage(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "--pull-offline", "use-present")
	r, ref := withRegistry(d, registry.Options{})
	always := func(name string) *v1.Pod {
		c := withImage(ref, shell("main", serve(name)))
		c.ImagePullPolicy = v1.PullAlways
		return d.pod(name, c)
	}
	d.apply(always("first"))
	d.untilApplied("first")
	if err := r.close(); err != nil {
		t.Fatal(err)
	}
	d.apply(always("second"))
	d.untilApplied("second")
	d.untilProblem("second", ref)
}

func TestPullAlways_RegistryDown(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	r, ref := withRegistry(d, registry.Options{})
	c := withImage(ref, shell("main", serve("web")))
	c.ImagePullPolicy = v1.PullAlways
	d.apply(d.pod("web", c))
	d.untilApplied("web")
	d.remove("web")
	d.untilGone("web")
	if err := r.close(); err != nil {
		t.Fatal(err)
	}
	d.apply(d.pod("web", c))
	d.untilProblem("web", r.Host())
	if all := d.containers("web", ""); len(all) > 0 {
		t.Errorf("pod with imagePullPolicy Always and an unreachable registry: got running containers %+v, want none", all)
	}
}

func TestRemoval_DuringPull(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	r, ref := withRegistry(d, registry.Options{})
	r.Inject(registry.Fault{PathPart: "/manifests/"})
	d.apply(d.pod("web", withImage(ref, shell("main", serve("web")))))
	d.eventually("the pull hangs", func() error {
		if r.HangingCount() == 0 {
			return errors.New("got no hanging request at the registry, want one")
		}
		return nil
	})
	// The hanging pull must not delay other pods.
	d.apply(d.pod("other", shell("main", serve("other"))))
	d.untilApplied("other")
	d.remove("web")
	d.untilGone("web")
	d.eventually("the pull is canceled", func() error {
		if n := r.HangingCount(); n > 0 {
			return fmt.Errorf("got %d hanging requests at the registry, want none", n)
		}
		return nil
	})
}
