//go:build e2e

package e2e

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/registry"
	"podd/runtime/runtimetest/stack/tools"
)

// A crioDamage damages the image of a pod in the storage of CRI-O.
type crioDamage struct {
	pod    string
	damage func(lowest, topmost, image string) // directories of two layers, and of the manifest and the config
	want   repairResult
}

type repairResult int

const (
	wantRemoved  repairResult = iota // podd removes the image and pulls it again
	wantReplaced                     // podd pulls the image without removing it, because CRI-O cannot inspect it
	wantKept                         // podd reports the image, because the pod has the pull policy Never
)

// crioConfig returns the path of the config in the directory of an image.
func crioConfig(image string) string {
	return filepath.Join(image, "="+base64.StdEncoding.EncodeToString([]byte("sha256:"+filepath.Base(image))))
}

// TestDamagedImage_CRIO checks that images are pulled again after CRI-O has lost a part of them while it
// was running. If CRI-O restarts after a power cut, it repairs its storage itself.
func TestDamagedImage_CRIO(t *testing.T) {
	t.Parallel()
	d := newCRIODaemon(t)
	testCRIODamages(d, func(damage func()) { damage() }, []crioDamage{
		{"topmost", func(_, topmost, _ string) { d.lose(topmost) }, wantRemoved},
		{"topmost-files", func(_, topmost, _ string) { d.lose(topmost + "/diff") }, wantRemoved},
		{"lowest", func(lowest, _, _ string) { d.lose(lowest) }, wantRemoved},
		{"lowest-files", func(lowest, _, _ string) { d.lose(lowest + "/diff") }, wantRemoved},
		{"config", func(_, _, image string) { d.lose(crioConfig(image)) }, wantRemoved},
		{"truncated-config", func(_, _, image string) { d.truncate(crioConfig(image)) }, wantRemoved},
		{"manifest", func(_, _, image string) { d.lose(image + "/manifest") }, wantRemoved},
		{"never", func(_, topmost, _ string) { d.lose(topmost) }, wantKept},
	})
}

// TestDamagedImage_CRIORestarted checks that images are pulled again after CRI-O has lost a part of them
// while it was not running. CRI-O does not check its storage, because it was stopped properly.
func TestDamagedImage_CRIORestarted(t *testing.T) {
	t.Parallel()
	d := newCRIODaemon(t)
	restart := func(damage func()) {
		if err := d.on.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		damage()
		if err := d.on.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	testCRIODamages(d, restart, []crioDamage{
		{"config", func(_, _, image string) { d.lose(crioConfig(image)) }, wantReplaced},
		{"truncated-config", func(_, _, image string) { d.truncate(crioConfig(image)) }, wantReplaced},
		{"manifest", func(_, _, image string) { d.lose(image + "/manifest") }, wantReplaced},
		{"truncated-manifest", func(_, _, image string) { d.truncate(image + "/manifest") }, wantReplaced},
		{"never", func(_, _, image string) { d.lose(crioConfig(image)) }, wantKept},
	})
}

// newCRIODaemon returns a daemon on CRI-O. It skips the test on another runtime.
func newCRIODaemon(t *testing.T) *daemon {
	t.Helper()
	if tools.Flavor(os.Getenv("RUNTIME")) != tools.CRIO {
		t.Skip("the test damages the storage of CRI-O")
	}
	d := newDaemon(t, stack.ForTest(t, stack.Options{}))
	if d.on.Snapshotter != "overlay" {
		t.Skip("the test damages the storage of the driver overlay")
	}
	return d
}

// testCRIODamages runs a pod for each damage, so that CRI-O pulls its image, and removes the pods. Then it
// calls during with a function that damages the images, and runs the pods again.
func testCRIODamages(d *daemon, during func(damage func()), damages []crioDamage) {
	d.t.Helper()
	r := startRegistry(d.t, registry.Options{})
	pods, images := map[string]*v1.Pod{}, map[string]string{}
	d.start()
	for _, c := range damages {
		image := layeredBusybox(d, "-"+c.pod)
		ref, err := r.Push(image, "team/"+d.node+"/"+c.pod+":1")
		if err != nil {
			d.t.Fatal(err)
		}
		id, err := image.ConfigName()
		if err != nil {
			d.t.Fatal(err)
		}
		images[c.pod] = filepath.Join(d.on.Dir, "stack/root/overlay-images", id.Hex)
		pods[c.pod] = d.pod(c.pod, withImage(ref, shell("main", serve(c.pod))))
		d.apply(pods[c.pod])
	}
	for _, c := range damages {
		d.untilApplied(c.pod)
	}
	for _, c := range damages {
		d.remove(c.pod)
	}
	for _, c := range damages {
		d.untilGone(c.pod)
	}
	layer := func(file string) string { return d.dirWith("stack/root/overlay/*", "/diff/"+file) }
	during(func() {
		for _, c := range damages {
			c.damage(layer("lowest-"+c.pod), layer("topmost-"+c.pod), images[c.pod])
		}
	})
	for _, c := range damages {
		if c.want == wantReplaced {
			d.checkUnreadable(pods[c.pod].Spec.Containers[0].Image)
		}
	}
	for _, c := range damages {
		if c.want == wantKept {
			pods[c.pod].Spec.Containers[0].ImagePullPolicy = v1.PullNever
		}
		d.apply(pods[c.pod])
	}
	for _, c := range damages {
		if c.want == wantKept {
			d.untilProblem(c.pod, "is damaged and imagePullPolicy is Never")
			continue
		}
		d.untilApplied(c.pod)
		if c.want == wantRemoved {
			d.untilEvent(c.pod, 1, "Failed", pods[c.pod].Spec.Containers[0].Image, repairText)
		}
	}
}

// checkUnreadable checks that CRI-O cannot inspect an image, and therefore has neither repaired nor removed
// it. If a pod runs from the image later, podd has pulled it again, because CRI-O pulls no images itself.
// CRI-O returns the code Unknown for an error of its storage. Another code means that it did not inspect
// the image, for example because it is not ready after its restart.
func (d *daemon) checkUnreadable(image string) {
	d.t.Helper()
	r, err := cri.NewImageServiceClient(d.dial()).ImageStatus(d.t.Context(), &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: image}})
	if status.Code(err) != codes.Unknown {
		d.t.Errorf("ImageStatus of the damaged image %s: got image %v, error %v; want an error with the code Unknown", image, r.GetImage(), err)
	}
}
