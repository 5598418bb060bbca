package main

import (
	"context"
	"path/filepath"

	"podd/reconcile/event"
	"podd/runtime/cri"
)

// keepNode is that of the daemon.
func (d *podd) keepNode(ctx context.Context) error {
	kernel := openKernelLog("/dev/kmsg")
	defer kernel.close()
	k := &nodeKeeper{
		name: d.cfg.NodeName, kernel: kernel, images: d.client.ListImages, most: d.cfg.MaxStatusImages, log: d.log,
		room: func(ctx context.Context) (room, error) { return roomOf(ctx, d.cfg.RootDir, d.client) },
		seen: pressures{by: d.cfg.Pressure},
		tell: func(all []event.Event) { d.events.Add(notes(all)...) },
		show: func(ctx context.Context, f *nodeFacts) {
			d.view.machine.latest.Store(f)
			_ = d.router.Renew(ctx) // it ends with podd
		},
	}
	return k.run(ctx, d.pulled)
}

// roomOf is what the machine has left now; where images are only the runtime knows,
// which may not be there.
func roomOf(ctx context.Context, root string, client *cri.Client) (room, error) {
	memory, err := memoryRoom("/proc/meminfo")
	if err != nil {
		return room{}, err
	}
	pids := mostPids("/proc/sys/kernel")
	r := room{memory: memory, pids: stock{pids, max(pids-processes("/proc/loadavg"), 0)}}
	disk, err := space(root)
	if err != nil {
		return room{}, err
	}
	r.disk = diskRoomOf(disk)
	limited, cancel := context.WithTimeout(ctx, runtimeTime)
	defer cancel()
	if images, _, err := client.ImageFsInfo(limited); err == nil && len(images) > 0 {
		if disk, err := space(images[0].Mountpoint); err == nil {
			r.images = diskRoomOf(disk)
		}
	}
	return r, nil
}

// memoryRoom counts as left what the kernel can take back at once, as a kubelet.
func memoryRoom(path string) (stock, error) {
	var all [3]int64
	for i, field := range []string{"MemTotal", "MemFree", "Inactive(file)"} {
		var err error
		if all[i], err = memInfo(path, field); err != nil {
			return stock{}, err
		}
	}
	return stock{whole: all[0], left: all[1] + all[2]}, nil
}

func diskRoomOf(s fileSystem) diskRoom {
	return diskRoom{
		bytes: stock{int64(s.Capacity), int64(s.Available)}, inodes: stock{int64(s.Inodes), int64(s.InodesFree)}, known: true,
	}
}

// tellReboot tells of a machine that was started anew since podd last ran on it.
func (d *podd) tellReboot() {
	id := firstLine("/proc/sys/kernel/random/boot_id")
	is, err := rebooted(filepath.Join(d.cfg.RootDir, "boot_id"), id)
	if err != nil {
		d.log.Warn("a reboot will not be told of", "err", err)
	}
	if is {
		e := event.Rebooted(d.cfg.NodeName, id, d.pulse.began)
		d.events.Add(notes([]event.Event{e})...)
	}
}
