package nodestatus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"podd/reconcile/event"
	"podd/runtime"
)

// TestWatcher checks that the images are published only if they have changed. After an error, the next
// check must list the images again, without waiting for imagesInterval.
func TestWatcher(t *testing.T) {
	images := []runtime.Image{{Tags: []string{"a:1"}, SizeBytes: 1}}
	var listErr error   // the error of listImages
	var published []int // the number of images in each call of publish in the current step
	w := &watcher{
		maxImages:  50,
		listImages: func(context.Context) ([]runtime.Image, error) { return images, listErr },
		record:     func([]event.Event) {},
		publish:    func(all []v1.ContainerImage) { published = append(published, len(all)) },
	}
	at := time.Unix(1000, 0)
	step := func(name string, after time.Duration, want ...int) {
		t.Helper()
		published, at = nil, at.Add(after)
		w.check(t.Context(), at)
		if !slices.Equal(published, want) {
			t.Errorf("%s: got calls of publish with %v images, want %v", name, published, want)
		}
	}
	step("first check", 0, 1)
	images = append(images, runtime.Image{Tags: []string{"b:1"}, SizeBytes: 2})
	step("before imagesInterval has passed", checkInterval)
	step("another image", imagesInterval, 2)
	step("no change", imagesInterval)
	listErr = errors.New("input/output error")
	step("error", imagesInterval)
	listErr, images = nil, nil
	step("after the error", checkInterval, 0)
}

// TestNodeImages checks that the largest images are returned first, that their number is limited, and
// that each image has at most five names, digests before tags.
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
		t.Errorf("largest images (-want +got):\n%s", diff)
	}
}

// TestSystemOOM checks that only global OOM kills that the kernel has logged after podd opened the log
// have an event.
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
		t.Errorf("record before the log was opened: got events %v, want none", got)
	}
	for text, want := range map[string]string{
		global: "System OOM encountered, victim process: a,pid=b, pid: 77",
		"4,1,5,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/x,task_memcg=/x,task=a,pid=77,uid=0\n": "",
		// A process, and not the kernel, has written a record with a priority of two digits.
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
			t.Errorf("record %q: got event %q, want %q", text, got, want)
		}
	}
	if none := openKernelLog(path + "/none"); none != nil || len(none.oomEvents(time.Now())) > 0 {
		t.Errorf("missing log: got %v, want nil without events", none)
	}
}
