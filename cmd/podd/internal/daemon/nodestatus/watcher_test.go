package nodestatus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"podd/reconcile/event"
	"podd/runtime"
	"podd/runtime/kernellog"
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

// TestSystemOOMEvents checks that events are recorded only for global OOM kills, and that their
// number is limited.
func TestSystemOOMEvents(t *testing.T) {
	got := systemOOMEvents([]kernellog.OOMKill{
		{LimitedCgroup: "/x", VictimCgroup: "/x", ProcessName: "limited", PID: 1}, {VictimCgroup: "/x", ProcessName: "a", PID: 77},
	}, time.Now())
	if len(got) != 1 || got[0].Reason != "SystemOOM" || got[0].Message != "System OOM encountered, victim process: a, pid: 77" {
		t.Errorf("got %+v, want one event SystemOOM of process a", got)
	}
	if got := systemOOMEvents(make([]kernellog.OOMKill, 100), time.Now()); len(got) != maxOOMEvents {
		t.Errorf("100 OOM kills: got %d events, want %d", len(got), maxOOMEvents)
	}
}
