package volume

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestWatchGroupChange checks when the progress of a change of the group is reported.
func TestWatchGroupChange(t *testing.T) {
	for took, want := range map[time.Duration][]string{
		29 * time.Second:  nil,
		31 * time.Second:  {"30s " + uid + "/volumes/v first 7"},
		155 * time.Second: {"30s " + uid + "/volumes/v first 7", "1m30s " + uid + "/volumes/v 7", "2m30s " + uid + "/volumes/v 7"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var got []string
			began := time.Now()
			d := Dir{Root: "/pods", OnGroupProgress: func(g GroupProgress) {
				first := ""
				if g.IsFirst {
					first = "first "
				}
				got = append(got, fmt.Sprintf("%s %s %s%d", time.Since(began), g.Path, first, g.Visited))
			}}
			p := &podDir{root: d, pod: newPod()}
			err := p.watchGroupChange(filepath.Join("/pods", uid, "volumes", "v"), func(visited *atomic.Int64) error {
				visited.Add(7)
				time.Sleep(took)
				return nil
			})
			must(t, err)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("reports during a change of %s (-want +got):\n%s", took, diff)
			}
		})
	}
}

// TestWatchGroupChange_Outside checks that a path outside of the directories of pods is reported
// completely.
func TestWatchGroupChange_Outside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got string
		p := &podDir{root: Dir{Root: "/pods", OnGroupProgress: func(g GroupProgress) { got = g.Path }}, pod: newPod()}
		must(t, p.watchGroupChange("/mnt/disk", func(*atomic.Int64) error { time.Sleep(time.Minute); return nil }))
		if got != "/mnt/disk" {
			t.Errorf("got path %s, want /mnt/disk", got)
		}
	})
}
