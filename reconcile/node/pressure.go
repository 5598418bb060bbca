package node

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/reconcile/event"
	"podd/reconcile/eviction/pressure"
	"podd/runtime"
)

// A PressureObserver observes the eviction signals of the node. Observe must be called by one
// goroutine.
type PressureObserver struct {
	o          ObserverOptions
	newStorage chan storage  // capacity 1: the newest storage that Run has found
	completed  chan struct{} // closed by Run after the first result
	storage    storage
	lastError  map[string]string // the error that was logged last, by the subject of the observation

	hasNoImageDiskSize bool // the last observation found that the image file system has no size
}

// ObserverOptions are the options of a PressureObserver. All fields except HugePagesAvailable are
// required.
type ObserverOptions struct {
	RootDir string
	Runtime imageFilesystems
	// MeasureAllPods returns the working set and the memory limit of all pods; a limit of 0 means
	// that there is none.
	MeasureAllPods func() (workingSet, limit int64, err error)
	// HugePagesAvailable is set if huge pages count as available memory.
	HugePagesAvailable bool
	Record             func([]event.Event)
	Log                *slog.Logger
}

// imageFilesystems is the part of *cri.Client that a PressureObserver and HasImageDisk use.
type imageFilesystems interface {
	ImageFsInfo(ctx context.Context) (images, containers []runtime.Filesystem, err error)
}

// storage contains directories in the file systems of images and of writable layers; "" if they are
// unknown.
type storage struct{ images, layers string }

// NewPressureObserver returns a PressureObserver that has observed nothing yet.
func NewPressureObserver(o ObserverOptions) *PressureObserver {
	return &PressureObserver{o: o, newStorage: make(chan storage, 1), completed: make(chan struct{}), lastError: map[string]string{}}
}

const (
	// locateInterval is the interval between requests for the mount points of the runtime.
	locateInterval = time.Minute
	// locateRetry is the interval after a failed request, and the timeout of a request.
	locateRetry = 10 * time.Second
	// firstLocateRetry is the interval before the first successful request. It is short because the
	// router starts no pod before the first complete observation, or one second after the runtime has
	// responded.
	firstLocateRetry = 500 * time.Millisecond
)

// Completed implements eviction.Observer.
func (p *PressureObserver) Completed() <-chan struct{} { return p.completed }

