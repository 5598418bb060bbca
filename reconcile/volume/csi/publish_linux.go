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

// A PublishResult describes a published volume of a pod.
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
	fail := func(step int, err error) (PublishResult, error) { return PublishResult{}, steps.wrap(step, err) }
	if err := v.check(); err != nil {
		return fail(publishing, err)
	}
	p := d.pathsFor(v)
	unlock, err := d.lockVolume(ctx, v.id(), p.deviceDataDir())
	if err != nil {
		return fail(staging, err)
	}
	defer unlock()
	if f, err := readFacts(p.dataDir); err == nil && f[keyHandle] == v.id().Handle && d.isStateCurrent(f[p.stateKey], p.target) {
		v.SELinux.Context = f[keySELinux]
		d.setPublished(p, v, nil)
		return PublishResult{p.target, f[keyGroup] == "podd"}, nil
	}
	firstStep := staging
	if !v.isPersistent() {
		firstStep = publishing
	}
	op, err := d.newOperation(ctx, v, p)
	if err != nil {
		return fail(firstStep, err)
	}
	defer op.close()
	if err := op.recordUse(); err != nil {
		return fail(firstStep, err)
	}
	if v.isPersistent() {
		if err := op.stage(ctx); err != nil {
			return fail(staging, err)
		}
	}
	if err := op.publish(ctx); err != nil {
		return fail(publishing, err)
	}
	d.setPublished(p, op.v, &publishCall{op.v, time.Now()})
	if err := op.expand(ctx); err != nil && !cannotExpandInUse(err) {
		return fail(expanding, err)
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
	caps, err := s.capabilities(ctx)
	if err != nil {
		s.close()
		return nil, err
	}
	return &operation{session: s, d: d, v: v, p: p, caps: caps}, nil
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

// publish makes the driver publish the volume for the pod. The volume may be published already,
// because podd also publishes volumes again.
func (op *operation) publish(ctx context.Context) error {
	f, err := op.loadFacts(op.p.dataDir)
	if err != nil {
		return err
	}
	oldState := f[op.p.stateKey]
	isPublished := op.d.isStateCurrent(oldState, op.p.target)
	if !isPublished {
		f[op.p.stateKey] = op.d.begunState()
		f.setLabel(op.v.SELinux.Context)
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
		if isPublished && f[op.p.stateKey] == oldState {
			return nil
		}
		return f.save(op.p.dataDir)
	case isFinalError(err) && oldState == stateAnnounced: // after other errors the volume may be published, so the call is not undone
		if isMounted, mountErr := isMounted(op.p.target); isMounted || mountErr != nil {
			return errors.Join(err, mountErr)
		}
		f[op.p.stateKey] = stateAnnounced
		return errors.Join(err, remove(op.p.target), f.save(op.p.dataDir))
	}
	return err
}
