package csi

import (
	"context"
	"errors"
	"io/fs"
)

// stage makes the driver stage the volume on this node, unless the volume is already staged.
func (w *work) stage(ctx context.Context) error {
	_, err := load(w.p.stageData)
	first := errors.Is(err, fs.ErrNotExist)
	f, err := w.loadFacts(w.p.stageData)
	if err != nil {
		return err
	}
	shared := !first && f[keyVolume] != w.v.Volume && f[keyShared] == ""
	if shared {
		f[keyShared] = "true"
	}
	switch isValid := w.d.isValid(f[keyState], w.p.staging); {
	case isValid && shared:
		return f.save(w.p.stageData)
	case isValid:
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
		if f[keyState], err = w.d.currentState(w.p.staging); err != nil {
			return err
		}
		return f.save(w.p.stageData)
	}
	if first && isFinal(err) { // otherwise, the volume may be staged and in use by other pods
		err = errors.Join(err, w.undoStage(f))
	}
	return err
}

// undoStage removes the staging path and the facts of a volume that the driver failed to stage.
func (w *work) undoStage(f facts) error {
	if is, err := isMounted(w.p.staging); is || err != nil {
		return err
	}
	if err := remove(w.p.staging); err != nil {
		return err
	}
	stagedElsewhere, err := w.d.stagedElsewhere(w.v.id(), w.p.stageData)
	if err != nil {
		return err
	}
	if w.v.Block { // the same data file describes the published device
		f[keyState] = announced
		err = f.save(w.p.stageData)
	} else {
		err = removeFacts(w.p.stageData)
	}
	w.d.setUse(w.v.id(), stagedElsewhere)
	return err
}

// isFinal reports whether err is the error of a call that the driver no longer processes.
func isFinal(err error) bool {
	e, is := errors.AsType[*callError](err)
	return is && !e.Uncertain
}
