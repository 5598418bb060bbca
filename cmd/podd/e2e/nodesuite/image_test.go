//go:build e2e

package nodesuite

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/registry"
	"podd/runtime/runtimetest/stack/tools"
)

// placeholders are images that the suite pulls after some specs, but that no selected spec runs.
var placeholders = []string{
	"registry.k8s.io/e2e-test-images/ipc-utils:1.4",
	"registry.k8s.io/e2e-test-images/node-perf/npb-ep:1.6.0",
	"registry.k8s.io/e2e-test-images/node-perf/npb-is:1.7.0",
	largeImage,
	"registry.k8s.io/e2e-test-images/volume/nfs:1.6.0",
	"registry.k8s.io/etcd:3.7.0-0",
	"registry.k8s.io/node-problem-detector/node-problem-detector:v1.35.2",
	"gcr.io/cadvisor/cadvisor:v0.47.2",
	"docker.io/nfvpe/sriov-device-plugin:v3.1",
}

// These images each have one program of their own: suite.DevicePlugin or the command perl.
const (
	devicePluginImage = "registry.k8s.io/e2e-test-images/sample-device-plugin:1.8.0"
	perlImage         = "registry.k8s.io/e2e-test-images/perl:5.26"
)

// volumeImage is an image that the specs mount as a volume.
const volumeImage = "registry.k8s.io/e2e-test-images/kitten:1.8"

// largeImage is a placeholder with many files. The spec ImageGCNoEviction uses 10,000 inodes more than
// the eviction threshold allows, and expects that the removal of unused images frees them.
const (
	largeImage      = "registry.k8s.io/e2e-test-images/node-perf/pytorch-wide-deep:1.0.0"
	largeImageFiles = 20_000
)

// volumeFiles contains what the specs read in volumeImage, by path.
var volumeFiles = map[string]string{"data.json": `{"image": "kitten.jpg"}`, "etc/os-release": `NAME="Alpine Linux"`}

// placeholderDigest is an image that the suite also pulls, by its digest. No other image has this
// digest. Therefore a registry cannot serve a placeholder for it.
const placeholderDigest = "registry.k8s.io/e2e-test-images/busybox@sha256:a9155b13325b2abef48e71de77bb8ac015412a566829f621d06bfae5c699b1b9"

// addPlaceholderDigest gives the name placeholderDigest to an image of the runtime, and pins the image
// so that image garbage collection does not remove it.
func addPlaceholderDigest(ctx context.Context, runtime *stack.Stack) error {
	for _, words := range [][]string{{"tag", stack.BusyboxImage, placeholderDigest}, {"label", placeholderDigest, "io.cri-containerd.image=managed", "io.cri-containerd.pinned=pinned"}} {
		cmd := exec.CommandContext(ctx, runtime.Tools.Ctr, append([]string{"--address", runtime.Socket(), "--namespace", "k8s.io", "images"}, words...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("ctr images %s: %w: %s", words[0], err, out)
		}
	}
	return nil
}

// pushImages stores the images of the suite and the placeholders in a registry, except images that
// require a password.
func pushImages(images *registry.Registry, suite tools.NodeSuite) error {
	busybox := ""
	for _, image := range suite.ImageNames {
		if !strings.HasPrefix(image, "registry.k8s.io/") {
			continue
		}
		if err := push(images, suite, image, image); err != nil {
			return err
		}
		if strings.Contains(image, "/busybox:") {
			busybox = image
		}
	}
	for _, image := range append(placeholders, devicePluginImage, perlImage, volumeImage) {
		if err := push(images, suite, busybox, image); err != nil {
			return err
		}
	}
	return nil
}

// push stores the image called content in a registry, with the name image.
func push(images *registry.Registry, suite tools.NodeSuite, content, image string) error {
	ref, err := name.ParseReference(image)
	if err != nil {
		return err
	}
	from, err := registry.FromTarball(suite.Images, content)
	if err != nil {
		return err
	}
	files, err := addedFiles(suite, ref)
	if err != nil {
		return err
	}
	if from, err = complete(from, image, files); err != nil {
		return err
	}
	_, err = images.Push(from, ref.Context().RepositoryStr()+":"+ref.Identifier())
	return err
}

// addedFiles returns the files that the image ref gets in addition to its content, by path: nmeter;
// for agnhost, the image that its registry serves; for devicePluginImage and perlImage, their
// programs; for volumeImage, volumeFiles; and for largeImage, empty files.
func addedFiles(suite tools.NodeSuite, ref name.Reference) (map[string][]byte, error) {
	files := map[string][]byte{}
	if strings.HasSuffix(ref.Context().RepositoryStr(), "/agnhost") {
		i := slices.IndexFunc(suite.ImageNames, func(image string) bool { return strings.Contains(image, "/pause:") })
		if i < 0 {
			return nil, errors.New("the suite has no image pause")
		}
		pause, err := registry.FromTarball(suite.Images, suite.ImageNames[i])
		if err != nil {
			return nil, err
		}
		if files, err = registryFiles(pause, "pause", "testing"); err != nil {
			return nil, err
		}
	}
	if ref.Name() == volumeImage {
		for path, content := range volumeFiles {
			files[path] = []byte(content)
		}
	}
	if ref.Name() == largeImage {
		for i := range largeImageFiles {
			files[fmt.Sprintf("data/%d", i)] = nil
		}
	}
	var err error
	if ref.Name() == devicePluginImage {
		if files["sampledeviceplugin"], err = os.ReadFile(suite.DevicePlugin); err != nil {
			return nil, err
		}
	}
	if ref.Name() == perlImage {
		if files["bin/perl"], err = os.ReadFile(filepath.Join(thisHost.programs, "perl")); err != nil {
			return nil, err
		}
	}
	files["bin/nmeter"], err = os.ReadFile(filepath.Join(thisHost.programs, "nmeter"))
	return files, err
}

// complete adds files to an image, and a label that is different in each image. Without the label, two
// images with the same program would have the same ID, and the status of a container could contain
// either name.
func complete(image v1.Image, name string, added map[string][]byte) (v1.Image, error) {
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	for _, path := range slices.Sorted(maps.Keys(added)) {
		if err := w.WriteHeader(&tar.Header{Name: path, Mode: 0o755, Size: int64(len(added[path]))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(added[path]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil })
	if err != nil {
		return nil, err
	}
	if image, err = mutate.AppendLayers(image, layer); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Config.Labels = map[string]string{"name": name}
	if name == devicePluginImage {
		config.Config.Entrypoint = []string{"/sampledeviceplugin", "-alsologtostderr"}
	}
	return mutate.ConfigFile(image, config)
}
