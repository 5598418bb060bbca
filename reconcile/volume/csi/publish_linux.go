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

// Published is a volume as a pod has it.
type Published struct {
	Path string
	// Group says that its files are to be given to the pod's group.
	Group bool
}

// work is what is done with one volume of a pod, by whoever has its turn.
type work struct {
	*session
	d   *Drivers
	v   Volume
	p   place
	can able
}

// Publish has a volume staged and published for a pod, unless that is done, and
// looks at nothing of it. What was done stays until Unpublish, after an error too.
func (d *Drivers) Publish(ctx context.Context, v Volume) (Published, error) {
	steps := stepsOf(v)
	failed := func(step int, err error) (Published, error) { return Published{}, steps.failed(step, err) }
	if err := v.check(); err != nil {
		return failed(publishing, err)
	}
	end, err := d.take(ctx, v.id())
	if err != nil {
		return failed(staging, err)
	}
	defer end()
	p := d.placeOf(v)
	if f, err := load(p.data); err == nil && f[keyHandle] == v.id().Handle && d.stands(f[p.state], p.target) {
		d.want(p, v, nil)
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
	d.want(p, v, &told{v, time.Now()})
	if err := w.grow(ctx); err != nil && !inUse(err) {
		return failed(growing, err)
	}
	return Published{p.target, v.ownsFiles(w.can)}, nil
}

// begin asks a driver what it can. The caller closes the work.
func (d *Drivers) begin(ctx context.Context, v Volume, p place) (*work, error) {
	s, err := d.reach(v.Driver)
	if err != nil {
		return nil, err
	}
	s.told = v.CSI
	can, err := s.able(ctx)
	if err != nil {
		s.close()
		return nil, err
	}
	return &work{session: s, d: d, v: v, p: p, can: can}, nil
}

// factsOf are those in a directory, of this volume.
func (w *work) factsOf(dir string) (facts, error) {
	f, err := load(dir)
	id := w.v.id()
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errUnreadable) && dir != w.p.stageData:
		return facts{keyDriver: id.Driver, keyHandle: id.Handle}, nil
	case err != nil:
		return nil, err
	case f[keyDriver] != id.Driver || f[keyHandle] != id.Handle:
		return nil, fmt.Errorf("driver %s has another volume of this name here, %q, which is not gone yet", f[keyDriver], f[keyHandle])
	}
	return f, nil
}

// publish has the driver give the volume to the pod, for the first time or again.
func (w *work) publish(ctx context.Context) error {
	f, err := w.factsOf(w.p.data)
	if err != nil {
		return err
	}
	before := f[w.p.state]
	again := w.d.stands(before, w.p.target)
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
		if f[w.p.state], err = w.d.stood(w.p.target); err != nil {
			return err
		}
		f[keyGroup] = "driver"
		if w.v.ownsFiles(w.can) {
			f[keyGroup] = "podd"
		}
		if again && f[w.p.state] == before {
			return nil
		}
		return f.save(w.p.data)
	case final(err) && before == announced: // else it may be published
		if is, looked := isMounted(w.p.target); is || looked != nil {
			return errors.Join(err, looked)
		}
		f[w.p.state] = announced
		return errors.Join(err, remove(w.p.target), f.save(w.p.data))
	}
	return err
}
