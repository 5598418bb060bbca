//go:build e2e

package nodesuite

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"podd/runtime/runtimetest/stack/registry"
	"podd/runtime/runtimetest/stack/tools"
)

// push stores the images of the suite in a registry, except those that require a password.
func push(images *registry.Registry, suite tools.NodeSuite) error {
	for _, image := range suite.ImageNames {
		ref, err := name.ParseReference(image)
		if err != nil {
			return err
		}
		if ref.Context().RegistryStr() != "registry.k8s.io" {
			continue
		}
		content, err := registry.FromTarball(suite.Images, image)
		if err != nil {
			return err
		}
		if content, err = complete(content, image); err != nil {
			return err
		}
		if _, err := images.Push(content, ref.Context().RepositoryStr()+":"+ref.Identifier()); err != nil {
			return err
		}
	}
	return nil
}

// complete adds nmeter to an image, and a label that is different in each image. Without the label,
// two tags of one program would be the same image, and its name in the status of a container could
// be either.
func complete(image v1.Image, name string) (v1.Image, error) {
	program, err := os.ReadFile(filepath.Join(programs, "nmeter"))
	if err != nil {
		return nil, err
	}
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	if err := w.WriteHeader(&tar.Header{Name: "bin/nmeter", Mode: 0o755, Size: int64(len(program))}); err != nil {
		return nil, err
	}
	if _, err := w.Write(program); err != nil {
		return nil, err
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
	return mutate.ConfigFile(image, config)
}
