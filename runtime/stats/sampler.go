package stats

import (
	"context"
	"fmt"
	"time"

	"github.com/google/cadvisor/lib/container"
	"github.com/google/cadvisor/lib/model"

	"podd/runtime"
)

// How long what was read is good for.
const (
	// SampleAge is that of cgroups: the window of a live curve.
	SampleAge = time.Second
	// DiskAge is that of disks, which take walking.
	DiskAge = 10 * time.Second
)

// firstWindow is between the two readings made for who asks first.
const firstWindow = 200 * time.Millisecond

// Options are what a Sampler reads beside cgroups. Pods is required.
type Options struct {
	// Pods are those to sample. It is quick and safe for concurrent use.
	Pods func() []Pod
	// AllPods are the places where the cgroup of all pods may be, and Classes
	// those of QoS classes, as in Pod.Cgroups.
	AllPods, Classes []string
	// Own is podd's own cgroup; "": none to tell apart.
	Own string
	// Runtime is what the runtime says that containers use, by id; it is asked
	// when one of them has no cgroup. Nil: nobody is asked.
	Runtime func(context.Context) (map[string]runtime.Usage, error)
	// Disk measures disks, those of pods in the order given, as far as it gets before
	// ctx is done: a pod that it did not get to is not in Disk.Pods. Nil: disks are not
	// measured.
	Disk func(ctx context.Context, pods []Pod) (*Disk, error)
}

// Sampler makes samples. It is safe for concurrent use.
type Sampler struct {
	o       Options
	machine *kept[*model.MachineInfo]
	basic   *kept[*Sample] // processor and memory
	whole   *kept[*Sample]
	disk    *kept[*Disk]
	first   *kept[struct{}] // what rates count from where nothing else is known
	rates   readings

	life context.Context // of measuring disks
	end  context.CancelFunc
	soon soon
}

// New makes a Sampler, which reads nothing yet. It must be closed once DiskSoon was
// called.
func New(o Options) *Sampler {
	life, end := context.WithCancel(context.Background())
	s := &Sampler{
		o: o, life: life, end: end, machine: newKept[*model.MachineInfo](), basic: newKept[*Sample](), whole: newKept[*Sample](),
		disk: newKept[*Disk](), first: newKept[struct{}](),
	}
	s.disk.lacks = func(d *Disk) bool { return d.lacks }
	return s
}

// Machine is what the machine is made of.
func (s *Sampler) Machine(ctx context.Context) (*model.MachineInfo, error) {
	return s.machine.get(ctx, machineAge, func(context.Context) (*model.MachineInfo, error) {
		m, err := readMachine()
		if err != nil {
			return nil, fmt.Errorf("looking at the machine: %w", err)
		}
		return m, nil
	})
}

// Basic samples processor and memory.
func (s *Sampler) Basic(ctx context.Context) (*Sample, error) { return s.sample(ctx, s.basic, basic) }

// Whole samples everything but disks.
func (s *Sampler) Whole(ctx context.Context) (*Sample, error) {
	return s.sample(ctx, s.whole, whole)
}

// diskTime bounds one measuring of disks, which goes on when who asked has gone. The
// next one begins with the pods that it did not get to.
const diskTime = 20 * time.Second

// Disk measures disks. What could not be measured anew in time is told as it was
// before, with the time of that.
func (s *Sampler) Disk(ctx context.Context) (*Disk, error) {
	return s.disk.get(ctx, DiskAge, func(context.Context) (*Disk, error) {
		ctx, cancel := context.WithTimeout(s.life, diskTime)
		defer cancel()
		last := s.disk.value // it is this one's turn
		pods := last.byTurn(s.o.Pods())
		d, err := s.o.Disk(ctx, pods)
		if err != nil {
			return nil, err
		}
		return d.upon(last, pods), nil
	})
}

func (s *Sampler) sample(ctx context.Context, kept *kept[*Sample], metrics container.MetricSet) (*Sample, error) {
	m, err := s.Machine(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.prepareRates(ctx, m); err != nil {
		return nil, err
	}
	return kept.get(ctx, SampleAge, func(ctx context.Context) (*Sample, error) {
		out, err := s.read(ctx, m, metrics)
		if err == nil {
			s.rates.rate(out)
		}
		return out, err
	})
}

func (s *Sampler) read(ctx context.Context, m *model.MachineInfo, metrics container.MetricSet) (*Sample, error) {
	h, err := newHierarchy(known{m}, metrics)
	if err != nil {
		return nil, fmt.Errorf("looking for the cgroup mounts: %w", err)
	}
	return h.sample(ctx, s.o, m)
}

// prepareRates makes first readings where there are none that a rate could count
// from, and gives them a moment to age.
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
