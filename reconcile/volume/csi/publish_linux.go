package csi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A PublishResult is a published volume of a pod.
type PublishResult struct {
	Path string // path of the mount or of the block device
	// MustSetGroup reports whether the caller must set the group of the files to the pod's fsGroup.
	MustSetGroup bool
}

// An operation stages, publishes or expands a volume of a pod. The goroutine that uses the operation
// must hold the lock of the volume.
type operation struct {
	*session
	d    *Drivers
	v    Volume
	p    volumePaths
	caps capabilities
}

// Publish stages a volume and publishes the volume for a pod, unless the volume is already
// published for the pod. Publish does not access the published file system. The caller must call
// Unpublish later, even if Publish returns an error.
func (d *Drivers) Publish(ctx context.Context, v Volume) (PublishResult, error) {
	steps := volumeSteps(v)
	failed := func(step int, err error) (PublishResult, error) { return PublishResult{}, steps.wrap(step, err) }
	if err := v.check(); err != nil {
		return failed(publishing, err)
	}
	p := d.pathsFor(v)
	end, err := d.lockVolume(ctx, v.id(), p.deviceDataDir())
	if err != nil {
		return failed(staging, err)
	}
	defer end()
	if f, err := readFacts(p.dataDir); err == nil && f[keyHandle] == v.id().Handle && d.isStateCurrent(f[p.stateKey], p.target) {
		d.setPublished(p, v, nil)
		return PublishResult{p.target, f[keyGroup] == "podd"}, nil
	}
	first := staging
	if !v.isPersistent() {
		first = publishing
	}
	op, err := d.newOperation(ctx, v, p)
	if err != nil {
		return failed(first, err)
	}
	defer op.close()
	if err := op.recordUse(); err != nil {
		return failed(first, err)
	}
	if v.isPersistent() {
		if err := op.stage(ctx); err != nil {
			return failed(staging, err)
		}
	}
	if err := op.publish(ctx); err != nil {
		return failed(publishing, err)
	}
	d.setPublished(p, v, &publishCall{v, time.Now()})
	if err := op.expand(ctx); err != nil && !cannotExpandInUse(err) {
		return failed(expanding, err)
	}
	return PublishResult{p.target, v.mustSetGroup(op.caps)}, nil
}

// newOperation connects to the driver, queries its capabilities and returns an operation. The
// caller must close the operation.
func (d *Drivers) newOperation(ctx context.Context, v Volume, p volumePaths) (*operation, error) {
	s, err := d.openSession(v.Driver)
	if err != nil {
		return nil, err
	}
	s.redactFor = v.CSIVolume
	can, err := s.capabilities(ctx)
	if err != nil {
		s.close()
		return nil, err
	}
	return &operation{session: s, d: d, v: v, p: p, caps: can}, nil
}

// loadFacts returns the facts in a directory, or new facts for op.v if there is no data file. It
// returns an error if the data file describes a different volume.
func (op *operation) loadFacts(dir string) (facts, error) {
	f, err := readFacts(dir)
	id := op.v.id()
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errUnreadable) && dir != op.p.stageDataDir:
		return facts{keyDriver: id.Driver, keyHandle: id.Handle}, nil
	case err != nil:
		return nil, err
	case f[keyDriver] != id.Driver || f[keyHandle] != id.Handle:
		return nil, fmt.Errorf("another volume with the same name, %[2]q of driver %[1]s, is still published or staged", f[keyDriver], f[keyHandle])
	}
	return f, nil
}

// publish makes the driver publish the volume for the pod. It is also used to publish a volume
// again.
func (op *operation) publish(ctx context.Context) error {
	f, err := op.loadFacts(op.p.dataDir)
	if err != nil {
		return err
	}
	before := f[op.p.stateKey]
	again := op.d.isStateCurrent(before, op.p.target)
	if !again {
		f[op.p.stateKey] = stateBegun
		if err := f.save(op.p.dataDir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(op.p.target), 0o750); err != nil {
		return err
	}
	err = op.call(ctx, func(ctx context.Context) error {
		_, err := op.nodeClient.NodePublishVolume(ctx, op.v.publishRequest(op.p, op.caps))
		return err
	})
	switch {
	case err == nil:
		if f[op.p.stateKey], err = op.d.currentState(op.p.target); err != nil {
			return err
		}
		f[keyGroup] = "driver"
		if op.v.mustSetGroup(op.caps) {
			f[keyGroup] = "podd"
		}
		if again && f[op.p.stateKey] == before {
			return nil
		}
		return f.save(op.p.dataDir)
	case isFinalError(err) && before == stateAnnounced: // undo the call only after these errors, because after other errors the volume may be published
		if isMounted, mountErr := isMounted(op.p.target); isMounted || mountErr != nil {
			return errors.Join(err, mountErr)
		}
		f[op.p.stateKey] = stateAnnounced
		return errors.Join(err, remove(op.p.target), f.save(op.p.dataDir))
	}
	return err
}
