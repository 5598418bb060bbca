package stats

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// TestMeasureDisks_Rounds checks that a round that ends before every pod was measured is soon followed by
// another one, which begins with the remaining pods. Values of an earlier round must keep their time. When
// every pod was measured, the values must be reused for longer.
//
// In the expected texts, "a 1@8" means that pod a was measured in round 1, 8 seconds after the start, and
// "c -" that pod c was not measured.
func TestMeasureDisks_Rounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := []Pod{{UID: "a"}, {UID: "b"}, {UID: "c"}, {UID: "d"}, {UID: "e"}}
		var began time.Time
		rounds := 0
		s := New(Options{Pods: func() []Pod { return pods }, MeasureDisk: func(ctx context.Context, pods []Pod) (*Disk, error) {
			rounds++
			d := &Disk{At: time.Now(), Pods: map[types.UID]PodDisk{}}
			for _, p := range pods {
				select {
				case <-time.After(8 * time.Second):
					used := uint64(rounds)
					fs := Filesystem{UsedBytes: &used, At: time.Now()}
					d.Pods[p.UID] = PodDisk{At: fs.At, Layers: map[string]Filesystem{}, ManagedFiles: &fs}
				case <-ctx.Done():
					d.Pods[p.UID] = PodDisk{At: time.Now(), Incomplete: true, Layers: map[string]Filesystem{}}
					return d, nil
				}
			}
			return d, nil
		}})
		defer s.Close()
		began = time.Now()
		measure := func(want string) {
			t.Helper()
			d, err := s.MeasureDisks(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, p := range pods {
				text := "-"
				if of, ok := d.Pods[p.UID]; ok && of.ManagedFiles != nil {
					text = fmt.Sprintf("%d@%.0f", *of.ManagedFiles.UsedBytes, of.ManagedFiles.At.Sub(began).Seconds())
				}
				got += fmt.Sprintf("%s %s ", p.UID, text)
			}
			if got != want {
				t.Errorf("%s after the start: got %s, want %s", time.Since(began), got, want)
			}
		}
		measure("a 1@8 b 1@16 c - d - e - ")
		measure("a 1@8 b 1@16 c - d - e - ")
		time.Sleep(21 * time.Second) // until second 41; the first round was interrupted at pod c
		measure("a 1@8 b 1@16 c - d 2@49 e 2@57 ")
		pods = append(pods[:1:1], pods[2:]...) // b was removed
		time.Sleep(21 * time.Second)
		if measure("a 1@8 c - d 2@49 e 2@57 "); rounds != 2 {
			t.Errorf("rounds: got %d, want 2, because values are reused for longer after every pod was measured", rounds)
		}
		time.Sleep(7 * time.Minute)               // until second 502
		measure("a 3@510 c 3@518 d 2@49 e 2@57 ") // the third round was interrupted at pod d
		time.Sleep(7 * time.Minute)               // until second 942
		measure("a 3@510 c 3@518 d 4@958 e 4@950 ")
	})
}

// TestMeasureDisks_NewPods checks that a new pod and the first start of a container cause a new measurement
// soon after a slow one, and that a restart of a container does not.
func TestMeasureDisks_NewPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pods []Pod
		rounds := 0
		s := New(Options{Pods: func() []Pod { return pods }, MeasureDisk: func(_ context.Context, pods []Pod) (*Disk, error) {
			rounds++
			<-time.After(15 * time.Second)
			d := &Disk{At: time.Now(), Pods: map[types.UID]PodDisk{}}
			for _, p := range pods {
				of := PodDisk{At: time.Now(), Layers: map[string]Filesystem{}, Logs: map[string]Filesystem{}}
				for _, c := range p.Containers {
					of.Logs[c.Name] = Filesystem{At: of.At}
				}
				d.Pods[p.UID] = of
			}
			return d, nil
		}})
		defer s.Close()
		measure := func(want int, after string) {
			t.Helper()
			<-time.After(20 * time.Second)
			if _, err := s.MeasureDisks(t.Context()); err != nil || rounds != want {
				t.Errorf("20 s after %s: got %d rounds, error %v; want %d", after, rounds, err, want)
			}
		}
		start := func(name string) Container { return Container{Name: name, Started: time.Now()} }
		measure(1, "the start")
		measure(1, "the first round")
		pods = []Pod{{UID: "a"}}
		measure(2, "the start of a pod")
		measure(2, "the second round")
		pods = []Pod{{UID: "a", Containers: []Container{start("app")}}}
		measure(3, "the first start of a container")
		pods = []Pod{{UID: "a", Containers: []Container{start("app")}}}
		measure(3, "a restart of the container")
	})
}

// TestPodDisk_WithPrevious checks that a part that was not measured keeps its previous
// value if the part still exists.
func TestPodDisk_WithPrevious(t *testing.T) {
	at := func(n uint64) Filesystem {
		return Filesystem{UsedBytes: &n, At: noon.Add(time.Duration(n) * time.Second)}
	}
	one, two := at(1), at(2)
	last := PodDisk{
		At: one.At, ManagedFiles: &one,
		Logs:    map[string]Filesystem{"app": one, "side": one, "gone": one},
		Layers:  map[string]Filesystem{"c1": one},
		Volumes: []Volume{{Name: "x", Filesystem: one}, {Name: "y", Filesystem: one}},
	}
	pod := &Pod{Containers: []Container{{Name: "app"}, {Name: "side"}, {Name: "new"}}}
	for name, test := range map[string]struct{ now, want PodDisk }{
		"complete": {PodDisk{At: two.At, Layers: map[string]Filesystem{}}, PodDisk{At: two.At, Layers: map[string]Filesystem{}}},
		"without the runtime": {
			PodDisk{At: two.At, ManagedFiles: &two},
			PodDisk{At: two.At, ManagedFiles: &two, Layers: map[string]Filesystem{"c1": one}},
		},
		"cut": {
			PodDisk{At: two.At, Incomplete: true, Logs: map[string]Filesystem{"app": two}, Layers: map[string]Filesystem{"c2": two}, Volumes: []Volume{{Name: "y", Filesystem: two}}},
			PodDisk{
				At: two.At, Incomplete: true, ManagedFiles: &one, Layers: map[string]Filesystem{"c2": two},
				Logs:    map[string]Filesystem{"app": two, "side": one},
				Volumes: []Volume{{Name: "y", Filesystem: two}, {Name: "x", Filesystem: one}},
			},
		},
	} {
		if diff := cmp.Diff(test.want, test.now.withPrevious(last, pod)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
