package meter

import (
	"testing"
	"time"

	"github.com/google/cadvisor/lib/model"
	"github.com/google/go-cmp/cmp"

	"podd/runtime/kernellog"
)

// TestOOMEvents checks the cgroups of the two events of an OOM kill.
func TestOOMEvents(t *testing.T) {
	at := time.Unix(1000, 0)
	got := oomEvents([]kernellog.OOMKill{
		{Time: at, Constraint: "CONSTRAINT_MEMCG", LimitedCgroup: "/pod", VictimCgroup: "/pod/c", ProcessName: "web", PID: 7},
		{Time: at.Add(1), Constraint: "CONSTRAINT_NONE", VictimCgroup: "/pod", ProcessName: "db", PID: 8},
	})
	want := []model.Event{
		{ContainerName: "/pod", Timestamp: at, EventType: model.EventOom},
		{ContainerName: "/pod/c", Timestamp: at, EventType: model.EventOomKill, EventData: model.EventData{OomKill: &model.OomKillEventData{Pid: 7, ProcessName: "web", Constraint: "CONSTRAINT_MEMCG"}}},
		{ContainerName: "/", Timestamp: at.Add(1), EventType: model.EventOom},
		{ContainerName: "/pod", Timestamp: at.Add(1), EventType: model.EventOomKill, EventData: model.EventData{OomKill: &model.OomKillEventData{Pid: 8, ProcessName: "db", Constraint: "CONSTRAINT_NONE"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
