package nodestatus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/daemon/view"
	"podd/reconcile/event"
	"podd/runtime"
)

// TestWatcher checks that new pressure is published immediately, and that it is published
// until the transition period has passed. Each change must be recorded as an event. Equal
// facts must not be published again.
func TestWatcher(t *testing.T) {
	plenty := diskObservation{bytes: observation{100, 50}, inodes: observation{100, 50}, isKnown: true}
	now, images := observations{memory: observation{2 << 30, 1 << 30}, disk: plenty, images: plenty}, []runtime.Image{{Tags: []string{"a:1"}, SizeBytes: 1}}
	var failed error
	var events, published []string
	var log strings.Builder
	k := &watcher{
		node: "n1", maxImages: 50, log: slog.New(slog.NewTextHandler(&log, nil)),
		pressures:  pressureTracker{policy: kubeletThresholds},
		observe:    func(context.Context) (observations, error) { return now, failed },
		listImages: func(context.Context) ([]runtime.Image, error) { return images, failed },
		record: func(all []event.Event) {
			for _, e := range all {
				events = append(events, e.Type+" "+e.Reason+": "+e.Message)
			}
		},
		publish: func(f *view.NodeFacts) {
			published = append(published, fmt.Sprint(f.Pressure[v1.NodeMemoryPressure], f.Pressure[v1.NodeDiskPressure], f.Pressure[v1.NodePIDPressure], len(f.Images)))
		},
	}
	at := time.Unix(1000, 0)
	step := func(name, wantEvents, wantPublished string) {
		t.Helper()
		events, published = nil, nil
		k.check(t.Context(), at)
		at = at.Add(checkInterval)
		if got := strings.Join(events, "\n"); got != wantEvents {
			t.Errorf("%s: got events %q, want %q", name, got, wantEvents)
		}
		if got := strings.Join(published, "\n"); got != wantPublished {
			t.Errorf("%s: got facts %q, want %q", name, got, wantPublished)
		}
	}
	status := func(word string) string { return "Normal " + word + ": Node n1 status is now: " + word }
	step("first check", status("NodeHasSufficientMemory")+"\n"+status("NodeHasNoDiskPressure")+"\n"+status("NodeHasSufficientPID"), "false false false 1")
	step("no change", "", "")
	now.memory.available = 99 << 20
	step("memory pressure", status("NodeHasInsufficientMemory"), "true false false 1")
	now.memory.available, now.disk.inodes.available = 1<<30, 4
	step("disk pressure", status("NodeHasDiskPressure"), "true true false 1")
	at = at.Add(kubeletThresholds.TransitionPeriod - 3*checkInterval)
	step("within the transition period", "", "")
	step("after the transition period", status("NodeHasSufficientMemory"), "false true false 1")
	now.disk, now.images = plenty, diskObservation{isKnown: true}
	step("image file system without a size", "Warning InvalidDiskCapacity: invalid capacity 0 on image filesystem", "")
	images = append(images, runtime.Image{Tags: []string{"b:1"}, SizeBytes: 2})
	at = at.Add(imagesInterval)
	step("another image", "", "false true false 2")
	failed = errors.New("input/output error")
	at = at.Add(imagesInterval)
	step("error", "", "")
	step("same error", "", "")
	if got := log.String(); strings.Count(got, "input/output error") != 1 {
		t.Errorf("got log\n%s\nwant the error once", got)
	}
}

// TestNodeImages checks that images are sorted by size and limited, and have at most five
// names, digests first.
func TestNodeImages(t *testing.T) {
	var all []runtime.Image
	for i := range 60 {
		all = append(all, runtime.Image{Tags: []string{fmt.Sprintf("i:%02d", i)}, SizeBytes: uint64(i / 2)})
	}
	all[0] = runtime.Image{SizeBytes: 1000, Digests: []string{"i@1", "i@2"}, Tags: []string{"i:a", "i:b", "i:c", "i:d"}}
	for limit, want := range map[int]int{-1: 60, 0: 0, 50: 50, 99: 60} {
		if got := nodeImages(all, limit); got == nil || len(got) != want {
			t.Errorf("limit %d: got %d images, want %d", limit, len(got), want)
		}
	}
	got := nodeImages(all, 50)
	want := []v1.ContainerImage{
		{Names: []string{"i@1", "i@2", "i:a", "i:b", "i:c"}, SizeBytes: 1000},
		{Names: []string{"i:58"}, SizeBytes: 29}, {Names: []string{"i:59"}, SizeBytes: 29}, {Names: []string{"i:56"}, SizeBytes: 28},
	}
	if diff := cmp.Diff(want, got[:4]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestSystemOOM checks that events are recorded only for global OOM kills after the log
// was opened.
func TestSystemOOM(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kmsg")
	global := "4,99,5,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/kubepods/podu,task=a,pid=b,pid=77,uid=0\n"
	if err := os.WriteFile(path, []byte(global), 0o600); err != nil {
		t.Fatal(err)
	}
	k := openKernelLog(path)
	defer k.close()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := k.oomEvents(time.Now()); len(got) > 0 {
		t.Errorf("earlier record: got events %v", got)
	}
	for text, want := range map[string]string{
		global: "System OOM encountered, victim process: a,pid=b, pid: 77",
		"4,1,5,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/x,task_memcg=/x,task=a,pid=77,uid=0\n": "",
		"12" + global[1:]: "",
		"12,1,5,-;podd: oom-kill:,global_oom,task_memcg=/,task=lie\n": "",
	} {
		if _, err := io.WriteString(f, text); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, e := range k.oomEvents(time.Now()) {
			got += e.Message
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if none := openKernelLog(path + "/none"); none != nil || len(none.oomEvents(time.Now())) > 0 {
		t.Error("missing log: got a log or events")
	}
}
