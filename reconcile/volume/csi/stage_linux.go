package csi

import (
	"context"
	"errors"
	"io/fs"
)

// stage makes the driver stage the volume on this node, unless the volume is already staged.
func (op *operation) stage(ctx context.Context) error {
	_, err := readFacts(op.p.stageDataDir)
	first := errors.Is(err, fs.ErrNotExist)
	f, err := op.loadFacts(op.p.stageDataDir)
	if err != nil {
		return err
	}
	shared := !first && f[keyPersistentVolume] != op.v.Volume && f[keyShared] == ""
	if shared {
		f[keyShared] = "true"
	}
	switch isValid := op.d.isStateCurrent(f[keyState], op.p.stagingPath); {
	case isValid && shared:
		return f.save(op.p.stageDataDir)
	case isValid:
		return nil
	}
	first = first || f[keyState] == stateAnnounced
	f[keyPersistentVolume], f[keyState] = op.v.Volume, stateBegun
	if !op.caps.supportsStaging() {
		f[keyState] = op.d.bootID
	}
	was := op.d.setInUse(op.v.id(), true)
	if !op.v.Block || op.caps.supportsStaging() {
		err = makeDir(op.p.stagingPath)
	}
	if err == nil {
		err = f.save(op.p.stageDataDir)
	}
	if err != nil {
		op.d.setInUse(op.v.id(), was)
		return err
	}
	if !op.caps.supportsStaging() {
		return nil
	}
	err = op.call(ctx, func(ctx context.Context) error {
		_, err := op.nodeClient.NodeStageVolume(ctx, op.v.stageRequest(op.p, op.caps))
		return err
	})
	if err == nil {
		if f[keyState], err = op.d.currentState(op.p.stagingPath); err != nil {
			return err
		}
		return f.save(op.p.stageDataDir)
	}
	if first && isFinalError(err) { // undo the call only after these errors, because after other errors the volume may be staged and in use by other pods
		err = errors.Join(err, op.undoStage(f))
	}
	return err
}

// undoStage removes the staging path and the facts of a volume that the driver failed to stage.
func (op *operation) undoStage(f facts) error {
	if is, err := isMounted(op.p.stagingPath); is || err != nil {
		return err
	}
	if err := remove(op.p.stagingPath); err != nil {
		return err
	}
	stagedElsewhere, err := op.d.isStagedElsewhere(op.v.id(), op.p.stageDataDir)
	if err != nil {
		return err
	}
	if op.v.Block { // keep the data file, because it also describes the published device
		f[keyState] = stateAnnounced
		err = f.save(op.p.stageDataDir)
	} else {
		err = removeFacts(op.p.stageDataDir)
	}
	op.d.setInUse(op.v.id(), stagedElsewhere)
	return err
}

// isFinalError reports whether err is the error of a call that the driver no longer processes.
func isFinalError(err error) bool {
	e, is := errors.AsType[*callError](err)
	return is && !e.IsUncertain
}
