package meter

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/rootdir"
	"podd/reconcile/collect"
	"podd/reconcile/node"
	"podd/reconcile/render"
	"podd/reconcile/volume"
	"podd/reconcile/volume/csi"
	"podd/runtime"
	"podd/runtime/cri"
	"podd/runtime/safepath"
	"podd/runtime/stats"
	"podd/server"
	"podd/server/metrics"
)

// A diskMeter measures the disk usage of pods.
type diskMeter struct {
	rootDir string // podd's root directory
	node    render.Node
	runtime *cri.Client
	state   server.Viewer
	csi     *csi.Drivers // nil without CSI
	disks   volume.CallLimiter
	// onVolumeMeasured is Options.OnVolumeMeasured.
	onVolumeMeasured func(source string, took time.Duration)
}

// runtimeTimeout limits the time for reading the usage of images and layers. If the runtime does
// not respond in time, the result omits this usage.
const runtimeTimeout = 10 * time.Second

// measure implements stats.Options.MeasureDisk. It omits values that it cannot measure, because a pod
// may disappear at any time, and partial results are better than none.
func (m *diskMeter) measure(ctx context.Context, pods []stats.Pod) (*stats.Disk, error) {
	root, err := node.StatFilesystem(m.rootDir)
	if err != nil {
		return nil, err
	}
	d := &stats.Disk{At: time.Now(), Pods: map[types.UID]stats.PodDisk{}}
	usedBytes, usedInodes := root.UsedBytes, root.Inodes-root.InodesFree
	d.Root = stats.Filesystem{UsedBytes: &usedBytes, InodesUsed: &usedInodes, Space: &root.Space, At: d.At}
	runtimeCtx, cancel := context.WithTimeout(ctx, runtimeTimeout)
	defer cancel()
	d.Images, d.Layers = m.imageFilesystems(runtimeCtx)
	usages := m.usageByPod(runtimeCtx)
	v := m.state.View()
	for i := range pods {
		if ctx.Err() != nil {
			break
		}
		if p := v.Pod(server.Key(pods[i].Key)); p != nil && p.Pod.UID == pods[i].UID {
			pod := m.podDisk(ctx, &pods[i], p.Pod, usages[p.Pod.UID], d.Root)
			if usages == nil {
				pod.Layers = nil // unknown
			}
			d.Pods[pods[i].UID] = pod
		}
	}
	d.MaxPIDs, d.ProcessCount = node.ReadMaxPids(), node.CountProcesses()
	return d, nil
}

// imageFilesystems returns the file systems of images and of container layers. Each is nil if the
// runtime does not report it.
func (m *diskMeter) imageFilesystems(ctx context.Context) (images, layers *stats.Filesystem) {
	i, l, err := m.runtime.ImageFsInfo(ctx)
	if err != nil {
		return nil, nil
	}
	first := func(filesystems []runtime.Filesystem) *stats.Filesystem {
		if len(filesystems) == 0 {
			return nil
		}
		f := filesystemStats(&filesystems[0], time.Now())
		return &f
	}
	return first(i), first(l)
}

