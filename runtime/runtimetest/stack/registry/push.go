package registry

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Push stores an image as repository, such as "team/web:1", and returns its full name. Push
// calls the handler of the registry directly. Therefore Push needs no password, faults do not
// apply, and its requests are not counted.
func (r *Registry) Push(image v1.Image, repository string) (string, error) {
	ref, err := name.ParseReference(r.Host() + "/" + repository)
	if err == nil {
		err = r.push(image, ref)
	}
	if err != nil {
		return "", fmt.Errorf("pushing %s: %w", repository, err)
	}
	return ref.String(), nil
}

func (r *Registry) push(image v1.Image, ref name.Reference) error {
	layers, err := image.Layers()
	if err != nil {
		return fmt.Errorf("listing the layers of the image: %w", err)
	}
	base := "/v2/" + ref.Context().RepositoryStr()
	for _, layer := range layers {
		digest, err := layer.Digest()
		if err != nil {
			return fmt.Errorf("computing the digest of a layer: %w", err)
		}
		content, err := layer.Compressed()
		if err != nil {
			return fmt.Errorf("reading layer %s: %w", digest, err)
		}
		err = r.upload(base, digest, content)
		_ = content.Close() // a failed Close does no harm, because upload has returned every error of reading content
		if err != nil {
			return err
		}
	}
	return r.pushManifest(image, base, ref.Identifier())
}

// pushManifest uploads the configuration and then the manifest, which refers to the
// configuration and the layers.
func (r *Registry) pushManifest(image v1.Image, base, tag string) error {
	digest, err := image.ConfigName()
	if err != nil {
		return fmt.Errorf("computing the digest of the configuration of the image: %w", err)
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return fmt.Errorf("reading the configuration of the image: %w", err)
	}
	if err := r.upload(base, digest, bytes.NewReader(config)); err != nil {
		return err
	}
	manifest, err := image.RawManifest()
	if err != nil {
		return fmt.Errorf("reading the manifest of the image: %w", err)
	}
	media, err := image.MediaType()
	if err != nil {
		return fmt.Errorf("reading the manifest of the image: %w", err)
	}
	return r.send(http.MethodPut, base+"/manifests/"+tag, media, bytes.NewReader(manifest))
}

func (r *Registry) upload(base string, digest v1.Hash, content io.Reader) error {
	return r.send(http.MethodPost, base+"/blobs/uploads/?digest="+digest.String(), "application/octet-stream", content)
}

func (r *Registry) send(method, path string, media types.MediaType, body io.Reader) error {
	request := httptest.NewRequest(method, path, body)
	request.Header.Set("Content-Type", string(media))
	reply := httptest.NewRecorder()
	r.images.ServeHTTP(reply, request)
	if reply.Code != http.StatusCreated {
		return fmt.Errorf("%s %s: got status %d, want 201: %s", method, path, reply.Code, reply.Body)
	}
	return nil
}
