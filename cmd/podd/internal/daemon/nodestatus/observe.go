package nodestatus

import (
	"context"
	"time"

	"podd/cmd/podd/internal/host"
	"podd/runtime/cri"
)

// runtimeTimeout limits the request for the image file system.
const runtimeTimeout = 10 * time.Second

// observe returns the available resources of the node. If the runtime does not respond, the image
// file system is not observed, because only the runtime can report its mount point. isKnown is then
// false for this file system.
func observe(ctx context.Context, root string, client *cri.Client) (observations, error) {
	memory, err := observeMemory("/proc/meminfo")
	if err != nil {
		return observations{}, err
	}
	pids := host.ReadMaxPids("/proc/sys/kernel")
	r := observations{memory: memory, pids: observation{pids, max(pids-host.CountProcesses("/proc/loadavg"), 0)}}
	disk, err := host.StatFilesystem(root)
	if err != nil {
		return observations{}, err
	}
	r.disk = observeDisk(disk)
	limited, cancel := context.WithTimeout(ctx, runtimeTimeout)
	defer cancel()
	if images, _, err := client.ImageFsInfo(limited); err == nil && len(images) > 0 {
		if disk, err := host.StatFilesystem(images[0].Mountpoint); err == nil {
			r.images = observeDisk(disk)
		}
	}
	return r, nil
}

// observeMemory returns the memory of the host. path is /proc/meminfo. Like the kubelet,
// observeMemory counts inactive page cache as available.
func observeMemory(path string) (observation, error) {
	var all [3]int64
	for i, field := range []string{"MemTotal", "MemFree", "Inactive(file)"} {
		var err error
		if all[i], err = host.ReadMemInfo(path, field); err != nil {
			return observation{}, err
		}
	}
	return observation{capacity: all[0], available: all[1] + all[2]}, nil
}

// observeDisk converts the statistics of a file system.
func observeDisk(s host.Filesystem) diskObservation {
	return diskObservation{
		bytes: observation{int64(s.CapacityBytes), int64(s.AvailableBytes)}, inodes: observation{int64(s.Inodes), int64(s.InodesFree)}, isKnown: true,
	}
}
