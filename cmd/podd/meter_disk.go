package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/config"
	"podd/manifest"
	"podd/reconcile/collect"
	"podd/reconcile/render"
	"podd/reconcile/volume"
	"podd/reconcile/volume/csi"
	"podd/runtime"
	"podd/runtime/beneath"
	"podd/runtime/cri"
	"podd/runtime/stats"
	"podd/server"
	"podd/server/metrics"
)

// diskMeter measures what pods have on disk.
type diskMeter struct {
	cfg     *config.Config
	node    render.Node
	runtime *cri.Client
	view    server.Viewer
	csi     *csi.Drivers // nil: there are none
}

// runtimeTime is how long the runtime may take to tell what images and layers
// take; without its answer the rest is told.
const runtimeTime = 10 * time.Second

// measure implements stats.Options.Disk. It leaves out what cannot be measured: a
// pod may vanish meanwhile, and no answer at all helps nobody.
func (m *diskMeter) measure(ctx context.Context, pods []stats.Pod) (*stats.Disk, error) {
	root, err := space(m.cfg.RootDir)
	if err != nil {
		return nil, err
	}
	d := &stats.Disk{At: time.Now(), Pods: map[types.UID]stats.PodDisk{}}
	used, inodes := root.used, root.Inodes-root.InodesFree
	d.Root = stats.Filesystem{Used: &used, InodesUsed: &inodes, Space: &root.Space, At: d.At}
	limited, cancel := context.WithTimeout(ctx, runtimeTime)
	defer cancel()
	d.Images, d.Layers = m.ofImages(limited)
	layers := m.layers(limited)
	v := m.view.View()
	for i := range pods {
		if ctx.Err() != nil {
			break
		}
		if p := v.Pod(server.Key(pods[i].Key)); p != nil && p.Pod.UID == pods[i].UID {
			d.Pods[pods[i].UID] = m.pod(ctx, &pods[i], p.Pod, layers, d.Root)
		}
	}
	d.MaxPIDs, d.Processes = mostPids("/proc/sys/kernel"), processes("/proc/loadavg")
	return d, nil
}

func (m *diskMeter) ofImages(ctx context.Context) (images, layers *stats.Filesystem) {
	i, l, err := m.runtime.ImageFsInfo(ctx)
	if err != nil {
		return nil, nil
	}
	first := func(all []runtime.Filesystem) *stats.Filesystem {
		if len(all) == 0 {
			return nil
		}
		f := told(&all[0], time.Now())
		return &f
	}
	return first(i), first(l)
}

// layers is what the runtime tells of containers, by id; nil: it did not answer.
func (m *diskMeter) layers(ctx context.Context) map[string]runtime.Usage {
	told, err := m.runtime.ContainerUsages(ctx, m.node.Instance)
	if err == nil || errors.Is(err, runtime.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		return told
	}
	return map[string]runtime.Usage{} // nor will it tell the next time
}

// told is a part of a file system as the runtime measured it.
func told(f *runtime.Filesystem, at time.Time) stats.Filesystem {
	out := stats.Filesystem{Used: &f.UsedBytes, InodesUsed: &f.InodesUsed, At: at}
	if s, err := space(f.Mountpoint); err == nil {
		out.Space = &s.Space
	}
	return out
}

