//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/runtime/runtimetest/stack"
	"podd/server"
)

// images returns the images on the node by name.
func (d *daemon) images() map[string]server.Image {
	d.t.Helper()
	var list server.ImageList
	d.eventually("podd lists images", func() error { // podd images fails until podd has read all sources
		out, stderr, code := d.outcome(nil, "images", "-o", "json")
		if code != 0 {
			return fmt.Errorf("podd images: got exit code %d and stderr %s, want 0", code, stderr)
		}
		return json.Unmarshal([]byte(out), &list)
	})
	byName := map[string]server.Image{}
	for _, i := range list.Images {
		for _, name := range i.Names {
			byName[name] = i
		}
	}
	return byName
}

// wantImage checks whether the runtime has an image.
func (d *daemon) wantImage(name string, want bool) {
	d.t.Helper()
	if i, got := d.images()[name]; got != want {
		d.t.Errorf("image %s exists in the runtime: got %t, want %t: %+v", name, got, want, i)
	}
}

// TestImageGarbageCollection checks that podd removes an unused image if the disk usage exceeds a
// threshold. podd must keep the images of running and waiting pods and the sandbox image. The age of
// unused images must not begin at zero again when podd is restarted.
func TestImageGarbageCollection(t *testing.T) {
	t.Parallel()
	on := stack.ForTest(t, stack.Options{})
	d := newDaemon(t, on, "--image-gc-high-threshold=1", "--image-gc-low-threshold=0", "--minimum-image-ttl-duration=1ns")
	waits := d.pod("waits", withImage(stack.WebImage, shell("main", serve("waits"))))
	waits.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "absent"}}}}
	d.apply(d.pod("web", shell("main", serve("web"))), waits)
	d.start()
	d.untilApplied("web")
	d.eventually("podd images shows the pods that use each image", func() error {
		all := d.images()
		for image, user := range map[string]string{stack.BusyboxImage: "default/web-", stack.WebImage: "default/waits-"} {
			if i := all[image]; len(i.Users) != 1 || !strings.HasPrefix(i.Users[0], user) || i.KeepReason != "in use" {
				return fmt.Errorf("image %s: got %+v, want in use by one pod with the prefix %s", image, i, user)
			}
		}
		if i := all[stack.PauseImage]; !i.IsPinned && i.KeepReason != "sandbox image" {
			return fmt.Errorf("sandbox image: got %+v, want a protected image", i)
		}
		return nil
	})
	for image, want := range map[string]string{stack.BusyboxImage: "in use by default/web-", "podd.test/absent:1": `no image "podd.test/absent:1"`} {
		if _, stderr, code := d.outcome(nil, "images", "rm", image); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("podd images rm %s: got exit code %d and stderr %q; want an exit code other than 0 and %q in stderr", image, code, stderr, want)
		}
	}
	d.remove("waits")
	d.untilGone("waits")
	if i := d.images()[stack.WebImage]; i.Removal == nil || i.Removal.Reason != "space" {
		t.Errorf("planned removal of the unused image: got %+v, want one with the reason \"space\"", i)
	}
	d.proc.signal(syscall.SIGTERM) // podd collects images every five minutes and when it starts
	d.start()
	d.eventually("the unused image is removed", func() error {
		if _, exists := d.images()[stack.WebImage]; exists {
			return fmt.Errorf("got image %s, want it removed", stack.WebImage)
		}
		return nil
	})
	d.wantImage(stack.BusyboxImage, true)
	d.wantImage(stack.PauseImage, true)
	d.eventually("an event reports the full disk", func() error {
		if out, _ := d.verb("events", "-A"); !strings.Contains(out, "FreeDiskSpaceFailed") {
			return fmt.Errorf("got the events\n%s\nwant one with the reason FreeDiskSpaceFailed", out)
		}
		return nil
	})
	d.untilApplied("web")
	if _, stderr := d.verb("images", "prune"); !strings.Contains(stderr, "no unused images") {
		t.Errorf("podd images prune: got %q, want %q in it", stderr, "no unused images")
	}
	d.remove("web")
	d.untilGone("web")
	if _, stderr := d.verb("images", "prune"); !strings.Contains(stderr, "image "+stack.BusyboxImage+" removed") {
		t.Errorf("podd images prune: got %q, want the removal of %s", stderr, stack.BusyboxImage)
	}
	d.wantImage(stack.BusyboxImage, false)
	d.wantImage(stack.PauseImage, true)
}

// TestImages_OtherPodd checks that podd keeps the images of containers that another podd has created on
// the same runtime, and the images that such containers mount as volumes. When these containers no
// longer exist, podd must remove all their images.
func TestImages_OtherPodd(t *testing.T) {
	t.Parallel()
	on := stack.ForTest(t, stack.Options{})
	other := newDaemon(t, on)
	other.start()
	p := other.pod("web", shell("main", serve("web")))
	used := []string{stack.BusyboxImage}
	if serves, _ := other.supportedImageVolumes(); serves.SupportsVolumes {
		withVolume(p, "image", "/image", v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: stack.WebImage}})
		used = append(used, stack.WebImage)
	}
	other.apply(p)
	other.untilApplied("web")
	d := newDaemon(t, on)
	d.start()
	for _, image := range used {
		if i := d.images()[image]; len(i.Users) != 1 || !strings.HasPrefix(i.Users[0], "default/web-") {
			t.Errorf("image %s: got %+v, want an image that pod default/web uses", image, i)
		}
	}
	d.verb("images", "prune")
	for _, image := range used {
		d.wantImage(image, true)
	}
	other.remove("web")
	other.untilGone("web")
	d.verb("images", "prune")
	for _, image := range used {
		d.wantImage(image, false)
	}
}
