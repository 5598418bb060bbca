package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"podd/manifest/disk"
)

// attachFC returns the devices of a Fibre Channel disk. If there are none, it scans the adapters.
func (t *target) attachFC(ctx context.Context, v Volume) ([]string, error) {
	if err := t.save(record{FC: v.FC}); err != nil {
		return nil, err
	}
	h := t.m.Host
	devices, err := h.fcDevices(*v.FC)
	if err != nil || len(devices) > 0 && (v.pathCount() == 1 || h.anyMultipath(devices)) {
		return devices, err
	}
	if err := h.scanAdapters(ctx); err != nil {
		return nil, err
	}
	// After a scan, udev needs some time to create the links.
	if _, err := poll(ctx, deviceTimeout, func() (bool, error) {
		devices, err = h.fcDevices(*v.FC)
		return len(devices) > 0, err
	}); err != nil {
		return nil, err
	}
	if len(devices) == 0 {
		return nil, fmt.Errorf("no adapter of this node has found the Fibre Channel disk within %s (links in %s); check the zoning and the LUN mapping", deviceTimeout, filepath.Join(h.Dev, "disk"))
	}
	return devices, nil
}

func (h Host) anyMultipath(devices []string) bool {
	return slices.ContainsFunc(devices, func(device string) bool {
		dm, _ := h.multipathDevice(device)
		return dm != ""
	})
}

// fcDevices returns the names of the SCSI devices of a disk, according to the links of udev. If a
// link points to a dm-multipath device, the result contains the paths of that device.
func (h Host) fcDevices(d disk.FC) ([]string, error) {
	var devices []string
	for _, links := range []struct {
		dir     string
		matches func(string) bool
	}{{"by-path", d.MatchesPath}, {"by-id", d.MatchesID}} {
		dir := filepath.Join(h.Dev, "disk", links.dir)
		linkNames, err := names(dir)
		if err != nil {
			return nil, err
		}
		for _, link := range linkNames {
			if !links.matches(link) {
				continue
			}
			device, err := filepath.EvalSymlinks(filepath.Join(dir, link))
			if errors.Is(err, fs.ErrNotExist) {
				continue // the device has been removed
			}
			if err != nil {
				return nil, err
			}
			if filepath.Dir(device) != filepath.Clean(h.Dev) {
				return nil, fmt.Errorf("the link %s points to %s, which is no device in %s", filepath.Join(dir, link), device, h.Dev)
			}
			paths, err := h.pathsOf(filepath.Base(device))
			if err != nil {
				return nil, err
			}
			devices = append(devices, paths...)
		}
	}
	slices.Sort(devices)
	return slices.Compact(devices), nil
}

// pathsOf returns the names of the path devices of a dm-multipath device. For any other device, it
// returns the name of the device.
func (h Host) pathsOf(device string) ([]string, error) {
	if !h.isMultipath(device) {
		return []string{device}, nil
	}
	return names(filepath.Join(h.Sys, "block", device, "slaves"))
}

// scanAdapters scans the Fibre Channel adapters. If the kernel reports none, it scans all SCSI
// adapters except those of iSCSI sessions, because a scan of a session would add the LUNs of other
// volumes.
func (h Host) scanAdapters(ctx context.Context) error {
	hosts, err := names(filepath.Join(h.Sys, "class/fc_host"))
	if err != nil {
		return err
	}
	if len(hosts) == 0 {
		if hosts, err = names(filepath.Join(h.Sys, "class/scsi_host")); err != nil {
			return err
		}
		sessions, err := names(filepath.Join(h.Sys, "class/iscsi_host"))
		if err != nil {
			return err
		}
		hosts = slices.DeleteFunc(hosts, func(host string) bool { return slices.Contains(sessions, host) })
	}
	var errs []error
	for _, host := range hosts {
		err := h.write(ctx, filepath.Join(h.Sys, "class/scsi_host", host, "scan"), "- - -")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("scanning the adapter %s: %w", host, err))
		}
	}
	if len(errs) == len(hosts) { // an unresponsive adapter must not prevent the use of the others
		return errors.Join(errs...)
	}
	return nil
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
