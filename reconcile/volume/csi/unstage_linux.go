package csi

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"podd/runtime/beneath"
)

// doubt is a volume that is staged and that somebody may use.
type doubt struct {
	stagedVolume
	err error
}

// orphans are the volumes that are staged and that no pod uses. What may be used is not
// among them.
func (d *Drivers) orphans() (all []stagedVolume, doubts []doubt, err error) {
	staged, err := d.staged()
	if err != nil || len(staged) == 0 {
		return nil, nil, err
	}
	by, err := d.used()
	if err != nil {
		return nil, nil, err
	}
	for _, s := range staged {
		switch is, err := by.has(s); {
		case err != nil:
			doubts = append(doubts, doubt{s, err})
		case !is:
			all = append(all, s)
		}
	}
	return all, doubts, nil
}

// unstage has a volume taken from this machine if no pod uses it now.
func (d *Drivers) unstage(ctx context.Context, s stagedVolume) error {
	end, err := d.take(ctx, s.Use)
	if err != nil {
		return err
	}
	defer end()
	now, _, err := d.orphans()
	if err != nil {
		return err
	}
	for _, o := range now {
		if o.dir == s.dir && o.Use == s.Use {
			return d.unstageOne(ctx, o)
		}
	}
	return nil
}

func (d *Drivers) unstageOne(ctx context.Context, s stagedVolume) error {
	if !s.announced() {
		if err := d.askUnstage(ctx, s); err != nil {
			return err
		}
	}
	elsewhere, err := d.elsewhere(s.Use, s.dir)
	if err != nil {
		return err
	}
	switch is, err := isMounted(s.staging); {
	case err != nil:
		return err
	case is:
		return fmt.Errorf("driver %s says that it took it away, and it is mounted at %s; see to the driver, or umount it", s.Driver, s.staging)
	}
	if err := remove(s.staging); err != nil {
		return err
	}
	if s.device == "" {
		if err := forget(s.dir); err != nil {
			return err
		}
	} else if err := d.removeDevice(ctx, s); err != nil {
		return err
	}
	d.setUse(s.Use, elsewhere)
	d.o.Log.Info("a volume of a CSI driver is used by no pod any more", "driver", s.Driver, "volume", s.Handle)
	return nil
}

func (d *Drivers) askUnstage(ctx context.Context, s stagedVolume) error {
	to, err := d.reach(s.Driver)
	if err != nil {
		return err
	}
	defer to.close()
	can, err := to.able(ctx)
	if err != nil || !can.stage() {
		return err
	}
	err = to.call(ctx, func(ctx context.Context) error {
		_, err := to.node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: s.Handle, StagingTargetPath: s.staging})
		return err
	})
	return unlessGone(err, s.staging)
}

// removeDevice removes what is kept of a device. The facts go last.
func (d *Drivers) removeDevice(ctx context.Context, s stagedVolume) error {
	if err := remove(filepath.Join(d.devices(), "publish", s.device)); err != nil {
		return err
	}
	all, err := beneath.Open(d.devices())
	if err != nil {
		return err
	}
	defer all.Close()
	volume, err := all.SubSameMount(s.device)
	if err != nil {
		return err
	}
	defer volume.Close()
	if err := volume.Empty(ctx, "data"); err != nil { // what a kubelet made
		return err
	}
	if err := forget(s.dir); err != nil {
		return err
	}
	return remove(filepath.Dir(s.dir))
}
