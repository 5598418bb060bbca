package stats

import (
	"context"
	"fmt"
	"time"

	"github.com/google/cadvisor/lib/container"
	"github.com/google/cadvisor/lib/model"

	"podd/runtime"
)

// Maximum ages of values that are reused.
const (
	// maxSampleAge applies to samples of cgroups. A graph of the resource usage does not need a
	// higher resolution.
	maxSampleAge = time.Second
	// maxDiskAge applies to disks. It is longer, because a measurement of disks walks
	// directories.
	maxDiskAge = 10 * time.Second
)

// firstRateWindow is the time between the two readings from which the rates of the first sample are
// computed.
const firstRateWindow = 200 * time.Millisecond

// Options configure a Sampler. Pods is required.
type Options struct {
	// Pods returns the pods to sample. It must be fast and safe for concurrent use.
	Pods func() []Pod
	// AllPodsCgroups returns the possible paths of kubepods, the parent cgroup of all pods. The
	// first path that exists is used. If AllPodsCgroups is nil, pods have no parent cgroup.
	AllPodsCgroups func() []string
	// QoSClassCgroups contains the paths of the cgroups of the QoS classes.
	QoSClassCgroups []string
	// SearchContainers is set if the cgroups of containers may not be in cgroups of pods. They are then
	// searched in the root cgroup and its children, where runtimes create them by default.
	SearchContainers bool
	// OwnCgroup is the path of podd's own cgroup. If it is "", the cgroup is not reported
	// separately.
	OwnCgroup string
	// RuntimeCgroup and SystemCgroup are the paths of the cgroups of the container runtime and of other
	// processes of the host. If one is "", it is not reported separately.
	RuntimeCgroup, SystemCgroup string
	// RuntimeUsage returns the usage that the runtime reports for containers, by container ID. It
	// is called if a container has no cgroup. It may be nil.
	RuntimeUsage func(context.Context) (map[string]runtime.Usage, error)
	// MeasureDisk measures the disks of the node and of pods, in the order of pods, until ctx is
	// done. The result omits pods that were not reached, and does not set Unreached. If MeasureDisk
	// is nil, MeasureDisks must not be called.
	MeasureDisk func(ctx context.Context, pods []Pod) (*Disk, error)
}

// A Sampler takes samples of cgroups and measures disks. It is safe for concurrent use.
type Sampler struct {
	o             Options
	machine       *cachedValue[*model.MachineInfo]
	basic         *cachedValue[*Sample] // samples of CPU and memory
	full          *cachedValue[*Sample] // samples of everything except disks
	disk          *cachedValue[*Disk]
	firstReadings *cachedValue[struct{}] // the first readings, from which the first rates are computed
	rates         readings

	lifetime     context.Context // context of disk measurements; Close cancels it
	stop         context.CancelFunc
	diskMeasurer diskMeasurer
}

// New returns a Sampler that has read nothing yet. If MeasureDisksWithin is used, Close must be
// called.
func New(o Options) *Sampler {
	lifetime, stop := context.WithCancel(context.Background())
	s := &Sampler{
		o: o, lifetime: lifetime, stop: stop, machine: newCachedValue[*model.MachineInfo](), basic: newCachedValue[*Sample](), full: newCachedValue[*Sample](),
		disk: newCachedValue[*Disk](), firstReadings: newCachedValue[struct{}](),
	}
	isSampleIncomplete := func(s *Sample) bool { return s.lacksRuntimeUsage }
	s.basic.isIncomplete, s.full.isIncomplete = isSampleIncomplete, isSampleIncomplete
	s.disk.isIncomplete = func(d *Disk) bool { return d.isIncomplete(o.Pods()) }
	return s
}

// MachineInfo returns the hardware information of the node.
func (s *Sampler) MachineInfo(ctx context.Context) (*model.MachineInfo, error) {
	return s.machine.get(ctx, maxMachineAge, func(context.Context) (*model.MachineInfo, error) {
		m, err := readMachine()
		if err != nil {
			return nil, fmt.Errorf("reading the hardware information of the node: %w", err)
		}
		return m, nil
	})
}

