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

// Published is a published volume of a pod.
type Published struct {
	Path string // path of the mount or of the block device
	// Group reports whether the caller must set the group of the files to the pod's
	// fsGroup.
	Group bool
}

// A work is an operation on a volume of a pod. The goroutine that uses a work must hold the lock
// of the volume.
type work struct {
	*session
	d   *Drivers
	v   Volume
	p   volumePaths
	can capabilities
}

// Publish stages a volume and publishes the volume for a pod, unless the volume is already
// published for the pod. Publish does not access the published file system. The caller must call
// Unpublish later, even if Publish returns an error.
func (d *Drivers) Publish(ctx context.Context, v Volume) (Published, error) {
	steps := volumeSteps(v)
	failed := func(step int, err error) (Published, error) { return Published{}, steps.failed(step, err) }
	if err := v.check(); err != nil {
		return failed(publishing, err)
	}
	p := d.pathsFor(v)
	end, err := d.lockVolume(ctx, v.id(), p.device())
	if err != nil {
		return failed(staging, err)
	}
	defer end()
	if f, err := load(p.data); err == nil && f[keyHandle] == v.id().Handle && d.isValid(f[p.state], p.target) {
		d.setPublished(p, v, nil)
		return Published{p.target, f[keyGroup] == "podd"}, nil
	}
	first := staging
	if !v.persistent() {
		first = publishing
	}
	w, err := d.begin(ctx, v, p)
	if err != nil {
		return failed(first, err)
	}
	defer w.close()
	if err := w.announce(); err != nil {
		return failed(first, err)
	}
	if v.persistent() {
		if err := w.stage(ctx); err != nil {
			return failed(staging, err)
		}
	}
	if err := w.publish(ctx); err != nil {
		return failed(publishing, err)
	}
	d.setPublished(p, v, &publishCall{v, time.Now()})
	if err := w.grow(ctx); err != nil && !inUse(err) {
		return failed(growing, err)
	}
	return Published{p.target, v.mustSetGroup(w.can)}, nil
}

// begin connects to the driver and gets its capabilities. The caller must close the work.
func (d *Drivers) begin(ctx context.Context, v Volume, p volumePaths) (*work, error) {
	s, err := d.openSession(v.Driver)
	if err != nil {
		return nil, err
	}
	s.redactFor = v.CSI
	can, err := s.capabilities(ctx)
	if err != nil {
		s.close()
		return nil, err
	}
	return &work{session: s, d: d, v: v, p: p, can: can}, nil
}

// loadFacts returns the facts in a directory, or new facts for w.v if there is no data file. It
// returns an error if the data file describes a different volume.
func (w *work) loadFacts(dir string) (facts, error) {
	f, err := load(dir)
	id := w.v.id()
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errUnreadable) && dir != w.p.stageData:
		return facts{keyDriver: id.Driver, keyHandle: id.Handle}, nil
	case err != nil:
		return nil, err
	case f[keyDriver] != id.Driver || f[keyHandle] != id.Handle:
		return nil, fmt.Errorf("a different volume of driver %s, %q, is still published or staged with this name", f[keyDriver], f[keyHandle])
	}
	return f, nil
}

// publish makes the driver publish the volume for the pod, or publish the volume again.
func (w *work) publish(ctx context.Context) error {
	f, err := w.loadFacts(w.p.data)
	if err != nil {
		return err
	}
	before := f[w.p.state]
	again := w.d.isValid(before, w.p.target)
	if !again {
		f[w.p.state] = begun
		if err := f.save(w.p.data); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(w.p.target), 0o750); err != nil {
		return err
	}
	err = w.call(ctx, func(ctx context.Context) error {
		_, err := w.node.NodePublishVolume(ctx, w.v.publishRequest(w.p, w.can))
		return err
	})
	switch {
	case err == nil:
		if f[w.p.state], err = w.d.currentState(w.p.target); err != nil {
			return err
		}
		f[keyGroup] = "driver"
		if w.v.mustSetGroup(w.can) {
			f[keyGroup] = "podd"
		}
		if again && f[w.p.state] == before {
			return nil
		}
		return f.save(w.p.data)
	case isFinal(err) && before == announced: // otherwise the volume may be published
		if is, looked := isMounted(w.p.target); is || looked != nil {
			return errors.Join(err, looked)
		}
		f[w.p.state] = announced
		return errors.Join(err, remove(w.p.target), f.save(w.p.data))
	}
	return err
}
