// Package registry serves images on a port of 127.0.0.1 over plain HTTP, for tests that pull
// images. A registry can require a password and inject faults. Docker and containerd use plain HTTP
// for this address by default.
//
//	request ─ fault? ─ authorized? ─ go-containerregistry's registry, in memory
package registry

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"

	"github.com/google/go-containerregistry/pkg/name"
	upstream "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Options configure a registry.
type Options struct {
	// User and Password are required by basic authentication. If both are empty, no
	// authentication is required.
	User, Password string
}

// A Registry is a running registry. It is safe for concurrent use.
type Registry struct {
	options  Options
	images   http.Handler
	listener net.Listener
	server   *http.Server
	faults   faults
	closing  chan struct{} // Close closes this channel, so that hanging requests end
	stopped  chan struct{} // closed when the server has stopped
}

// Start starts a registry without images on a free port.
func Start(o Options) (*Registry, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting a registry: %w", err)
	}
	images := upstream.New(upstream.Logger(log.New(io.Discard, "", 0)))
	r := &Registry{options: o, images: images, listener: listener, closing: make(chan struct{}), stopped: make(chan struct{})}
	r.server = &http.Server{Handler: r.injectFaults(r.authorize(images))}
	go func() {
		defer close(r.stopped)
		_ = r.server.Serve(listener) // ignore the error, because Serve returns http.ErrServerClosed after Close
	}()
	return r, nil
}

// Host returns the registry's host and port, the first part of an image's name.
func (r *Registry) Host() string { return r.listener.Addr().String() }

// FromTarball returns an image from a tarball of several images. The parameter image is the name of
// the image.
func FromTarball(path, image string) (v1.Image, error) {
	tag, err := name.NewTag(image)
	if err != nil {
		return nil, fmt.Errorf("reading image %s from the tarball %s: %w", image, path, err)
	}
	img, err := tarball.ImageFromPath(path, &tag)
	if err != nil {
		return nil, fmt.Errorf("reading image %s from the tarball %s: %w", image, path, err)
	}
	return img, nil
}

// Close ends all requests, also hanging ones, and stops the server. It must be called exactly
// once.
func (r *Registry) Close() error {
	close(r.closing)
	err := r.server.Close()
	<-r.stopped
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("closing the registry: %w", err)
	}
	return nil
}