// usageByPod returns the usage of all containers, also of exited ones, by pod UID and container ID. It
// returns nil if the runtime did not respond.
func (m *diskMeter) usageByPod(ctx context.Context) map[types.UID]map[string]runtime.Usage {
	usages, err := m.runtime.ContainerUsages(ctx, m.node.OwnInstances())
	if errors.Is(err, runtime.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	byPod := map[types.UID]map[string]runtime.Usage{} // not nil if the runtime has responded, but does not report usage
	for id, u := range usages {
		if byPod[u.PodUID] == nil {
			byPod[u.PodUID] = map[string]runtime.Usage{}
		}
		byPod[u.PodUID][id] = u
	}
	return byPod
}

// filesystemStats converts the runtime's statistics of a file system.
func filesystemStats(f *runtime.Filesystem, at time.Time) stats.Filesystem {
	out := stats.Filesystem{UsedBytes: &f.UsedBytes, InodesUsed: &f.InodesUsed, At: at}
	if s, err := node.StatFilesystem(f.Mountpoint); err == nil {
		out.Space = &s.Space
	}
	return out
}

// podDisk measures the logs, layers and volumes of a pod. usages contains the usage of its containers
// by ID, and root describes the file system of the root directory.
func (m *diskMeter) podDisk(ctx context.Context, p *stats.Pod, pod *v1.Pod, usages map[string]runtime.Usage, root stats.Filesystem) stats.PodDisk {
	d := stats.PodDisk{Logs: map[string]stats.Filesystem{}, Layers: map[string]stats.Filesystem{}}
	dir := m.node.PodLogDir(p.Key, p.UID)
	part := func(u safepath.Usage) stats.Filesystem {
		bytes, inodes := uint64(max(u.Bytes, 0)), uint64(max(u.Inodes, 0))
		return stats.Filesystem{UsedBytes: &bytes, InodesUsed: &inodes, IsLowerBound: u.Excess != "", Space: root.Space, At: time.Now()}
	}
	for c := range server.ContainerStatuses(pod) {
		if u, err := collect.MeasureFiles(ctx, dir, c.Name); err == nil {
			d.Logs[c.Name] = part(u)
		}
	}
	for id, u := range usages {
		if u.WritableLayer != nil {
			d.Layers[id] = filesystemStats(u.WritableLayer, u.WritableLayerAt)
		}
	}
	pods := volume.Dir{Root: rootdir.PodsPath(m.rootDir), ClaimsDir: rootdir.ClaimsPath(m.rootDir), CSI: m.csi, CallLimiter: &m.disks}
	volumes, _ := pods.Measure(ctx, pod)
	for _, v := range volumes {
		m.onVolumeMeasured(v.Source, v.Took)
		f := part(v.Used)
		f.Space = &stats.Space{CapacityBytes: v.Capacity, AvailableBytes: v.Available, Inodes: v.Inodes, InodesFree: v.InodesFree}
		d.Volumes = append(d.Volumes, stats.Volume{Name: v.Name, Claim: v.Claim, Ephemeral: v.CountsAsEphemeral, Filesystem: f})
	}
	if files, err := pods.FileUsage(p.UID); err == nil {
		usage := files.Hosts
		for _, u := range files.Messages {
			usage.Bytes, usage.Inodes = usage.Bytes+u.Bytes, usage.Inodes+u.Inodes
		}
		f := part(usage)
		d.ManagedFiles = &f
	}
	d.At, d.Incomplete = time.Now(), ctx.Err() != nil
	return d
}

// Disks returns the disk usage of pods for podd's metrics. If a measurement is in progress, Disks
// returns the previous usage, because a gap in the metrics would prevent alerts.
func (m *Meter) Disks(ctx context.Context) (*metrics.DiskUsage, error) {
	disk, err := m.sampler.MeasureDisksWithin(ctx)
	if err != nil {
		return nil, err
	}
	return diskMetrics(disk, m.state.View()), nil
}

// diskMetrics returns the metrics of the claims of all pods in v and of the logs of their running
// containers.
func diskMetrics(disk *stats.Disk, v *server.View) *metrics.DiskUsage {
	out := &metrics.DiskUsage{}
	for _, p := range v.Pods {
		usage, ok := disk.Pods[p.Pod.UID]
		if !ok {
			continue
		}
		for _, vol := range usage.Volumes {
			if vol.Claim == "" || vol.Space == nil || vol.UsedBytes == nil || vol.InodesUsed == nil {
				continue
			}
			out.Claims = append(out.Claims, metrics.ClaimUsage{
				Namespace: p.Pod.Namespace, Name: vol.Claim,
				CapacityBytes: float64(vol.CapacityBytes), AvailableBytes: float64(vol.AvailableBytes), UsedBytes: float64(*vol.UsedBytes),
				Inodes: float64(vol.Inodes), InodesFree: float64(vol.InodesFree), InodesUsed: float64(*vol.InodesUsed),
			})
		}
		for c := range server.ContainerStatuses(p.Pod) {
			if used := usage.Logs[c.Name].UsedBytes; c.State.Running != nil && used != nil {
				out.Logs = append(out.Logs, metrics.LogUsage{
					Namespace: p.Pod.Namespace, Pod: p.Pod.Name, UID: string(p.Pod.UID), Container: c.Name, Bytes: float64(*used),
				})
			}
		}
	}
	return out
}
