package csidriver

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// volumePath returns the path of a volume, and creates the volume if necessary. The volume is a
// file if block is true, and otherwise a directory.
func (s *service) volumePath(handle string, block bool) (string, error) {
	if handle == "" || filepath.Base(handle) != handle {
		return "", status.Errorf(codes.InvalidArgument, "invalid volume handle %q", handle)
	}
	dir := s.FilesDir(handle)
	if !block {
		return dir, os.MkdirAll(dir, 0o777)
	}
	if s.Device != "" {
		return s.Device, nil
	}
	f, err := os.OpenFile(dir+".img", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	return dir + ".img", errors.Join(f.Truncate(1<<20), f.Close())
}

// bind creates a bind mount of a file or directory at target, unless target is already a mount
// point.
func bind(source, target string, readOnly bool) error {
	if isMountPoint, err := isMounted(target); isMountPoint || err != nil {
		return err
	}
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = os.MkdirAll(target, 0o750)
	} else {
		var f *os.File
		if f, err = os.OpenFile(target, os.O_CREATE, 0o600); err == nil {
			err = f.Close()
		}
	}
	if err != nil {
		return err
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil || !readOnly {
		return err
	}
	return unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

// unbind removes the mount and the mount point that bind has created.
func unbind(target string) error {
	isMountPoint, err := isMounted(target)
	if err != nil {
		return err
	}
	if isMountPoint {
		if err := unix.Unmount(target, 0); err != nil {
			return err
		}
	}
	return ignoreNotExist(os.Remove(target))
}

func isMounted(path string) (bool, error) {
	table, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(path))
	return len(table) > 0, err
}

// NodeStageVolume implements the node service. It does nothing for a device.
func (s *service) NodeStageVolume(_ context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	block := r.GetVolumeCapability().GetBlock() != nil
	source, err := s.volumePath(r.GetVolumeId(), block)
	if err == nil && !block {
		err = bind(source, r.GetStagingTargetPath(), false)
	}
	return &csi.NodeStageVolumeResponse{}, err
}

// NodeUnstageVolume implements the node service.
func (s *service) NodeUnstageVolume(_ context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if isStaged, err := isMounted(r.GetStagingTargetPath()); err != nil || !isStaged {
		return &csi.NodeUnstageVolumeResponse{}, err
	}
	return &csi.NodeUnstageVolumeResponse{}, unix.Unmount(r.GetStagingTargetPath(), 0)
}

// NodePublishVolume implements the node service.
func (s *service) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	block := r.GetVolumeCapability().GetBlock() != nil
	source, err := s.volumePath(r.GetVolumeId(), block)
	if err != nil {
		return nil, err
	}
	if staged := r.GetStagingTargetPath(); staged != "" && !block {
		isStaged, err := isMounted(staged)
		if err != nil {
			return nil, err
		}
		if !isStaged {
			return nil, status.Errorf(codes.FailedPrecondition, "publishing a volume: the volume is not staged at %s", staged)
		}
		source = staged
	}
	return &csi.NodePublishVolumeResponse{}, bind(source, r.GetTargetPath(), r.GetReadonly())
}

// NodeUnpublishVolume implements the node service.
func (s *service) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	return &csi.NodeUnpublishVolumeResponse{}, unbind(r.GetTargetPath())
}

// NodeExpandVolume implements the node service.
func (s *service) NodeExpandVolume(_ context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	return &csi.NodeExpandVolumeResponse{CapacityBytes: r.GetCapacityRange().GetRequiredBytes()}, nil
}

// NodeGetVolumeStats implements the node service.
func (s *service) NodeGetVolumeStats(_ context.Context, r *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	return &csi.NodeGetVolumeStatsResponse{
		Usage: []*csi.VolumeUsage{
			{Unit: csi.VolumeUsage_BYTES, Total: 1 << 30, Used: 1 << 20, Available: 1<<30 - 1<<20},
			{Unit: csi.VolumeUsage_INODES, Total: 1000, Used: 10, Available: 990},
		},
	}, nil
}
