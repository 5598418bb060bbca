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

// hub is a registry that may be closed before the test ends.
type hub struct {
	*registry.Registry
	close func() error // any number of times
}

// withRegistry starts a registry that has busybox as team/busybox:1, the name
// of which it returns.
func withRegistry(d *daemon, o registry.Options) (r hub, ref string) {
	d.t.Helper()
	r = startRegistry(d.t, o)
	return r, r.pushBusybox(d)
}

// startRegistry starts an empty one.
func startRegistry(t testing.TB, o registry.Options) hub {
	t.Helper()
	started, err := registry.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	r := hub{started, sync.OnceValue(started.Close)}
	t.Cleanup(func() { _ = r.close() })
	return r
}

func (r hub) pushBusybox(d *daemon) (ref string) {
	d.t.Helper()
	image, err := registry.FromTarball(d.on.Tools.Images, stack.BusyboxImage)
	if err != nil {
		d.t.Fatal(err)
	}
	if ref, err = r.Push(image, "team/busybox:1"); err != nil {
		d.t.Fatal(err)
	}
	return ref
}

func from(image string, c v1.Container) v1.Container {
	c.Image = image
	return c
}

func TestEditWithImageThatCannotBePulled(t *testing.T) {
	t.Parallel()
	d := begin(t)
	r, ref := withRegistry(d, registry.Options{})
	d.apply(d.pod("web", shell("main", serve("one"))))
	d.untilApplied("web")
	was := d.runs("web", "main")
	d.apply(d.pod("web", from(r.Host()+"/team/none:1", shell("main", serve("two")))))
	d.untilProblem("web", r.Host(), "team/none:1", "keeps running")
	d.untilPod("runs on in its earlier version", "web", func(p *server.PodView) error {
		if !p.Ready || p.Current {
			return errors.New("it does not")
		}
		return nil
	})
	if now := d.runs("web", "main"); now != was {
		t.Errorf("it is now %+v, was %+v", now, was)
	}
	// podd may be killed now: of the earlier version it has no manifest then.
	d.crash()
	d.untilProblem("web", r.Host(), "team/none:1", "keeps running")
	if now := d.runs("web", "main"); now != was {
		t.Errorf("after kill -9 it is now %+v, was %+v", now, was)
	}
	d.apply(d.pod("web", from(ref, shell("main", serve("three")))))
	d.untilApplied("web")
	d.untilNoted("one runs", "one TERM", "three runs")
}

