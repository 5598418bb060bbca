// Package images removes unused images from the node, as the image garbage collection of the
// kubelet does. It also lists the images with their users, and removes images at the request of
// users and of the eviction.
//
//	Pods, containers ──▶ users ──▶ gc.Decide ──▶ RemoveImage
//	                       │
//	                       └──▶ record file: last use, for the next podd
//
// One goroutine, Manager.Run, owns the records of the use of images and makes all changes of this
// package. The other methods of Manager send requests to it. Package pull removes damaged images
// itself, because a container waits for the repair; Manager.Run then finds that the image is missing.
package images

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"podd/reconcile/clock"
	"podd/reconcile/event"
	"podd/reconcile/gc"
	"podd/reconcile/state"
	"podd/runtime"
)

// maxInterval is the interval between rounds of the garbage collection in the kubelet.
const maxInterval = 5 * time.Minute

// interval returns the interval between rounds of the garbage collection. It is shorter than
// maxInterval if the maximum age of images is shorter, because the age of a new image counts from the
// round that detects the image.
func interval(p gc.Policy) time.Duration {
	if p.MaxAge <= 0 {
		return maxInterval
	}
	return min(max(p.MaxAge, time.Minute), maxInterval)
}

// Runtime contains the calls of a CRI runtime that a Manager uses.
type Runtime interface {
	ListImages(ctx context.Context) ([]runtime.Image, error)
	ImageStatus(ctx context.Context, name string) (found runtime.Image, present bool, err error)
	// ListContainerImages lists all containers, including those of other programs.
	ListContainerImages(ctx context.Context) ([]runtime.ContainerImage, error)
	// MountedImages returns the images that a container mounts. They never change.
	MountedImages(ctx context.Context, containerID string) ([]string, error)
	Settings(ctx context.Context) (runtime.Settings, error)
	// ImageFsInfo returns the file systems with the images, and with the writable layers of
	// containers if they are on another file system.
	ImageFsInfo(ctx context.Context) (images, containers []runtime.Filesystem, err error)
	// RemoveImage removes an image with all its names. It returns nil if the image does not exist.
	RemoveImage(ctx context.Context, id string) error
}

// Options are the options of a Manager. All fields are required unless their comment says otherwise.
type Options struct {
	Runtime Runtime
	Policy  gc.Policy
	// SandboxImage is the name of an image that is never removed; "" means none.
	SandboxImage string
	Pods         *Pods
	// StatDisk returns the size of the file system at a mount point.
	StatDisk func(mountpoint string) (gc.Disk, error)
	// RecordFile is the path of the file with the last use of images.
	RecordFile string
	// Clock reads the clocks of the host; nil means clock.Read.
	Clock func() state.ClockReading
	// Record records events of the node.
	Record func([]event.Event)
	// OnCollected is called after an image was removed, with the reason for the removal.
	OnCollected func(gc.Reason)
	// Tracer creates a span for each round; nil means that rounds are not traced.
	Tracer trace.Tracer
	Log    *slog.Logger
}

// A Manager removes unused images. Its methods may be called concurrently while Run runs.
type Manager struct {
	o        Options
	requests chan request
	stopped  chan struct{} // closed when Run returns

	// The following fields belong to the goroutine of Run.
	records       map[string]record   // by image ID
	idsByName     map[string]string   // image IDs by the names in the last list of images
	mountedImages map[string][]string // images that containers mount, by container ID
	hasFailed     bool                // the last round has failed
	hasSaveFailed bool                // the last write of the record file has failed
}

// New returns a Manager.
func New(o Options) *Manager {
	return &Manager{o: o, requests: make(chan request), stopped: make(chan struct{})}
}

// Run collects unused images until ctx is done. The first round begins when all pods are known.
func (m *Manager) Run(ctx context.Context) error {
	defer close(m.stopped)
	m.load()
	tick := time.NewTicker(interval(m.o.Policy))
	defer tick.Stop()
	unknownPods := m.o.Pods.completed // nil after the first round
	for {
		select {
		case <-ctx.Done():
			if unknownPods == nil {
				m.save()
			}
			return nil
		case r := <-m.requests:
			r()
		case <-unknownPods:
			unknownPods = nil
			tick.Reset(interval(m.o.Policy))
			m.collect(ctx)
		case <-tick.C:
			if unknownPods == nil {
				m.collect(ctx)
			}
		}
	}
}

// clock reads the clocks of the host.
func (m *Manager) clock() state.ClockReading {
	if m.o.Clock != nil {
		return m.o.Clock()
	}
	return clock.Read()
}

// A request is a function that the goroutine of Run calls.
type request func()

var (
	errStopped   = errors.New("podd is stopping")
	errNotListed = errors.New("podd has not read all sources of pods yet, so it does not know which images are in use; try again later, and see \"podd ps\" for problems of the sources")
)

// call calls f on the goroutine of Run and returns its result. It returns errNotListed until all
// sources of pods were read and the runtime was observed, and errStopped after Run has returned. If
// ctx is done, call returns without waiting for f.
func call[T any](ctx context.Context, m *Manager, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var zero T
	select {
	case <-m.o.Pods.completed:
	default:
		return zero, errNotListed
	}
	results := make(chan result, 1)
	select {
	case m.requests <- func() { v, err := f(); results <- result{v, err} }:
	case <-ctx.Done():
		return zero, ctx.Err()
	case <-m.stopped:
		return zero, errStopped
	}
	select {
	case r := <-results:
		return r.value, r.err
	case <-ctx.Done():
		return zero, ctx.Err()
	}
}
