package csi

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"podd/runtime/safepath"
)

// An uncertainVolume is a staged volume for which podd cannot determine whether a pod uses it. err
// is the reason.
type uncertainVolume struct {
	stagedVolume
	err error
}

// unusedVolumes returns the staged volumes that no pod uses. uncertain contains the staged volumes
// for which podd cannot determine whether a pod uses them.
func (d *Drivers) unusedVolumes() (unusedVolumes []stagedVolume, uncertain []uncertainVolume, err error) {
	stagedVolumes, err := d.readStaged()
	if err != nil || len(stagedVolumes) == 0 {
		return nil, nil, err
	}
	u, err := d.readUsage()
	if err != nil {
		return nil, nil, err
	}
	for _, s := range stagedVolumes {
		switch isUsed, err := u.uses(s); {
		case err != nil:
			uncertain = append(uncertain, uncertainVolume{s, err})
		case !isUsed:
			unusedVolumes = append(unusedVolumes, s)
		}
	}
	return unusedVolumes, uncertain, nil
}

// unstage unstages a volume if no pod uses it. unstage checks this again, because a pod may have
// begun to use the volume.
func (d *Drivers) unstage(ctx context.Context, s stagedVolume) error {
	device := ""
	if s.device != "" {
		device = s.dir
	}
	unlock, err := d.lockVolume(ctx, s.VolumeID, device)
	if err != nil {
		return err
	}
	defer unlock()
	unusedVolumes, _, err := d.unusedVolumes()
	if err != nil {
		return err
	}
	for _, o := range unusedVolumes {
		if o.dir == s.dir && o.VolumeID == s.VolumeID {
			return d.unstageOne(ctx, o)
		}
	}
	return nil
}

// unstageOne unstages a volume and removes its files. The caller must hold the lock of the volume.
func (d *Drivers) unstageOne(ctx context.Context, s stagedVolume) error {
	if !s.isAnnounced() {
		if err := d.callUnstage(ctx, s); err != nil {
			return err
		}
	}
	stagedElsewhere, err := d.isStagedElsewhere(s.VolumeID, s.dir)
	if err != nil {
		return err
	}
	if err := s.checkUnmounted(); err != nil {
		return err
	}
	if err := remove(s.stagingPath); err != nil {
		return err
	}
	if s.device == "" {
		if err := removeFacts(s.dir); err != nil {
			return err
		}
	} else if err := d.removeDevice(ctx, s); err != nil {
		return err
	}
	d.setInUse(s.VolumeID, stagedElsewhere)
	d.o.Log.Info("volume unstaged because no pod uses it", "driver", s.Driver, "volume", s.Handle)
	return nil
}

// checkUnmounted returns an error if a volume is mounted that the driver has unstaged.
func (s stagedVolume) checkUnmounted() error {
	isMount, err := isMounted(s.stagingPath)
	if isMount && err == nil {
		err = fmt.Errorf("driver %s reported that it unstaged the volume, but it is still mounted at %s; check the driver, or unmount it", s.Driver, s.stagingPath)
	}
	return err
}

// callUnstage calls NodeUnstageVolume if the driver supports staging.
func (d *Drivers) callUnstage(ctx context.Context, s stagedVolume) error {
	session, err := d.openSession(s.Driver)
	if err != nil {
		return err
	}
	defer session.close()
	caps, err := session.capabilities(ctx)
	if err != nil || !caps.supportsStaging() {
		return err
	}
	err = session.call(ctx, func(ctx context.Context) error {
		_, err := session.nodeClient.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: s.Handle, StagingTargetPath: s.stagingPath})
		return err
	})
	return ignoreNotFound(err, s.stagingPath)
}

// removeDevice removes the files of a block device. It removes the data file last.
func (d *Drivers) removeDevice(ctx context.Context, s stagedVolume) error {
	if err := remove(filepath.Join(d.devicesDir(), "publish", s.device)); err != nil {
		return err
	}
	devices, err := safepath.Open(d.devicesDir())
	if err != nil {
		return err
	}
	defer devices.Close()
	volume, err := devices.SubSameMount(s.device)
	if err != nil {
		return err
	}
	defer volume.Close()
	if err := volume.RemoveContents(ctx, "data"); err != nil { // a kubelet created all files except data
		return err
	}
	if err := removeFacts(s.dir); err != nil {
		return err
	}
	return remove(filepath.Dir(s.dir))
}
