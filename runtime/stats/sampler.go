package stats

import (
	"context"
	"fmt"
	"time"

	"github.com/google/cadvisor/lib/container"
	"github.com/google/cadvisor/lib/model"

	"podd/runtime"
)

// How long cached values are reused.
const (
	// sampleAge is for cgroups: the resolution of a live graph.
	sampleAge = time.Second
	// diskAge is for disks, whose measurement walks directories.
	diskAge = 10 * time.Second
)

// firstWindow is the time between the two readings for the first caller.
const firstWindow = 200 * time.Millisecond

// Options configure a Sampler. Pods is required.
type Options struct {
	// Pods returns the pods to sample. It must be fast and safe for concurrent use.
	Pods func() []Pod
	// AllPods contains the possible paths of the cgroup of all pods, and Classes those of
	// the QoS classes, as in Pod.Cgroups.
	AllPods, Classes []string
	// Own is podd's own cgroup; "": not reported separately.
	Own string
	// Runtime returns the usage that the runtime reports for containers, by ID. It is
	// called if one of them has no cgroup. Nil: it is not available.
	Runtime func(context.Context) (map[string]runtime.Usage, error)
	// Disk measures disks, those of pods in the given order, until ctx is done. Pods not
	// measured until then are not in Disk.Pods. Nil: disks are not measured.
	Disk func(ctx context.Context, pods []Pod) (*Disk, error)
}

// A Sampler takes samples. It is safe for concurrent use.
type Sampler struct {
	o       Options
	machine *cached[*model.MachineInfo]
	basic   *cached[*Sample] // CPU and memory
	whole   *cached[*Sample]
	disk    *cached[*Disk]
	first   *cached[struct{}] // first readings, if there are none to compute rates from
	rates   readings

	life       context.Context // of disk measurements
	end        context.CancelFunc
	background background
}

// New returns a Sampler, which reads nothing yet. It must be closed after DiskSoon was
// called.
func New(o Options) *Sampler {
	life, end := context.WithCancel(context.Background())
	s := &Sampler{
		o: o, life: life, end: end, machine: newCached[*model.MachineInfo](), basic: newCached[*Sample](), whole: newCached[*Sample](),
		disk: newCached[*Disk](), first: newCached[struct{}](),
	}
	s.disk.lacks = func(d *Disk) bool { return d.lacks(o.Pods()) }
	return s
}

// Machine returns the hardware information.
func (s *Sampler) Machine(ctx context.Context) (*model.MachineInfo, error) {
	return s.machine.get(ctx, machineAge, func(context.Context) (*model.MachineInfo, error) {
		m, err := readMachine()
		if err != nil {
			return nil, fmt.Errorf("reading the hardware information of the node: %w", err)
		}
		return m, nil
	})
}

// Basic samples CPU and memory.
func (s *Sampler) Basic(ctx context.Context) (*Sample, error) { return s.sample(ctx, s.basic, basic) }

// Whole samples everything except disks.
func (s *Sampler) Whole(ctx context.Context) (*Sample, error) {
	return s.sample(ctx, s.whole, whole)
}

// diskTime limits one measurement of disks, which does not stop with its caller. The next
// one starts with the pods that were not measured.
const diskTime = 20 * time.Second

// Disk measures disks. For what could not be measured in time it returns the previous
// values with their time.
func (s *Sampler) Disk(ctx context.Context) (*Disk, error) {
	return s.disk.get(ctx, diskAge, func(context.Context) (*Disk, error) {
		ctx, cancel := context.WithTimeout(s.life, diskTime)
		defer cancel()
		last := s.disk.value // this call holds the turn
		pods := last.byAge(s.o.Pods())
		d, err := s.o.Disk(ctx, pods)
		if err != nil {
			return nil, err
		}
		return d.withPrevious(last, pods), nil
	})
}

func (s *Sampler) sample(ctx context.Context, kept *cached[*Sample], metrics container.MetricSet) (*Sample, error) {
	m, err := s.Machine(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.prepareRates(ctx, m); err != nil {
		return nil, err
	}
	return kept.get(ctx, sampleAge, func(ctx context.Context) (*Sample, error) {
		out, err := s.read(ctx, m, metrics)
		if err == nil {
			s.rates.rate(out)
		}
		return out, err
	})
}

func (s *Sampler) read(ctx context.Context, m *model.MachineInfo, metrics container.MetricSet) (*Sample, error) {
	h, err := newHierarchy(machineInfo{m}, metrics)
	if err != nil {
		return nil, fmt.Errorf("listing the cgroup mounts: %w", err)
	}
	return h.sample(ctx, s.o, m)
}

// prepareRates takes first readings if there are none from which a rate can be computed,
// and waits for firstWindow.
func (s *Sampler) prepareRates(ctx context.Context, m *model.MachineInfo) error {
	if !s.rates.outdated(time.Now()) {
		return nil
	}
	_, err := s.first.get(ctx, firstWindow, func(ctx context.Context) (none struct{}, err error) {
		first, err := s.read(ctx, m, basic)
		if err != nil {
			return none, err
		}
		s.rates.rate(first)
		wait := time.NewTimer(firstWindow)
		defer wait.Stop()
		select {
		case <-wait.C:
			return none, nil
		case <-ctx.Done():
			return none, ctx.Err()
		}
	})
	return err
}
