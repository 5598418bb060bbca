// Package registry serves images on a port of 127.0.0.1, over plain HTTP, for
// tests of pulling: with a password if asked for, and with faults. Docker and
// containerd use plain HTTP for this address unless they are told otherwise.
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

// Options says how a registry behaves from the start.
type Options struct {
	// User and Password are asked for by basic authentication. Both empty:
	// everybody may pull.
	User, Password string
}

// Registry is a running registry. Its methods may be called concurrently.
type Registry struct {
	options  Options
	images   http.Handler
	listener net.Listener
	server   *http.Server
	faults   faults
	closing  chan struct{} // closed by Close, ends hanging requests
	served   chan struct{} // closed when the server has ended
}

// Start starts a registry without images on a free port.
func Start(o Options) (*Registry, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting a registry: %w", err)
	}
	images := upstream.New(upstream.Logger(log.New(io.Discard, "", 0)))
	r := &Registry{options: o, images: images, listener: listener, closing: make(chan struct{}), served: make(chan struct{})}
	r.server = &http.Server{Handler: r.faulty(r.authorized(images))}
	go func() {
		defer close(r.served)
		_ = r.server.Serve(listener) // ends with Close
	}()
	return r, nil
}

// Host is the registry's host and port, the first part of an image's name.
func (r *Registry) Host() string { return r.listener.Addr().String() }

// FromTarball is one image, by its name, of a tarball of many.
func FromTarball(path, image string) (v1.Image, error) {
	tag, err := name.NewTag(image)
	if err != nil {
		return nil, fmt.Errorf("finding image %s in %s: %w", image, path, err)
	}
	found, err := tarball.ImageFromPath(path, &tag)
	if err != nil {
		return nil, fmt.Errorf("finding image %s in %s: %w", image, path, err)
	}
	return found, nil
}

// Close ends all requests, also hanging ones, and the server. Call it once.
func (r *Registry) Close() error {
	close(r.closing)
	err := r.server.Close()
	<-r.served
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("closing the registry: %w", err)
	}
	return nil
}
