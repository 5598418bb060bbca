//go:build e2e

package nodesuite

import (
	"io"
	"path"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// registryFiles returns the files from which the registry of the image agnhost serves an image, by
// path. repository is the name of the image without the registry.
func registryFiles(image v1.Image, repository, tag string) (map[string][]byte, error) {
	dir := path.Join("var/registry", repository)
	files := map[string][]byte{}
	add := func(kind string, digest v1.Hash, content []byte) {
		files[path.Join(dir, kind, digest.Algorithm, digest.Hex[:2], digest.Hex, "data")] = content
	}
	digest, err := image.Digest()
	if err != nil {
		return nil, err
	}
	manifest, err := image.RawManifest()
	if err != nil {
		return nil, err
	}
	files[path.Join(dir, "manifests", tag)] = []byte(digest.String())
	add("manifests", digest, manifest)
	configDigest, err := image.ConfigName()
	if err != nil {
		return nil, err
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return nil, err
	}
	add("blobs", configDigest, config)
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	for _, layer := range layers {
		digest, content, err := readLayer(layer)
		if err != nil {
			return nil, err
		}
		add("blobs", digest, content)
	}
	return files, nil
}

// readLayer returns the digest and the compressed content of a layer.
func readLayer(layer v1.Layer) (digest v1.Hash, content []byte, err error) {
	if digest, err = layer.Digest(); err != nil {
		return digest, nil, err
	}
	r, err := layer.Compressed()
	if err != nil {
		return digest, nil, err
	}
	defer r.Close()
	content, err = io.ReadAll(r)
	return digest, content, err
}