func (m *diskMeter) pod(ctx context.Context, p *stats.Pod, spec *v1.Pod, layers map[string]runtime.Usage, root stats.Filesystem) stats.PodDisk {
	d := stats.PodDisk{Logs: map[string]stats.Filesystem{}}
	if layers != nil {
		d.Layers = map[string]stats.Filesystem{}
	}
	dir := render.LogDirectory(&manifest.Pod{Key: p.Key, UID: p.UID, Spec: spec}, m.node)
	part := func(u beneath.Usage) stats.Filesystem {
		bytes, inodes := uint64(max(u.Bytes, 0)), uint64(max(u.Inodes, 0))
		return stats.Filesystem{Used: &bytes, InodesUsed: &inodes, Space: root.Space, At: time.Now()}
	}
	for _, c := range p.Containers {
		if u, err := collect.Files(ctx, dir, c.Name); err == nil {
			d.Logs[c.Name] = part(u)
		}
		if u := layers[c.ID]; u.Layer != nil {
			d.Layers[c.ID] = told(u.Layer, u.LayerAt)
		}
	}
	volumes, _ := volume.Dir{Root: podsDir(m.cfg.RootDir), Claims: claimsDir(m.cfg), CSI: m.csi}.Measure(ctx, spec)
	for _, v := range volumes {
		f := part(v.Used)
		f.Space = &stats.Space{Capacity: v.Capacity, Available: v.Available, Inodes: v.Inodes, InodesFree: v.InodesFree}
		d.Volumes = append(d.Volumes, stats.Volume{Name: v.Name, Claim: v.Claim, Own: v.Own, Abnormal: v.Abnormal, Filesystem: f})
	}
	if u, err := hostsFile(filepath.Join(podsDir(m.cfg.RootDir), string(p.UID), "etc-hosts")); err == nil {
		f := part(u)
		d.Hosts = &f
	}
	d.At, d.Cut = time.Now(), ctx.Err() != nil
	return d
}

// hostsFile is what a pod's /etc/hosts has on disk.
func hostsFile(path string) (beneath.Usage, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return beneath.Usage{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return beneath.Usage{}, fs.ErrNotExist
	}
	return beneath.Usage{Bytes: st.Blocks * 512, Inodes: 1}, nil
}

// fileSystem is a whole one.
type fileSystem struct {
	stats.Space
	used uint64
}

func space(dir string) (fileSystem, error) {
	if dir == "" {
		return fileSystem{}, errors.New("the runtime names no file system")
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fileSystem{}, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	size := uint64(st.Bsize)
	return fileSystem{
		stats.Space{Capacity: st.Blocks * size, Available: st.Bavail * size, Inodes: st.Files, InodesFree: st.Ffree},
		(st.Blocks - st.Bfree) * size,
	}, nil
}

// processes is how many the machine has, threads each; 0: unknown. The text is
// "0.20 0.18 0.12 1/80 11206".
func processes(path string) int64 {
	text, err := os.ReadFile(path)
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 4 {
		return 0
	}
	_, all, _ := strings.Cut(fields[3], "/")
	n, _ := strconv.ParseInt(all, 10, 64)
	return n
}

// podDisks is what pods have on disk, for whoever scrapes podd's metrics: a series
// with gaps sets off no alert.
func (d *podd) podDisks(ctx context.Context) (*metrics.Disks, error) {
	disk, err := d.meter.sampler.DiskSoon(ctx)
	if err != nil {
		return nil, err
	}
	return scrapedDisks(disk, d.view.latest.View()), nil
}

// scrapedDisks are the claims and logs of the pods of v.
func scrapedDisks(disk *stats.Disk, v *server.View) *metrics.Disks {
	out := &metrics.Disks{}
	for _, p := range v.Pods {
		of, ok := disk.Pods[p.Pod.UID]
		if !ok {
			continue
		}
		for _, vol := range of.Volumes {
			if vol.Claim == "" || vol.Space == nil || vol.Used == nil || vol.InodesUsed == nil {
				continue
			}
			out.Claims = append(out.Claims, metrics.Claim{
				Namespace: p.Pod.Namespace, Name: vol.Claim,
				Capacity: float64(vol.Capacity), Available: float64(vol.Available), Used: float64(*vol.Used),
				Inodes: float64(vol.Inodes), InodesFree: float64(vol.InodesFree), InodesUsed: float64(*vol.InodesUsed),
				Abnormal: vol.Abnormal,
			})
		}
		for container, f := range of.Logs {
			if f.Used != nil {
				out.Logs = append(out.Logs, metrics.Log{
					Namespace: p.Pod.Namespace, Pod: p.Pod.Name, UID: string(p.Pod.UID), Container: container, Bytes: float64(*f.Used),
				})
			}
		}
	}
	return out
}
