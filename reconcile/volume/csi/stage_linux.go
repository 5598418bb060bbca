package csi

import (
	"context"
	"errors"
	"io/fs"
)

// stage has the driver bring the volume to this machine.
func (w *work) stage(ctx context.Context) error {
	_, err := load(w.p.stageData)
	first := errors.Is(err, fs.ErrNotExist)
	f, err := w.factsOf(w.p.stageData)
	if err != nil {
		return err
	}
	shared := !first && f[keyVolume] != w.v.Volume && f[keyShared] == ""
	if shared {
		f[keyShared] = "true"
	}
	switch stands := w.d.stands(f[keyState], w.p.staging); {
	case stands && shared:
		return f.save(w.p.stageData)
	case stands:
		return nil
	}
	first = first || f[keyState] == announced
	f[keyVolume], f[keyState] = w.v.Volume, begun
	if !w.can.stage() {
		f[keyState] = w.d.boot
	}
	was := w.d.setUse(w.v.id(), true)
	if !w.v.Block || w.can.stage() {
		err = makeDir(w.p.staging)
	}
	if err == nil {
		err = f.save(w.p.stageData)
	}
	if err != nil {
		w.d.setUse(w.v.id(), was)
		return err
	}
	if !w.can.stage() {
		return nil
	}
	err = w.call(ctx, func(ctx context.Context) error {
		_, err := w.node.NodeStageVolume(ctx, w.v.stageRequest(w.p, w.can))
		return err
	})
	if err == nil {
		if f[keyState], err = w.d.stood(w.p.staging); err != nil {
			return err
		}
		return f.save(w.p.stageData)
	}
	if first && final(err) { // else it may be staged, and other pods have it
		err = errors.Join(err, w.unmake(f))
	}
	return err
}

// unmake removes what was made for a driver that did not stage the volume.
func (w *work) unmake(f facts) error {
	if is, err := isMounted(w.p.staging); is || err != nil {
		return err
	}
	if err := remove(w.p.staging); err != nil {
		return err
	}
	elsewhere, err := w.d.elsewhere(w.v.id(), w.p.stageData)
	if err != nil {
		return err
	}
	if w.v.Block { // the facts of publishing are there, too
		f[keyState] = announced
		err = f.save(w.p.stageData)
	} else {
		err = forget(w.p.stageData)
	}
	w.d.setUse(w.v.id(), elsewhere)
	return err
}

// final says that a driver is not at it any more.
func final(err error) bool {
	e, is := errors.AsType[*Error](err)
	return is && !e.Uncertain
}