// Run requests the mount points of images and layers from the runtime until ctx is done. It runs in
// a separate goroutine, because the runtime may not respond. The last mount points remain in use.
func (p *PressureObserver) Run(ctx context.Context) error {
	isFirst := true
	for {
		wait := locateRetry
		if isFirst {
			wait = firstLocateRetry
		}
		if s, ok := p.locate(ctx); ok {
			wait = locateInterval
			select {
			case <-p.newStorage: // replaced by a newer result
			default:
			}
			p.newStorage <- s
			if isFirst {
				close(p.completed)
				isFirst = false
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// locate returns the mount points that the runtime reports. ok is false if it reports none.
func (p *PressureObserver) locate(ctx context.Context) (s storage, ok bool) {
	requestCtx, cancel := context.WithTimeout(ctx, locateRetry)
	defer cancel()
	images, layers, err := p.o.Runtime.ImageFsInfo(requestCtx)
	if err != nil || len(images) == 0 {
		return s, false
	}
	s.images = images[0].Mountpoint
	s.layers = s.images
	if len(layers) > 0 {
		s.layers = layers[0].Mountpoint
	}
	return s, true
}

// HasImageDisk reports whether the images or the writable layers of the runtime are in another file
// system than the directory dir.
func HasImageDisk(ctx context.Context, client imageFilesystems, dir string) (bool, error) {
	images, layers, err := client.ImageFsInfo(ctx)
	if err != nil {
		return false, fmt.Errorf("requesting the file systems of images: %w", err)
	}
	id, err := filesystemID(dir)
	if err != nil {
		return false, err
	}
	for _, f := range slices.Concat(images, layers) {
		if other, err := filesystemID(f.Mountpoint); err != nil || other != id {
			return true, err
		}
	}
	return false, nil
}

// Observe implements eviction.Observer. It omits signals that cannot be read, and logs the error
// once.
func (p *PressureObserver) Observe() pressure.Observations {
	select {
	case p.storage = <-p.newStorage:
	default:
	}
	out := pressure.Observations{Signals: map[pressure.Signal]pressure.Observation{}}
	memory, err := observeMemory(p.o.HugePagesAvailable)
	if p.check("memory", err) {
		out.Signals[pressure.MemoryAvailable] = memory
	}
	workingSet, limit, err := p.o.MeasureAllPods()
	if p.check("memory of all pods", err) {
		out.Signals[pressure.AllocatableMemoryAvailable] = pressure.Observation{Capacity: limit, Available: max(limit-workingSet, 0)}
	}
	pids := ReadMaxPids()
	out.Signals[pressure.PIDAvailable] = pressure.Observation{Capacity: pids, Available: max(pids-CountProcesses(), 0)}
	out.Layout.Nodefs = p.observeDisk(&out, p.o.RootDir, pressure.NodefsAvailable, pressure.NodefsInodesFree)
	out.Layout.Imagefs, out.Layout.Containerfs = out.Layout.Nodefs, out.Layout.Nodefs
	if p.storage != (storage{}) {
		out.Layout.Imagefs = p.observeDisk(&out, p.storage.images, pressure.ImagefsAvailable, pressure.ImagefsInodesFree)
		out.Layout.Containerfs = p.observeDisk(&out, p.storage.layers, pressure.ContainerfsAvailable, pressure.ContainerfsInodesFree)
		out.IsComplete = true
		p.checkImageDisk(out.Signals[pressure.ImagefsAvailable], time.Now())
	}
	return out
}

// observeDisk adds the space and the inodes of the file system that contains dir to out, and
// returns the ID of the file system. It returns 0 if the file system cannot be read.
func (p *PressureObserver) observeDisk(out *pressure.Observations, dir string, spaceSignal, inodesSignal pressure.Signal) (id uint64) {
	s, err := StatFilesystem(dir)
	if err == nil {
		id, err = filesystemID(dir)
	}
	if !p.check(dir, err) {
		return 0
	}
	out.Signals[spaceSignal] = pressure.Observation{Capacity: int64(s.CapacityBytes), Available: int64(s.AvailableBytes)}
	out.Signals[inodesSignal] = pressure.Observation{Capacity: int64(s.Inodes), Available: int64(s.InodesFree)}
	return id
}

// check reports whether err is nil. It logs err, unless the last error of the subject was the same.
func (p *PressureObserver) check(subject string, err error) bool {
	if err == nil {
		delete(p.lastError, subject)
		return true
	}
	if p.lastError[subject] != err.Error() {
		p.lastError[subject] = err.Error()
		p.o.Log.Warn("reading the node's resources failed; keeping the previous pressure conditions", "resource", subject, "err", err)
	}
	return false
}

// checkImageDisk records an event if the image file system has no size. It does not record the
// event again while the size is missing.
func (p *PressureObserver) checkImageDisk(images pressure.Observation, at time.Time) {
	isInvalid := images.Capacity == 0
	if isInvalid && !p.hasNoImageDiskSize {
		p.o.Record([]event.Event{event.NewNodeEvent(v1.EventTypeWarning, "InvalidDiskCapacity", "invalid capacity 0 on image filesystem", at)})
	}
	p.hasNoImageDiskSize = isInvalid
}

// observeMemory returns the memory of the host.
func observeMemory(hugePagesAvailable bool) (pressure.Observation, error) {
	m, err := readMemInfo()
	if err != nil {
		return pressure.Observation{}, err
	}
	return m.available(hugePagesAvailable)
}
