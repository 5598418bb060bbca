// Package eviction evicts pods that exceed their limits of local ephemeral storage, and pods of a
// node that is short of a resource.
//
//	pod directories, logs, writable layers ─▶ StorageLimiter ─▶ Router.Evict
//	amounts of the node, usage of pods     ─▶ Manager        ─▶ Router.Evict, node conditions
//
// Package pressure contains the rules by which a Manager decides. Neither part depends on the
// journal, or on a response of the runtime: a Manager knows the file systems of the runtime from an
// earlier response, and reads the memory usage of pods from their cgroups. If the runtime does not stop
// an evicted pod, the worker of the pod kills its processes; see package plan.
package eviction

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/collect"
	"podd/reconcile/eviction/pressure"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/reconcile/state"
	"podd/reconcile/volume"
	"podd/runtime"
	"podd/runtime/cri"
)

// checkInterval is the interval between measurements of the pods' disk usage. A kubelet uses the
// same interval.
const checkInterval = 10 * time.Second

// A StorageLimiter evicts pods that exceed the sizeLimit of an emptyDir or the
// ephemeral-storage limit of their containers. As in the kubelet, it does not evict critical pods.
type StorageLimiter struct {
	o                      StorageOptions
	hasLoggedMissingLayers bool                       // whether a warning was logged that the runtime reports no layers
	failures               map[podPart]measureFailure // the failures of the last call of check
	reportedProblems       []manifest.Problem         // the last argument of ReportProblems
}

// StorageOptions are the options of a StorageLimiter. Only ReportProblems may be nil.
type StorageOptions struct {
	Disk    volume.Dir             // the pod directories
	Node    render.Node            // contains the log directory and the instance IDs of the pods
	Reports func() []*state.Report // returns the current pods
	Router  evictor
	Layers  layerReader
	// HasImageDisk reports whether images or writable layers are in another file system than the pod
	// directories.
	HasImageDisk func(context.Context) (bool, error)
	Log          *slog.Logger
	// Restarts reports whether an evicted pod of a manifest on this node starts again; see
	// plan.Eviction.
	Restarts bool
	// ReportProblems is called when the problems change: of all pods that could not be measured
	// completely, and of all critical pods that exceed a limit.
	ReportProblems func(ctx context.Context, problems []manifest.Problem)
}

// NewStorageLimiter returns a StorageLimiter that does nothing before Run.
func NewStorageLimiter(o StorageOptions) *StorageLimiter { return &StorageLimiter{o: o} }

// evictor is the part of *reconcile.Router by which pods are evicted.
type evictor interface {
	Evict(ctx context.Context, key types.NamespacedName, evict plan.Eviction) error
}

// layerReader is the part of *cri.Client that a StorageLimiter uses.
type layerReader interface {
	WritableLayers(ctx context.Context, instances []string, uids []types.UID) (map[types.UID]cri.LayerUsage, error)
}

// Run checks the pods periodically until ctx is done.
func (k *StorageLimiter) Run(ctx context.Context) error {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		k.check(ctx)
	}
}

// A measurement is the disk usage of a pod in one call of check.
type measurement struct {
	report          *state.Report
	hasStorageLimit bool // whether a limit of ephemeral-storage applies
	usage           plan.DiskUse
	errsByPart      map[string]error // errors of the parts of the pod that could not be measured
	// unenforcedLimit is the limit that a critical pod exceeds; nil if there is none.
	unenforcedLimit *plan.ExceededLimit
}

// check measures the pods once, and evicts the reported version of each pod that exceeds a limit.
// It does not measure pods without a limit. After all other measurements, check calls the runtime
// once to measure the writable layers, because the runtime can be slow. The layers are measured
// only for pods that exceed no limit without their layers. If a container exceeds its limit with its
// layer, check calls the runtime again to find out whether the layer counts toward this limit.
func (k *StorageLimiter) check(ctx context.Context) {
	var measurements, needLayers []*measurement
	for _, r := range k.o.Reports() {
		m := k.measure(ctx, r)
		if m == nil {
			continue
		}
		measurements = append(measurements, m)
		if !k.evict(ctx, m) && m.hasStorageLimit {
			needLayers = append(needLayers, m)
		}
	}
	k.addLayers(ctx, needLayers)
	k.findImageDisk(ctx, needLayers)
	for _, m := range needLayers {
		k.evict(ctx, m)
	}
	if ctx.Err() == nil {
		k.reportProblems(ctx, append(k.recordFailures(measurements), unenforcedLimitProblems(measurements)...))
	}
}

// excessGracePeriod is the grace period of a pod that must release its resources at once. The value is
// that of the kubelet for evictions.
const excessGracePeriod = time.Second

// evict evicts a pod that exceeds a limit, even if the pod is already being deleted. If the pod is
// critical, evict only sets m.unenforcedLimit. It returns false if the pod exceeds no limit.
func (k *StorageLimiter) evict(ctx context.Context, m *measurement) bool {
	r := m.report
	exceeded := m.usage.ExceededLimit(&r.Pod.Spec)
	if exceeded == nil {
		return false
	}
	if pressure.IsProtected(r.Pod) {
		m.unenforcedLimit = exceeded
		return true
	}
	// Evict returns an error only if podd is stopping.
	_ = k.o.Router.Evict(ctx, r.Key, plan.Eviction{
		UID: r.Pod.UID, Hash: hashOf(r), Message: exceeded.Message(), StorageLimit: exceeded.Signal, Restarts: k.o.Restarts,
	})
	return true
}

