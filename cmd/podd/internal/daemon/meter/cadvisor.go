package meter

import (
	"cmp"
	"context"
	"fmt"

	"github.com/google/cadvisor/lib/model"

	"podd/runtime/kernellog"
	"podd/server/cadvisor"
)

var _ cadvisor.Meter = (*Meter)(nil)

// CPURates implements cadvisor.Meter.
func (m *Meter) CPURates(ctx context.Context) (map[string]uint64, error) {
	s, err := m.sampler.SampleAll(ctx)
	if err != nil {
		return nil, err
	}
	return s.CPURates(), nil
}

// Filesystems implements cadvisor.Meter.
func (m *Meter) Filesystems(uuid string) ([]model.FsInfo, error) { return m.sampler.Filesystems(uuid) }

// Processes implements cadvisor.Meter.
func (m *Meter) Processes(ctx context.Context, cgroup string) ([]model.ProcessInfo, error) {
	return m.sampler.Processes(ctx, cgroup)
}

// OOMEvents implements cadvisor.Meter.
func (m *Meter) OOMEvents() ([]model.Event, error) {
	kills, err := kernellog.AllOOMKills(kernellog.Path)
	if err != nil {
		return nil, fmt.Errorf("reading the OOM kills in the log of the kernel: %w", err)
	}
	return oomEvents(kills), nil
}

// oomEvents returns two events for each kill: one of the cgroup that has reached its limit, and one of
// the cgroup of the process. If the node was out of memory, the first is an event of the root cgroup.
func oomEvents(kills []kernellog.OOMKill) []model.Event {
	events := make([]model.Event, 0, 2*len(kills))
	for _, k := range kills {
		victim := model.EventData{OomKill: &model.OomKillEventData{Pid: k.PID, ProcessName: k.ProcessName, Constraint: k.Constraint}}
		events = append(events,
			model.Event{ContainerName: cmp.Or(k.LimitedCgroup, "/"), Timestamp: k.Time, EventType: model.EventOom},
			model.Event{ContainerName: k.VictimCgroup, Timestamp: k.Time, EventType: model.EventOomKill, EventData: victim})
	}
	return events
}
