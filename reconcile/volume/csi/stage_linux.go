package csi

import (
	"context"
	"errors"
	"io/fs"
)

// stage makes the driver stage the volume on this node, unless the volume is already staged.
func (op *operation) stage(ctx context.Context) error {
	_, err := readFacts(op.p.stageDataDir)
	isFirst := errors.Is(err, fs.ErrNotExist)
	f, err := op.loadFacts(op.p.stageDataDir)
	if err != nil {
		return err
	}
	if !isFirst {
		if err := op.unstageOtherLabel(ctx, f); err != nil {
			return err
		}
	}
	becomesShared := !isFirst && f[keyPersistentVolume] != op.v.Volume && f[keyShared] == ""
	if becomesShared {
		f[keyShared] = "true"
	}
	switch isValid := op.d.isStateCurrent(f[keyState], op.p.stagingPath); {
	case isValid && becomesShared:
		return f.save(op.p.stageDataDir)
	case isValid:
		return nil
	}
	isFirst = isFirst || f[keyState] == stateAnnounced
	f[keyPersistentVolume], f[keyState] = op.v.Volume, op.d.begunState()
	f.setLabel(op.v.SELinux.Context)
	if !op.caps.supportsStaging() {
		f[keyState] = op.d.bootID
	}
	wasInUse := op.d.setInUse(op.v.id(), true)
	if !op.v.Block || op.caps.supportsStaging() {
		err = makeDir(op.p.stagingPath)
	}
	if err == nil {
		err = f.save(op.p.stageDataDir)
	}
	if err != nil {
		op.d.setInUse(op.v.id(), wasInUse)
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
	if isFirst && isFinalError(err) { // after other errors the volume may be staged and in use by other pods, so the call is not undone
		err = errors.Join(err, op.undoStage(f))
	}
	return err
}

// unstageOtherLabel unstages the volume if it is, or may be, staged with an SELinux label that op.v cannot
// use. It returns an error if the volume is, or may be, published for other pods. If the volume is already
// published for the pod of op.v, the mount keeps its label, and op.v gets this label. f are the facts of
// the staged volume.
func (op *operation) unstageOtherLabel(ctx context.Context, f facts) error {
	state := f[keyState]
	conflict := op.v.SELinux.CheckOther(f[keySELinux])
	if conflict == nil || state == stateAnnounced || op.d.isFromEarlierBoot(state) || op.v.Block {
		return nil
	}
	switch isPublished, err := isMounted(op.p.target); {
	case err != nil:
		return err
	case isPublished:
		op.v.SELinux.Context = f[keySELinux]
		return nil
	}
	if state == "" { // a kubelet staged the volume, possibly during an earlier boot
		if isStaged, err := isMounted(op.p.stagingPath); !isStaged || err != nil {
			return err
		}
	}
	s := stagedVolume{op.v.id(), f, op.p.stageDataDir, op.p.stagingPath, ""}
	others, err := op.d.readUsageExcept(op.v.Pod.UID)
	switch {
	case err != nil:
		return err
	case others.published[s.VolumeID]:
		return conflict
	}
	if err := others.unknownUse(s); err != nil {
		return err
	}
	if err := op.d.callUnstage(ctx, s); err != nil {
		return err
	}
	if err := s.checkUnmounted(); err != nil {
		return err
	}
	f[keyState] = op.d.begunState()
	f.setLabel("")
	return f.save(op.p.stageDataDir)
}

// undoStage removes the staging path and the facts of a volume that the driver failed to stage.
func (op *operation) undoStage(f facts) error {
	if isMount, err := isMounted(op.p.stagingPath); isMount || err != nil {
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

// isFinalError reports whether err is the error of a call that the driver has finished processing.
func isFinalError(err error) bool {
	e, ok := errors.AsType[*callError](err)
	return ok && !e.IsUncertain
}