// measure measures a pod without its writable layers. It returns nil if the pod needs no
// check. A Pending pod is measured, too, because its init containers may run. Unless a limit
// of ephemeral-storage applies, only volumes with a sizeLimit are measured.
func (k *StorageLimiter) measure(ctx context.Context, r *state.Report) *measurement {
	if r.Pod == nil { // the pod is being removed, and podd never had its manifest
		return nil
	}
	spec := &r.Pod.Spec
	m := &measurement{report: r, hasStorageLimit: plan.HasStorageLimit(spec), errsByPart: map[string]error{}}
	if phase := r.Pod.Status.Phase; !m.hasStorageLimit && !plan.HasVolumeLimit(spec) || phase != v1.PodRunning && phase != v1.PodPending {
		return nil
	}
	m.usage = plan.DiskUse{
		Volumes: map[string]int64{}, Logs: map[string]int64{}, Messages: map[string]int64{},
		Incomplete: plan.IncompleteMeasurements{Volumes: map[string]string{}, Logs: map[string]string{}},
	}
	for i := range spec.Volumes {
		if v := &spec.Volumes[i]; plan.IsOnDisk(v) && (m.hasStorageLimit || v.EmptyDir.SizeLimit != nil) {
			m.addVolume(ctx, k.o.Disk, v)
		}
	}
	if m.hasStorageLimit {
		m.addFiles(k.o.Disk)
		m.addLogs(ctx, k.o.Node.PodLogDir(r.Key, r.Pod.UID))
	}
	return m
}

// recordFailure records that a part could not be measured, unless err is nil.
func (m *measurement) recordFailure(part string, err error) {
	if err != nil {
		m.errsByPart[part] = err
	}
}

func (m *measurement) addVolume(ctx context.Context, dir volume.Dir, v *v1.Volume) {
	used, exists, err := dir.EmptyDirUsage(ctx, m.report.Pod.UID, v)
	if err != nil {
		err = fmt.Errorf("measuring volume %q of pod %s: %w", v.Name, m.report.Key, err)
	}
	m.recordFailure(fmt.Sprintf("volume %q", v.Name), err)
	if exists {
		m.usage.Volumes[v.Name] = used.Bytes
		if used.Excess != "" {
			m.usage.Incomplete.Volumes[v.Name] = used.Excess
		}
	}
}

func (m *measurement) addFiles(dir volume.Dir) {
	files, err := dir.FileUsage(m.report.Pod.UID)
	m.recordFailure("the hosts file and termination messages", err)
	m.usage.HostsFile = files.Hosts.Bytes
	for container, u := range files.Messages {
		m.usage.Messages[container] = u.Bytes
	}
}

func (m *measurement) addLogs(ctx context.Context, dir string) {
	for _, name := range containerNames(&m.report.Pod.Spec) {
		u, err := collect.MeasureUsage(ctx, dir, name)
		m.recordFailure("the logs of container "+name, err)
		m.usage.Logs[name] = u.Bytes
		if u.Excess != "" {
			m.usage.Incomplete.Logs[name] = u.Excess
		}
	}
}

// containerNames returns the names of all containers of a pod, including init containers and
// ephemeral containers.
func containerNames(spec *v1.PodSpec) []string {
	var names []string
	for i := range spec.InitContainers {
		names = append(names, spec.InitContainers[i].Name)
	}
	for i := range spec.Containers {
		names = append(names, spec.Containers[i].Name)
	}
	for i := range spec.EphemeralContainers {
		names = append(names, spec.EphemeralContainers[i].Name)
	}
	return names
}

// addLayers adds the sizes of the writable layers to the measurements. It waits for the
// runtime no longer than checkInterval.
func (k *StorageLimiter) addLayers(ctx context.Context, measurements []*measurement) {
	if len(measurements) == 0 {
		return
	}
	var uids []types.UID
	for _, m := range measurements {
		uids = append(uids, m.report.Pod.UID)
	}
	layersCtx, cancel := context.WithTimeout(ctx, checkInterval)
	defer cancel()
	layers, err := k.o.Layers.WritableLayers(layersCtx, k.o.Node.OwnInstances(), uids)
	isReported := !errors.Is(err, runtime.ErrUnimplemented)
	if !isReported {
		err = nil
	}
	for _, m := range measurements {
		podLayers := layers[m.report.Pod.UID]
		m.usage.Layers = podLayers.Bytes
		isReported = isReported && !podLayers.Partial
		m.recordFailure(layersPart, err)
	}
	if err == nil && !isReported && !k.hasLoggedMissingLayers {
		k.hasLoggedMissingLayers = true
		k.o.Log.Warn("runtime does not report writable layers; they are not counted toward limits of ephemeral-storage")
	}
}

// findImageDisk sets HasImageDisk in the measurements of the pods with a container that exceeds its
// limit. For other pods, it makes no difference. If the file systems are unknown, the writable layers
// are not counted toward the limits of containers.
func (k *StorageLimiter) findImageDisk(ctx context.Context, measurements []*measurement) {
	measurements = slices.DeleteFunc(slices.Clone(measurements), func(m *measurement) bool {
		exceeded := m.usage.ExceededLimit(&m.report.Pod.Spec)
		return exceeded == nil || exceeded.Signal != plan.SignalContainerLimit
	})
	if len(measurements) == 0 {
		return
	}
	requestCtx, cancel := context.WithTimeout(ctx, checkInterval)
	defer cancel()
	hasImageDisk, err := k.o.HasImageDisk(requestCtx)
	for _, m := range measurements {
		m.usage.HasImageDisk = hasImageDisk || err != nil
		m.recordFailure(layersPart, err)
	}
}
