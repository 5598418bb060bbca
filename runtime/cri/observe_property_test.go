package cri_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"podd/runtime"
	"podd/runtime/cri"
	"podd/runtime/runtimetest"
)

// TestObserver_Converges makes random changes to pods, events and the runtime. After that, the pods in all
// snapshots of the observer together must be equal to the pods that a new observer emits.
func TestObserver_Converges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.IntRange(0, 99), 1, 60).Draw(rt, "steps")
		var got, want map[string]string
		inScene(t, runtimetest.Options{NoEvents: rapid.Bool().Draw(rt, "no events")}, func(s *scene) {
			for i, step := range steps {
				s.changeRandomly(i, step)
			}
			s.Reconnect()
			s.MuteEvents(false)
			s.sleep(2 * time.Minute)
			got, want = outline(s.view), s.freshPods()
		})
		if !maps.Equal(got, want) {
			rt.Fatalf("pods of the observer: got\n%v\nwant those of a new observer\n%v", got, want)
		}
	})
}

// changeRandomly makes one random change. The change may fail.
func (s *scene) changeRandomly(i, step int) {
	name := fmt.Sprintf("p%d", step%4)
	config := sandboxOf(name, uint32(i))
	ctx := s.Context()
	newest := func() string {
		if pod := s.observed(name); pod != nil {
			return pod.Incarnations[0].ID
		}
		return ""
	}
	switch step / 4 % 12 {
	case 0, 1, 2:
		id, err := s.RunPodSandbox(ctx, config, "")
		if err == nil {
			s.start(id, config, 0)
		}
	case 3:
		s.ExitContainer("default/"+name+"/app", int32(i))
	case 4:
		_ = s.StopPodSandbox(ctx, newest())
	case 5:
		_ = s.RemovePodSandbox(ctx, newest())
	case 6:
		s.KillSandbox(newest())
	case 7:
		s.MuteEvents(step%2 == 0)
	case 8:
		s.Disconnect()
	case 9:
		s.Reconnect()
	case 10:
		s.observer.Refresh(key(name), true)
		s.sleep(time.Duration(step) * time.Millisecond)
	default:
		s.sleep(time.Duration(step) * 100 * time.Millisecond)
	}
}

// freshPods returns the pods that a new observer emits.
func (s *scene) freshPods() map[string]string {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var first map[string]string
	_ = s.Client.NewObserver(cri.ObserverOptions{Instance: instance}).Run(ctx, func(snapshot runtime.Snapshot) {
		first = outline(snapshot.Pods)
		cancel()
	})
	return first
}

// outline returns the parts of the pods that TestObserver_Converges compares, by pod name.
func outline(pods map[types.NamespacedName]*runtime.Pod) map[string]string {
	lines := map[string]string{}
	for key, pod := range pods {
		var line []string
		for _, in := range pod.Incarnations {
			one := fmt.Sprint(in.ID[:4], " ", in.Ready)
			for _, c := range in.Containers {
				one += fmt.Sprint(" ", c.ID[:4], " ", c.State, " ", c.ExitCode, " ", c.StartedAt.IsZero(), " ", c.FinishedAt.IsZero())
			}
			line = append(line, one)
		}
		lines[key.String()] = fmt.Sprint(slices.Sorted(slices.Values(line)))
	}
	return lines
}
