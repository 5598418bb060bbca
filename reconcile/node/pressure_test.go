package node

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"podd/reconcile/event"
	"podd/reconcile/eviction/pressure"
	"podd/runtime"
)

// fakeStorage returns the mount points of the runtime.
type fakeStorage struct {
	images, layers []runtime.Filesystem
	err            error
	hangs, fails   atomic.Bool
}

func (s *fakeStorage) ImageFsInfo(ctx context.Context) (images, layers []runtime.Filesystem, err error) {
	if s.hangs.Load() {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	}
	if s.fails.Load() {
		return nil, nil, errors.New("unavailable")
	}
	return s.images, s.layers, s.err
}

func newTestObserver(t *testing.T, s *fakeStorage, log *strings.Builder) (p *PressureObserver, events *[]event.Event) {
	events = &[]event.Event{}
	return NewPressureObserver(ObserverOptions{
		RootDir: t.TempDir(), Runtime: s, Log: slog.New(slog.NewTextHandler(log, nil)),
		MeasureAllPods: func() (int64, int64, error) { return 30, 100, nil },
		Record:         func(all []event.Event) { *events = append(*events, all...) },
	}), events
}

// TestPressureObserver checks the signals and the layout before and after the runtime responds.
func TestPressureObserver(t *testing.T) {
	var log strings.Builder
	storage := &fakeStorage{err: errors.New("unavailable")}
	p, _ := newTestObserver(t, storage, &log)
	if _, ok := p.locate(t.Context()); ok {
		t.Error("failed request: got mount points, want none")
	}
	o := p.Observe()
	for _, s := range []pressure.Signal{pressure.MemoryAvailable, pressure.PIDAvailable, pressure.NodefsAvailable, pressure.NodefsInodesFree} {
		if got := o.Signals[s]; got.Capacity <= 0 || got.Available <= 0 || got.Available > got.Capacity {
			t.Errorf("%s: got %+v, want an amount up to the capacity", s, got)
		}
	}
	if got := o.Signals[pressure.PIDAvailable]; got.Available == got.Capacity {
		t.Errorf("%s: got %+v, want less than the capacity, because processes run", pressure.PIDAvailable, got)
	}
	if got, want := o.Signals[pressure.AllocatableMemoryAvailable], (pressure.Observation{Capacity: 100, Available: 70}); got != want {
		t.Errorf("allocatable memory: got %+v, want %+v", got, want)
	}
	if _, ok := o.Signals[pressure.ImagefsAvailable]; ok || o.Layout.Nodefs == 0 || o.Layout.Imagefs != o.Layout.Nodefs || o.Layout.Containerfs != o.Layout.Nodefs {
		t.Errorf("before the runtime responds: got layout %+v, image file system observed: %t; want the same file system for all, observed: false", o.Layout, ok)
	}
	storage.err, storage.images = nil, []runtime.Filesystem{{Mountpoint: "/proc"}}
	storage.layers = []runtime.Filesystem{{Mountpoint: t.TempDir()}}
	s, ok := p.locate(t.Context())
	if !ok {
		t.Fatal("successful request: got no mount points, want some")
	}
	p.newStorage <- s
	o = p.Observe()
	if _, ok := o.Signals[pressure.ContainerfsInodesFree]; !ok || o.Layout.Imagefs == o.Layout.Nodefs || o.Layout.Containerfs != o.Layout.Nodefs {
		t.Errorf("separate images: got layout %+v, containerfs observed: %t; want another file system for images only, observed: true", o.Layout, ok)
	}
	if log.Len() > 0 {
		t.Errorf("got log %s, want none", log.String())
	}
}

// TestHasImageDisk checks that a file system of images or of writable layers that is not the file system of
// the pods is found.
func TestHasImageDisk(t *testing.T) {
	dir := t.TempDir()
	here, other, missing := runtime.Filesystem{Mountpoint: dir}, runtime.Filesystem{Mountpoint: "/proc"}, runtime.Filesystem{Mountpoint: dir + "/missing"}
	for name, tt := range map[string]struct {
		runtime *fakeStorage
		want    bool
		err     string
	}{
		"no file system":  {runtime: &fakeStorage{}},
		"one file system": {runtime: &fakeStorage{images: []runtime.Filesystem{here}, layers: []runtime.Filesystem{here}}},
		"separate images": {runtime: &fakeStorage{images: []runtime.Filesystem{other}, layers: []runtime.Filesystem{here}}, want: true},
		"separate layers": {runtime: &fakeStorage{images: []runtime.Filesystem{here}, layers: []runtime.Filesystem{other}}, want: true},
		"runtime failed":  {runtime: &fakeStorage{err: errors.New("unavailable")}, err: "requesting the file systems of images: unavailable"},
		"missing on host": {runtime: &fakeStorage{images: []runtime.Filesystem{missing}}, err: "no such file or directory"},
	} {
		got, err := HasImageDisk(t.Context(), tt.runtime, dir)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: got error %v, want %q", name, err, tt.err)
			}
			continue
		}
		if err != nil || got != tt.want {
			t.Errorf("%s: got %t, error %v; want %t", name, got, err, tt.want)
		}
	}
}