// SampleBasic returns a sample of CPU and memory.
func (s *Sampler) SampleBasic(ctx context.Context) (*Sample, error) {
	return s.sample(ctx, s.basic, basicMetrics)
}

// SampleAll returns a sample of everything except disks.
func (s *Sampler) SampleAll(ctx context.Context) (*Sample, error) {
	return s.sample(ctx, s.full, allMetrics)
}

// ReadMemory reads the memory usage of pods and the node. It does not query the runtime, which may
// not respond: a container without a cgroup has no usage. The sample is always a new one and has no
// rates.
func (s *Sampler) ReadMemory(ctx context.Context) (*Sample, error) {
	return s.readCgroups(ctx, basicMetrics)
}

// ReadProcesses reads like ReadMemory, and also reads the number of processes.
func (s *Sampler) ReadProcesses(ctx context.Context) (*Sample, error) {
	return s.readCgroups(ctx, processMetrics)
}

// readCgroups reads a new sample with these metrics, without rates and without the runtime.
func (s *Sampler) readCgroups(ctx context.Context, metrics container.MetricSet) (*Sample, error) {
	m, err := s.MachineInfo(ctx)
	if err != nil {
		return nil, err
	}
	o := s.o
	o.RuntimeUsage = nil
	return read(ctx, o, m, metrics)
}

// maxDiskTime limits one measurement of disks. A measurement continues even if its caller no
// longer waits. The next measurement begins with the pods that this one did not reach.
const maxDiskTime = 20 * time.Second

// MeasureDisks measures disks and waits for the result. For pods that could not be measured
// in time, the result contains the previous values and their time.
func (s *Sampler) MeasureDisks(ctx context.Context) (*Disk, error) {
	return s.disk.get(ctx, maxDiskAge, func(context.Context) (*Disk, error) {
		ctx, cancel := context.WithTimeout(s.lifetime, maxDiskTime)
		defer cancel()
		last := s.disk.value // safe to read, because get holds the lock
		pods := last.sortedByAge(s.o.Pods())
		d, err := s.o.MeasureDisk(ctx, pods)
		if err != nil {
			return nil, err
		}
		return d.withPrevious(last, pods), nil
	})
}

// sample returns the sample in cache, or a new one with these metrics. The sample contains rates.
func (s *Sampler) sample(ctx context.Context, cache *cachedValue[*Sample], metrics container.MetricSet) (*Sample, error) {
	m, err := s.MachineInfo(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.prepareRates(ctx, m); err != nil {
		return nil, err
	}
	return cache.get(ctx, maxSampleAge, func(ctx context.Context) (*Sample, error) {
		out, err := read(ctx, s.o, m, metrics)
		if err == nil {
			s.rates.setRates(out)
		}
		return out, err
	})
}

// read reads a sample with these metrics, without rates.
func read(ctx context.Context, o Options, m *model.MachineInfo, metrics container.MetricSet) (*Sample, error) {
	h, err := newHierarchy(machineInfo{m}, metrics)
	if err != nil {
		return nil, fmt.Errorf("listing the cgroup mounts: %w", err)
	}
	return h.sample(ctx, o, m)
}

// prepareRates stores first readings and waits for firstRateWindow, if there are no readings
// from which a rate can be computed.
func (s *Sampler) prepareRates(ctx context.Context, m *model.MachineInfo) error {
	if !s.rates.isOutdated(time.Now()) {
		return nil
	}
	_, err := s.firstReadings.get(ctx, firstRateWindow, func(ctx context.Context) (zero struct{}, err error) {
		firstSample, err := read(ctx, s.o, m, basicMetrics)
		if err != nil {
			return zero, err
		}
		s.rates.setRates(firstSample)
		wait := time.NewTimer(firstRateWindow)
		defer wait.Stop()
		select {
		case <-wait.C:
			return zero, nil
		case <-ctx.Done():
			return zero, ctx.Err()
		}
	})
	return err
}
