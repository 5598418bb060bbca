package stats

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/cadvisor/lib/container"
	"github.com/google/cadvisor/lib/container/common"
	"github.com/google/cadvisor/lib/fs"
	"github.com/google/cadvisor/lib/fs/btrfs"
	"github.com/google/cadvisor/lib/fs/vfs"
	"github.com/google/cadvisor/lib/machine"
	"github.com/google/cadvisor/lib/model"
	"github.com/google/cadvisor/lib/utils/sysfs"

	"podd/manifest/order"
)

// maxMachineAge is how long the hardware information is reused. cAdvisor reads it at the same
// interval.
const maxMachineAge = 5 * time.Minute

// init registers only the plugins for file systems on disks, so that no other file systems
// are read. Unlike the kubelet, podd omits file systems in memory and the layers of
// containers, because their number grows with the pods. podd omits network file systems
// because an unresponsive server would block the reader.
func init() {
	for name, plugin := range map[string]fs.FsPlugin{"vfs": vfs.NewPlugin(), "btrfs": btrfs.NewPlugin()} {
		if err := fs.RegisterPlugin(name, plugin); err != nil {
			panic(err) // only if two plugins have the same name
		}
	}
}

// readMachine reads the hardware information.
func readMachine() (*model.MachineInfo, error) {
	disks, err := fs.NewFsInfo(fs.Context{})
	if err != nil {
		return nil, err
	}
	return machine.Info(sysfs.NewRealSysFs(), disks, true)
}

// A machineInfo contains hardware information that has been read. It implements
// model.MachineInfoFactory, so that cAdvisor's library does not read it again.
type machineInfo struct{ *model.MachineInfo }

// GetMachineInfo implements model.MachineInfoFactory.
func (k machineInfo) GetMachineInfo() (*model.MachineInfo, error) { return k.MachineInfo, nil }

// GetVersionInfo implements model.MachineInfoFactory.
func (k machineInfo) GetVersionInfo() (*model.VersionInfo, error) { return &model.VersionInfo{}, nil }

// readNode reads the root cgroup, the network of the host and the host's file systems.
func (h *hierarchy) readNode(m *model.MachineInfo) (*model.ContainerInfo, error) {
	info, err := h.read("/", 1)
	if err != nil {
		return nil, err
	}
	info.Spec.HasMemory = true
	info.Spec.Memory.Limit, info.Spec.Memory.SwapLimit = m.MemoryCapacity, m.SwapCapacity
	if !h.metrics.Has(container.DiskUsageMetrics) {
		return info, nil
	}
	_, filesystems, err := readFilesystems()
	if err != nil {
		return nil, err
	}
	info.Spec.HasFilesystem = true
	for i := range filesystems {
		info.Stats[0].Filesystem = append(info.Stats[0].Filesystem, filesystem(&filesystems[i]))
	}
	return info, nil
}

// readFilesystems reads the usage of all file systems on disks. The first result has their labels and
// mount points.
func readFilesystems() (fs.FsInfo, []fs.Fs, error) {
	disks, err := fs.NewFsInfo(fs.Context{})
	if err != nil {
		return nil, nil, err
	}
	filesystems, err := disks.GetGlobalFsInfo()
	return disks, filesystems, err
}

// Filesystems returns the usage of the file systems on disks, sorted by device. The file system at /
// has the label "root". If uuid is not "", only the file system with this UUID is returned. The result
// is not nil.
func (s *Sampler) Filesystems(uuid string) ([]model.FsInfo, error) {
	disks, filesystems, err := readFilesystems()
	if err != nil {
		return nil, fmt.Errorf("reading the usage of file systems: %w", err)
	}
	only := ""
	if uuid != "" {
		device, err := disks.GetDeviceInfoByFsUUID(uuid)
		if err != nil {
			return []model.FsInfo{}, nil // there is no such file system
		}
		only = device.Device
	}
	infos := []model.FsInfo{}
	for i := range filesystems {
		if f := &filesystems[i]; only == "" || f.Device == only {
			infos = append(infos, filesystemInfo(disks, f, time.Now()))
		}
	}
	order.Stable(infos, func(a, b model.FsInfo) int { return strings.Compare(a.Device, b.Device) })
	return infos, nil
}

func filesystemInfo(disks fs.FsInfo, f *fs.Fs, at time.Time) model.FsInfo {
	// Neither of the two functions fails for a device that disks has returned.
	mountpoint, _ := disks.GetMountpointForDevice(f.Device)
	labels, _ := disks.GetLabelsForDevice(f.Device)
	slices.Sort(labels)
	return model.FsInfo{
		Timestamp: at, Device: toValidUTF8(f.Device), Mountpoint: toValidUTF8(mountpoint), Labels: labels,
		Capacity: f.Capacity, Available: f.Available, Usage: f.Capacity - f.Free, Inodes: f.Inodes, InodesFree: f.InodesFree,
	}
}

func filesystem(f *fs.Fs) model.FsStats {
	d := &f.DiskStats
	s := model.FsStats{
		Device: f.Device, Type: f.Type.String(), Limit: f.Capacity, Usage: f.Capacity - f.Free, Available: f.Available,
		HasInodes:      f.Inodes != nil && f.InodesFree != nil,
		ReadsCompleted: d.ReadsCompleted, ReadsMerged: d.ReadsMerged, SectorsRead: d.SectorsRead, ReadTime: d.ReadTime,
		WritesCompleted: d.WritesCompleted, WritesMerged: d.WritesMerged, SectorsWritten: d.SectorsWritten, WriteTime: d.WriteTime,
		IoInProgress: d.IoInProgress, IoTime: d.IoTime, WeightedIoTime: d.WeightedIoTime,
	}
	if s.HasInodes {
		s.Inodes, s.InodesFree = *f.Inodes, *f.InodesFree
	}
	return s
}

// nameDevices sets the device names of the disks in a cgroup's statistics.
func nameDevices(m *model.MachineInfo, s *model.ContainerStats) {
	if s.DiskIo != nil {
		common.AssignDeviceNamesToDiskStats((*common.MachineInfoNamer)(m), s.DiskIo)
	}
}
