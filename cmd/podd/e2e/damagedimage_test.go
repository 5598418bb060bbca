//go:build e2e

package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	containerimage "github.com/google/go-containerregistry/pkg/v1"
	v1 "k8s.io/api/core/v1"

	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/registry"
)

// A pulledImage is the busybox image that containerd has pulled from a registry into its storage.
type pulledImage struct {
	d                       *daemon
	ref                     string
	config, layer, manifest string // paths of the blobs
	diffID                  string // name of the snapshot of the only layer
}

// pullBusybox runs a pod, so that containerd pulls busybox from a registry, and removes the pod.
func pullBusybox(d *daemon) *pulledImage {
	d.t.Helper()
	_, ref := withRegistry(d, registry.Options{})
	image, err := registry.FromTarball(d.on.Tools.Images, stack.BusyboxImage)
	if err != nil {
		d.t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		d.t.Fatalf("layers of busybox: got %d, error %v, want 1", len(layers), err)
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
	return &pulledImage{d, ref, blob(config), blob(layer), blob(manifest), diff.String()}
}

// lose removes a file or directory, which must exist.
func (i *pulledImage) lose(path string) {
	i.d.t.Helper()
	if _, err := os.Stat(path); err != nil {
		i.d.t.Fatal(err)
	}
	if err := os.RemoveAll(path); err != nil {
		i.d.t.Fatal(err)
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

// snapshotDir returns the directory of the unpacked layer.
func (i *pulledImage) snapshotDir() string {
	i.d.t.Helper()
	found, err := filepath.Glob(filepath.Join(i.d.on.Dir, "stack/root/io.containerd.snapshotter.v1.*/snapshots/*/fs/bin/sh"))
	if err != nil || len(found) != 1 {
		i.d.t.Fatalf("directories of the unpacked layer: got %q, error %v, want one", found, err)
	}
	return strings.TrimSuffix(found[0], "/fs/bin/sh")
}

// TestDamagedImage checks that an image is pulled again after containerd has lost a part of it, as
// after a power cut.
func TestDamagedImage(t *testing.T) {
	for name, damage := range map[string]func(*pulledImage){
		"directory of the unpacked layer": func(i *pulledImage) { i.lose(i.snapshotDir()) },
		"unpacked layer and its blob":     func(i *pulledImage) { i.loseSnapshot(); i.lose(i.layer) },
		"truncated blob of the layer": func(i *pulledImage) {
			i.loseSnapshot()
			i.lose(i.layer)
			if err := os.WriteFile(i.layer, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"config":   func(i *pulledImage) { i.lose(i.config) },
		"manifest": func(i *pulledImage) { i.lose(i.manifest) },
		"truncated config": func(i *pulledImage) {
			i.lose(i.config)
			if err := os.WriteFile(i.config, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDaemon(t, stack.ForTest(t, stack.Options{}))
			d.start()
			i := pullBusybox(d)
			damage(i)
			d.apply(d.pod("web", withImage(i.ref, shell("main", serve("web")))))
			d.untilApplied("web")
			d.untilEvent("web", 1, "Failed", i.ref, "is damaged; podd has removed it and pulls it again")
		})
	}
}

// TestDamagedImage_Never checks that a damaged image that must not be pulled is kept and reported.
func TestDamagedImage_Never(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, stack.ForTest(t, stack.Options{}))
	d.start()
	i := pullBusybox(d)
	i.lose(i.config)
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
	d := newDaemon(t, stack.ForTest(t, stack.Options{}))
	d.start()
	i := pullBusybox(d)
	i.lose(i.config)
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
