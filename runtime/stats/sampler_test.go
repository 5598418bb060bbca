package stats

import (
	"context"
	"testing"
	"time"

	"podd/runtime"
)

// TestSampler samples the host of the test.
func TestSampler(t *testing.T) {
	calls, measured := 0, 0
	s := New(Options{
		Pods: func() []Pod {
			return []Pod{{UID: "u1", Cgroups: []string{"/podd-no-such-cgroup"}, Containers: []Container{{ID: "c1", Name: "a"}, {ID: "c2", Name: "b"}}}}
		},
		Runtime: func(context.Context) (map[string]runtime.Usage, error) {
			calls++
			return map[string]runtime.Usage{"c1": {At: time.Now(), CPU: 7, WorkingSet: 8}, "c2": {}}, nil
		},
		AllPods: []string{"/podd-no-such-cgroup"}, Own: "/",
		Disk: func(_ context.Context, pods []Pod) (*Disk, error) {
			measured += len(pods)
			return &Disk{At: time.Now()}, nil
		},
	})
	basic, err := s.Basic(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if basic.Node.NanoCores == nil || basic.Node.Stats().Cpu.Usage.Total == 0 || basic.Node.Stats().Memory.WorkingSet == 0 {
		t.Errorf("the node: %v, %+v, %+v", basic.Node.NanoCores, basic.Node.Stats().Cpu, basic.Node.Stats().Memory)
	}
	if basic.AllPods != nil || basic.Own != nil || basic.Pods[0].Cgroup != nil {
		t.Error("got a cgroup that does not exist")
	}
	if c := basic.Pods[0].Containers; c[0].Cgroup == nil || c[0].Stats().Cpu.Usage.Total != 7 || c[0].Stats().Memory.WorkingSet != 8 || c[1].Cgroup != nil || calls == 0 {
		t.Errorf("usage reported by the runtime: got %+v after %d calls", c, calls)
	}
	if again, err := s.Basic(t.Context()); err != nil || again != basic {
		t.Errorf("within a second: got another sample, %v", err)
	}
	all, err := s.Whole(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := all.Node; n.Stats().Network == nil || n.Stats().Processes == nil || n.NanoCores == nil {
		t.Errorf("the node: %+v", n.Stats())
	}
	for range 3 {
		if _, err := s.Disk(t.Context()); err != nil || measured != 1 {
			t.Errorf("disks were measured %d times, %v; want once", measured, err)
		}
	}
	m, err := s.Machine(t.Context())
	if err != nil || m.NumCores == 0 || m.MemoryCapacity == 0 {
		t.Errorf("hardware: got %+v, %v", m, err)
	}
}
