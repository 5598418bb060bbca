package stats

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"podd/runtime"
)

// inBubble runs a test in a synctest bubble with the time of the host, because a Sampler compares it with
// the times at which the kernel created cgroups.
func inBubble(t *testing.T, test func(t *testing.T)) {
	now := time.Now().Round(0) // without the monotonic clock, which differs in the bubble
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(now))
		test(t)
	})
}

// TestSampler takes samples of the host that runs the test.
func TestSampler(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		calls, measured := 0, 0
		s := New(Options{
			Pods: func() []Pod {
				return []Pod{{UID: "u1", Cgroups: []string{"/podd-no-such-cgroup"}, Containers: []Container{{ID: "c1", Name: "a"}, {ID: "c2", Name: "b"}}}}
			},
			RuntimeUsage: func(context.Context) (map[string]runtime.Usage, error) {
				calls++
				return map[string]runtime.Usage{"c1": {At: time.Now(), CPUNanoseconds: 7, WorkingSetBytes: 8}, "c2": {}}, nil
			},
			AllPodsCgroups: func() []string { return []string{"/podd-no-such-cgroup"} }, OwnCgroup: "/",
			MeasureDisk: func(_ context.Context, pods []Pod) (*Disk, error) {
				measured += len(pods)
				return &Disk{At: time.Now()}, nil
			},
		})
		basic, err := s.SampleBasic(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if basic.Node.NanoCores == nil || basic.Node.Stats().Cpu.Usage.Total == 0 || basic.Node.Stats().Memory.WorkingSet == 0 {
			t.Errorf("node in a basic sample: got CPU rate %v, CPU %+v and memory %+v; want all of them", basic.Node.NanoCores, basic.Node.Stats().Cpu, basic.Node.Stats().Memory)
		}
		if basic.AllPodsCgroup != nil || basic.OwnCgroup != nil || basic.Pods[0].Cgroup != nil {
			t.Errorf("cgroups that do not exist: got %+v, %+v and %+v; want nil for all", basic.AllPodsCgroup, basic.OwnCgroup, basic.Pods[0].Cgroup)
		}
		if c := basic.Pods[0].Containers; c[0].Cgroup == nil || c[0].Stats().Cpu.Usage.Total != 7 || c[0].Stats().Memory.WorkingSet != 8 || c[1].Cgroup != nil || calls == 0 {
			t.Errorf("containers without cgroups: got %+v after %d calls of RuntimeUsage; want the runtime's usage of the first container only", c, calls)
		}
		if again, err := s.SampleBasic(t.Context()); err != nil || again != basic {
			t.Errorf("second basic sample within a second: got the first sample: %t (error %v), want true", again == basic, err)
		}
		time.Sleep(firstRateWindow) // a rate needs time between two samples
		all, err := s.SampleAll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n := all.Node; n.Stats().Network == nil || n.Stats().Processes == nil || n.NanoCores == nil {
			t.Errorf("node in a complete sample: got %+v, want network, processes and a CPU rate", n.Stats())
		}
		for range 3 {
			if _, err := s.MeasureDisks(t.Context()); err != nil || measured != 1 {
				t.Errorf("measured pods after three calls of MeasureDisks: got %d, error %v; want 1", measured, err)
			}
		}
		m, err := s.MachineInfo(t.Context())
		if err != nil || m.NumCores == 0 || m.MemoryCapacity == 0 {
			t.Errorf("MachineInfo: got %+v, error %v; want cores and memory", m, err)
		}
	})
}

// TestSampler_RuntimeUsageFails checks that a sample without the usage from the runtime is reused
// only for maxSampleAge. The sample took 300 ms. A complete sample that took so long would be
// reused for 6 s, but this one is incomplete.
func TestSampler_RuntimeUsageFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		took := 300 * time.Millisecond // less than the minimum time for which a sample is reused
		calls := 0
		s := New(Options{
			Pods: func() []Pod { return []Pod{{UID: "u1", Containers: []Container{{ID: "c1", Name: "a"}}}} },
			RuntimeUsage: func(context.Context) (map[string]runtime.Usage, error) {
				if calls++; calls > 2 { // the first readings are read without a cache
					return nil, nil
				}
				time.Sleep(took)
				return nil, errors.New("no response")
			},
		})
		first, err := s.SampleBasic(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(maxSampleAge + 100*time.Millisecond)
		if again, err := s.SampleBasic(t.Context()); err != nil || again == first {
			t.Errorf("sample after maxSampleAge: got the first sample: %t (error %v), want false", again == first, err)
		}
	})
}
