//go:build e2e

package e2e

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	containerimage "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	v1 "k8s.io/api/core/v1"

	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/registry"
	"podd/runtime/runtimetest/stack/tools"
)

// A pulledImage is an image that containerd has pulled from a registry into its storage.
type pulledImage struct {
	d                       *daemon
	ref                     string
	config, manifest, layer string // paths of the blobs; layer is the lowest layer
	diffID                  string // name of the snapshot of the lowest layer
}

// pullBusybox pulls busybox with pullImage. busybox has one layer.
func pullBusybox(d *daemon) *pulledImage {
	d.t.Helper()
	image, err := registry.FromTarball(d.on.Tools.Images, stack.BusyboxImage)
	if err != nil {
		d.t.Fatal(err)
	}
	return pullImage(d, image)
}

// pullLayered pulls busybox with pullImage. Files whose names begin with lowest and topmost are in two
// other layers, below and above the layer of busybox.
func pullLayered(d *daemon) *pulledImage {
	d.t.Helper()
	return pullImage(d, layeredBusybox(d, ""))
}

// layeredBusybox returns busybox with two more layers. suffix is appended to the names of their files.
func layeredBusybox(d *daemon, suffix string) containerimage.Image {
	d.t.Helper()
	image, err := registry.FromTarball(d.on.Tools.Images, stack.BusyboxImage)
	if err != nil {
		d.t.Fatal(err)
	}
	config, cerr := image.ConfigFile()
	layers, lerr := image.Layers()
	lowest, lowestErr := newLayer("lowest" + suffix)
	topmost, topmostErr := newLayer("topmost" + suffix)
	if err := errors.Join(cerr, lerr, lowestErr, topmostErr); err != nil {
		d.t.Fatal(err)
	}
	if image, err = mutate.AppendLayers(empty.Image, slices.Concat([]containerimage.Layer{lowest}, layers, []containerimage.Layer{topmost})...); err == nil {
		image, err = mutate.Config(image, config.Config)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return image
}

// newLayer returns a layer with one empty file.
func newLayer(name string) (containerimage.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644})
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
}