func TestPullWithCredentials(t *testing.T) {
	t.Parallel()
	d := begin(t)
	r, ref := withRegistry(d, registry.Options{User: "ann", Password: "secret"})
	d.apply(d.pod("web", from(ref, shell("main", serve("web")))))
	said := d.untilProblem("web", "401", r.Host(), "config.json")
	if strings.Contains(said, "rpc error") {
		t.Errorf("it says %q: that is no way to speak to people", said)
	}
	auth := base64.StdEncoding.EncodeToString([]byte("ann:secret"))
	config := fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, r.Host(), auth)
	if err := os.WriteFile(filepath.Join(d.root(), "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	d.untilApplied("web")
	log, err := os.ReadFile(d.output())
	if err != nil || strings.Contains(string(log), "secret") || strings.Contains(string(log), auth) {
		t.Errorf("the log tells the password: %v", err)
	}
}

// plugin answers with the file beside it, and fails without one.
const plugin = `#!/bin/sh
here=$(dirname "$0")
cat >> "$here/asked"
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
	d := begin(t, "--image-credential-provider-config", filepath.Join(dir, "config.yaml"), "--image-credential-provider-bin-dir", dir)
	ref := r.pushBusybox(d)
	d.apply(d.pod("web", from(ref, shell("main", serve("web")))))
	d.untilProblem("web", "401", "credential provider cloud", r.Host()+"/team/busybox", "exit status 1; run it by hand")
	put("answer.json", fmt.Sprintf(`{"apiVersion": "credentialprovider.kubelet.k8s.io/v1", "kind": "CredentialProviderResponse",
		"cacheKeyType": "Registry", "auth": {%q: {"username": "ann", "password": "hunter2"}}}`, r.Host()), 0o600)
	d.untilApplied("web")
	asked, err := os.ReadFile(filepath.Join(dir, "asked"))
	want := fmt.Sprintf(`{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1","image":%q}`, r.Host()+"/team/busybox")
	if err != nil || !strings.HasPrefix(string(asked), want+"\n") {
		t.Errorf("asked %q, want %q; %v", asked, want, err)
	}
	if log, err := os.ReadFile(d.output()); err != nil || strings.Contains(string(log), "hunter2") {
		t.Errorf("the log tells the password: %v", err)
	}
}

func TestPullBacksOff(t *testing.T) {
	t.Parallel()
	d := begin(t)
	r, ref := withRegistry(d, registry.Options{})
	r.Inject(registry.Fault{In: "/manifests/", Status: 503})
	d.apply(d.pod("web", from(ref, shell("main", serve("web")))), d.pod("more", from(ref, shell("main", serve("more")))))
	d.untilProblem("web", "503", r.Host())
	d.untilProblem("more", "503", r.Host())
	// Two pods, one pull; and no more for a while, which may be nearly over.
	d.eventually("the pull is not tried again for two seconds", func() error {
		asked := r.Requests("/manifests/")
		<-time.After(2 * time.Second)
		if now := r.Requests("/manifests/"); now != asked {
			return fmt.Errorf("%d requests, then %d", asked, now)
		}
		return nil
	})
	d.untilPod("waits as kubectl shows it", "web", func(p *server.PodView) error {
		for _, c := range p.Pod.Status.ContainerStatuses {
			if c.State.Waiting == nil || c.State.Waiting.Reason != "ErrImagePull" && c.State.Waiting.Reason != "ImagePullBackOff" && c.State.Waiting.Reason != "RegistryUnavailable" {
				return fmt.Errorf("its state is %+v", c.State)
			}
		}
		return nil
	})
	r.Heal()
	d.untilApplied("web")
	d.untilApplied("more")
}

// TestImageByDigest: it is pulled once, whatever its name says later; one that
// must not be pulled is waited for.
func TestImageByDigest(t *testing.T) {
	t.Parallel()
	d := begin(t)
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
	p := d.pod("web", from(pinned, shell("main", serve("web"))))
	never := from(r.Host()+name+"@"+digest.String(), shell("main", serve("never")))
	never.ImagePullPolicy = v1.PullNever
	d.apply(d.pod("never", never))
	d.untilPod("waits", "never", waitingFor("main", "ErrImageNeverPull"))
	d.apply(p)
	view := d.untilApplied("web")
	// The runtime knows the same image by the registries of other tests too.
	if got := view.Pod.Status.ContainerStatuses[0].ImageID; !strings.HasSuffix(got, "@"+digest.String()) {
		t.Errorf("the status says image %q, want that of %s", got, digest)
	}
	d.untilApplied("never")
	_ = r.close()
	d.crash()
	d.apply(d.pod("two", from(pinned, shell("main", serve("two")))))
	d.untilApplied("two")
}

func TestPullOfflineUsesWhatIsPresent(t *testing.T) {
	t.Parallel()
	d := begin(t, "--pull-offline", "use-present")
	r, ref := withRegistry(d, registry.Options{})
	always := func(name string) *v1.Pod {
		c := from(ref, shell("main", serve(name)))
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

func TestPullStrictWaitsForTheRegistry(t *testing.T) {
	t.Parallel()
	d := begin(t)
	r, ref := withRegistry(d, registry.Options{})
	c := from(ref, shell("main", serve("web")))
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
	if all := d.allRunning("web", ""); len(all) > 0 {
		t.Errorf("%+v runs without its registry's word", all)
	}
}

func TestRemovalWhileItsImageIsPulled(t *testing.T) {
	t.Parallel()
	d := begin(t)
	r, ref := withRegistry(d, registry.Options{})
	r.Inject(registry.Fault{In: "/manifests/"})
	d.apply(d.pod("web", from(ref, shell("main", serve("web")))))
	d.eventually("the pull hangs", func() error {
		if r.Hanging() == 0 {
			return errors.New("it does not")
		}
		return nil
	})
	// Others are not kept waiting.
	d.apply(d.pod("other", shell("main", serve("other"))))
	d.untilApplied("other")
	d.remove("web")
	d.untilGone("web")
	d.eventually("the pull is given up", func() error {
		if n := r.Hanging(); n > 0 {
			return fmt.Errorf("%d requests hang", n)
		}
		return nil
	})
}
