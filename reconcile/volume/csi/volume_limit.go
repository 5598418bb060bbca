package csi

import "context"

// UpdateMaxVolumes calls NodeGetInfo of a registered driver and stores the maximum number of volumes in
// the result of Registered. It ignores the rest of the response, because a CSINode cannot change it. If
// no driver with this name is registered, UpdateMaxVolumes does nothing.
func (d *Drivers) UpdateMaxVolumes(ctx context.Context, name string) error {
	r, driver := d.findDriver(name)
	if r == nil {
		return nil
	}
	if err := d.getInfoOnce(ctx, &driver); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.drivers[name] != r || r.MaxVolumes == driver.MaxVolumes {
		return nil
	}
	d.o.Log.Info("maximum number of volumes of a CSI driver changed", "driver", name, "before", r.MaxVolumes, "after", driver.MaxVolumes)
	r.MaxVolumes = driver.MaxVolumes
	signalChange(&d.driversChanged)
	return nil
}