// pullImage runs a pod, so that containerd pulls the image from a registry, and removes the pod.
func pullImage(d *daemon, image containerimage.Image) *pulledImage {
	d.t.Helper()
	ref, err := startRegistry(d.t, registry.Options{}).Push(image, "team/"+d.node+"/busybox:1")
	if err != nil {
		d.t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil {
		d.t.Fatal(err)
	}
	config, cerr := image.ConfigName()
	layer, lerr := layers[0].Digest()
	manifest, merr := image.Digest()
	diff, derr := layers[0].DiffID()
	if err := errors.Join(cerr, lerr, merr, derr); err != nil {
		d.t.Fatal(err)
	}
	d.apply(d.pod("first", withImage(ref, shell("main", serve("first")))))
	d.untilApplied("first")
	d.remove("first")
	d.untilGone("first")
	blob := func(h containerimage.Hash) string {
		return filepath.Join(d.on.Dir, "stack/root/io.containerd.content.v1.content/blobs/sha256", h.Hex)
	}
	return &pulledImage{d, ref, blob(config), blob(manifest), blob(layer), diff.String()}
}

// lose removes a file or directory, which must exist.
func (d *daemon) lose(path string) {
	d.t.Helper()
	if _, err := os.Stat(path); err != nil {
		d.t.Fatal(err)
	}
	if err := os.RemoveAll(path); err != nil {
		d.t.Fatal(err)
	}
}

// truncate truncates a file, which must exist.
func (d *daemon) truncate(path string) {
	d.t.Helper()
	d.lose(path)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// loseSnapshot removes the unpacked layer from containerd.
func (i *pulledImage) loseSnapshot() {
	i.d.t.Helper()
	ctr := exec.Command(i.d.on.Tools.Ctr, "--address", i.d.on.Socket(), "--namespace", "k8s.io", "snapshots", "--snapshotter", i.d.on.Snapshotter, "rm", i.diffID)
	if out, err := ctr.CombinedOutput(); err != nil {
		i.d.t.Fatalf("removing snapshot %s: %v: %s", i.diffID, err, out)
	}
}

// layerDir returns the directory of the unpacked layer with the given file.
func (i *pulledImage) layerDir(file string) string {
	i.d.t.Helper()
	return i.d.dirWith("stack/root/io.containerd.snapshotter.v1.*/snapshots/*", "/fs/"+file)
}

// dirWith returns the only directory of the stack that matches pattern and contains a file.
func (d *daemon) dirWith(pattern, file string) string {
	d.t.Helper()
	found, err := filepath.Glob(filepath.Join(d.on.Dir, pattern) + file)
	if err != nil || len(found) != 1 {
		d.t.Fatalf("directories that match %s and contain %s: got %q, error %v, want one", pattern, file, found, err)
	}
	return strings.TrimSuffix(found[0], file)
}

const repairText = "is damaged; podd has removed it and pulls it again"

// TestDamagedImage checks that an image is pulled again after containerd has lost a part of it, as
// after a power cut.
func TestDamagedImage(t *testing.T) {
	skipOnCRIO(t)
	for name, test := range map[string]struct {
		pull   func(*daemon) *pulledImage
		damage func(*pulledImage)
	}{
		"directory of the unpacked layer": {pullBusybox, func(i *pulledImage) { i.d.lose(i.layerDir("bin/sh")) }},
		"directory of the lowest layer":   {pullLayered, func(i *pulledImage) { i.d.lose(i.layerDir("lowest")) }},
		"unpacked layer and its blob":     {pullBusybox, func(i *pulledImage) { i.loseSnapshot(); i.d.lose(i.layer) }},
		"truncated blob of the layer":     {pullBusybox, func(i *pulledImage) { i.loseSnapshot(); i.d.truncate(i.layer) }},
		"config":                          {pullBusybox, func(i *pulledImage) { i.d.lose(i.config) }},
		"manifest":                        {pullBusybox, func(i *pulledImage) { i.d.lose(i.manifest) }},
		"truncated config":                {pullBusybox, func(i *pulledImage) { i.d.truncate(i.config) }},
		"truncated manifest":              {pullBusybox, func(i *pulledImage) { i.d.truncate(i.manifest) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDaemon(t, stack.ForTest(t, stack.Options{}))
			d.start()
			i := test.pull(d)
			test.damage(i)
			d.apply(d.pod("web", withImage(i.ref, shell("main", serve("web")))))
			d.untilApplied("web")
			d.untilEvent("web", 1, "Failed", i.ref, repairText)
		})
	}
}

// skipOnCRIO skips a test of the storage of containerd.
func skipOnCRIO(t *testing.T) {
	t.Helper()
	if tools.Flavor(os.Getenv("RUNTIME")) == tools.CRIO {
		t.Skip("the test damages the storage of containerd")
	}
}

// TestDamagedImage_Volume checks that the image of an image volume is pulled again after containerd has
// lost its config.
func TestDamagedImage_Volume(t *testing.T) {
	t.Parallel()
	skipOnCRIO(t)
	d := newDaemon(t, stack.ForTest(t, stack.Options{}))
	d.start()
	if supported, _ := d.supportedImageVolumes(); !supported.SupportsVolumes {
		t.Skip("the runtime does not support image volumes")
	}
	i := pullLayered(d)
	d.lose(i.config)
	web := d.pod("web", shell("main", serve("web")))
	withVolume(web, "image", "/image", v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: i.ref, PullPolicy: v1.PullIfNotPresent}})
	d.apply(web)
	d.untilApplied("web")
	d.untilEvent("web", 1, "Failed", i.ref, repairText)
}

// TestDamagedImage_Never checks that a damaged image that must not be pulled is kept and reported.
func TestDamagedImage_Never(t *testing.T) {
	t.Parallel()
	skipOnCRIO(t)
	d := newDaemon(t, stack.ForTest(t, stack.Options{}))
	d.start()
	i := pullBusybox(d)
	i.d.lose(i.config)
	c := withImage(i.ref, shell("main", serve("web")))
	c.ImagePullPolicy = v1.PullNever
	d.apply(d.pod("web", c))
	d.untilProblem("web", i.ref, "is damaged and imagePullPolicy is Never")
	d.wantImage(i.ref, true)
}

// TestDamagedImage_RuntimeRestarted checks a damaged image after a restart of containerd, which then
// neither lists the image nor can pull it. podd must report the image with a remedy: remove all names of
// the image. After that, the pod must run.
func TestDamagedImage_RuntimeRestarted(t *testing.T) {
	t.Parallel()
	skipOnCRIO(t)
	d := newDaemon(t, stack.ForTest(t, stack.Options{}))
	d.start()
	i := pullBusybox(d)
	i.d.lose(i.config)
	if err := errors.Join(d.on.Kill(t.Context()), d.on.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	d.apply(d.pod("web", withImage(i.ref, shell("main", serve("web")))))
	d.untilProblem("web", i.ref, "lost a part of the stored image", "images rm")
	names := []string{i.ref, strings.TrimSuffix(i.ref, ":1") + "@sha256:" + filepath.Base(i.manifest), stack.BusyboxImage, "sha256:" + filepath.Base(i.config)}
	ctr := exec.Command(d.on.Tools.Ctr, slices.Concat([]string{"--address", d.on.Socket(), "--namespace", "k8s.io", "images", "rm", "--sync"}, names)...)
	if out, err := ctr.CombinedOutput(); err != nil {
		t.Fatalf("removing the names of the image: %v: %s", err, out)
	}
	d.untilApplied("web")
}