// TestPressureObserver_Hangs checks that a runtime that does not respond does not delay
// observations, and that its last mount points remain in use.
func TestPressureObserver_Hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		storage := &fakeStorage{images: []runtime.Filesystem{{Mountpoint: t.TempDir()}}}
		p, _ := newTestObserver(t, storage, &log)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		synctest.Wait()
		storage.hangs.Store(true)
		for range 30 {
			time.Sleep(10 * time.Second)
			before := time.Now()
			if _, ok := p.Observe().Signals[pressure.ImagefsAvailable]; !ok || !time.Now().Equal(before) {
				t.Fatalf("image file system: got observed: %t after %s; want observed: true after 0s", ok, time.Since(before))
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestPressureObserver_Problems checks that an error is logged once, and that the event about an
// image file system without a size is recorded once.
func TestPressureObserver_Problems(t *testing.T) {
	var log strings.Builder
	p, events := newTestObserver(t, &fakeStorage{}, &log)
	p.storage = storage{images: "/proc", layers: "/proc"} // a file system without a size
	p.o.MeasureAllPods = func() (int64, int64, error) { return 0, 0, errors.New("input/output error") }
	for range 3 {
		p.Observe()
	}
	if got := strings.Count(log.String(), "input/output error"); got != 1 {
		t.Errorf("got the error %d times in the log, want once:\n%s", got, log.String())
	}
	if len(*events) != 1 || (*events)[0].Reason != "InvalidDiskCapacity" {
		t.Errorf("events: got %+v, want InvalidDiskCapacity once", *events)
	}
	p.storage = storage{images: "/does-not-exist", layers: "/does-not-exist"}
	if o := p.Observe(); o.Layout.Imagefs != 0 {
		t.Errorf("missing file system: got layout %+v, want Imagefs 0", o.Layout)
	}
}

// TestPressureObserver_NoPods checks that a shortage of the pods' memory ends if the cgroup of all pods
// was removed or has no limit any more. If the cgroup cannot be read, the shortage is unknown.
func TestPressureObserver_NoPods(t *testing.T) {
	var log strings.Builder
	p, _ := newTestObserver(t, &fakeStorage{}, &log)
	policy := pressure.Policy{Thresholds: []pressure.Threshold{{Signal: pressure.AllocatableMemoryAvailable, Limit: pressure.Limit{Amount: 100}}}}
	var s pressure.State
	for _, tt := range []struct {
		name              string
		workingSet, limit int64
		err               error
		want              bool // condition
	}{
		{"short of memory", 950, 1000, nil, true},
		{"unreadable", 0, 0, errors.New("input/output error"), true},
		{"removed", 0, 0, nil, false},
		{"without a limit", 950, 0, nil, false},
	} {
		p.o.MeasureAllPods = func() (int64, int64, error) { return tt.workingSet, tt.limit, tt.err }
		d := pressure.Decide(policy, s, p.Observe(), time.Now())
		if s = d.State; d.Conditions.Memory != tt.want {
			t.Errorf("%s: got condition %t, want %t", tt.name, d.Conditions.Memory, tt.want)
		}
	}
}

// TestPressureObserver_Completed checks that Completed reports the first mount points of the runtime
// soon after the runtime responds, and that the next observation is complete.
func TestPressureObserver_Completed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		storage := &fakeStorage{images: []runtime.Filesystem{{Mountpoint: "/proc"}}}
		storage.fails.Store(true)
		p, _ := newTestObserver(t, storage, &log)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		time.Sleep(time.Minute)
		if p.Observe().IsComplete {
			t.Error("runtime unavailable: got a complete observation, want an incomplete one")
		}
		storage.fails.Store(false)
		begin := time.Now()
		<-p.Completed()
		if took := time.Since(begin); took > firstLocateRetry || !p.Observe().IsComplete {
			t.Errorf("after %s: got an incomplete observation, want a complete one within %s", took, firstLocateRetry)
		}
		time.Sleep(3 * locateInterval) // another result must not close the channel again
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
