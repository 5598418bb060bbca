package images_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/event"
	"podd/reconcile/gc"
	"podd/reconcile/gc/gctrace"
	"podd/reconcile/gc/images"
	"podd/reconcile/state"
	"podd/runtime"
	"podd/runtime/runtimetest"
)

const source = "/etc/podd"

// A fixture is a Manager with an in-memory runtime in a synctest bubble. The disk has 1000 bytes and
// contains the images and other files.
type fixture struct {
	*runtimetest.Runtime
	*images.Manager
	t          *testing.T
	pods       *images.Pods
	recordFile string
	policy     gc.Policy
	tracer     trace.Tracer   // may be nil
	calls      images.Runtime // the runtime that the Manager uses; nil means Runtime.Client
	boot       string         // ID of the boot
	bootTime   time.Time

	mu         sync.Mutex // guards the following fields
	otherBytes int64      // disk usage of files that are not images
	isUnsized  bool       // the disk has no capacity
	events     []string
	collected  map[gc.Reason]int

	stop func() // stops Run
}

func run(t *testing.T, policy gc.Policy, test func(f *fixture)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{
			Runtime: runtimetest.New(t, runtimetest.Options{}), t: t, recordFile: filepath.Join(dir, "images.json"), policy: policy,
			boot: "one", bootTime: time.Now().Add(-time.Hour), collected: map[gc.Reason]int{},
		}
		test(f)
		if f.stop != nil {
			f.stop()
		}
	})
}

// start starts a Manager before the sources of pods are read.
func (f *fixture) start() {
	f.pods = images.NewPods([]string{source})
	calls := f.calls
	if calls == nil {
		calls = f.Client
	}
	f.Manager = images.New(images.Options{
		Runtime: calls, Policy: f.policy, SandboxImage: "pause:1", Pods: f.pods, StatDisk: f.statDisk, RecordFile: f.recordFile,
		Clock: func() state.ClockReading {
			return state.ClockReading{Now: time.Now(), BootID: f.boot, SinceBoot: time.Since(f.bootTime)}
		},
		Record: func(all []event.Event) {
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, e := range all {
				f.events = append(f.events, e.Reason+": "+e.Message)
			}
		},
		OnCollected: func(r gc.Reason) { f.collected[r]++ }, Tracer: f.tracer, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(f.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = f.Manager.Run(ctx) }()
	f.stop = func() { cancel(); <-done }
}

// run starts a Manager with these pods.
func (f *fixture) run(pods ...*manifest.Pod) {
	f.start()
	f.publish(pods...)
}

// publish sets the desired pods and waits for the round that it may cause.
func (f *fixture) publish(pods ...*manifest.Pod) {
	set := &manifest.Set{Pods: map[types.NamespacedName]*manifest.Pod{}, CompleteSources: map[string]bool{source: true}}
	for _, p := range pods {
		set.Pods[p.Key] = p
	}
	f.pods.Apply(reconcile.Change{Set: set, SetChanged: true})
	synctest.Wait()
}

// restart stops the Manager and starts another one with these pods.
func (f *fixture) restart(pods ...*manifest.Pod) {
	f.stop()
	f.run(pods...)
}

// statDisk returns the size of the disk.
func (f *fixture) statDisk(mountpoint string) (gc.Disk, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isUnsized {
		return gc.Disk{}, nil
	}
	if mountpoint != "/var/lib/runtimetest" {
		return gc.Disk{}, errors.New("not the image file system")
	}
	fs, _, err := f.Client.ImageFsInfo(f.t.Context())
	if err != nil {
		return gc.Disk{}, err
	}
	return gc.Disk{CapacityBytes: 1000, AvailableBytes: 1000 - f.otherBytes - int64(fs[0].UsedBytes)}, nil
}

// setOther sets the disk usage of files that are not images.
func (f *fixture) setOther(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.otherBytes = bytes
}

// add adds an image with a size.
func (f *fixture) add(name string, size uint64) {
	f.AddImage(runtimetest.Image{Name: name, Size: size})
}

// want checks which images are on the node.
func (f *fixture) want(names ...string) {
	f.t.Helper()
	all, err := f.ListImages(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	got := []string{}
	for _, i := range all {
		got = append(got, i.Tags[0])
	}
	slices.Sort(got)
	slices.Sort(names)
	if diff := cmp.Diff(append([]string{}, names...), got); diff != "" {
		f.t.Errorf("images (-want +got):\n%s", diff)
	}
}

// wantEvents checks the events since the last call.
func (f *fixture) wantEvents(want ...string) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if diff := cmp.Diff(append([]string{}, want...), append([]string{}, f.events...)); diff != "" {
		f.t.Errorf("events (-want +got):\n%s", diff)
	}
	f.events = nil
}

// createContainer creates a container of a pod that is not a pod of this podd.
func (f *fixture) createContainer(pod, image string, volumes ...string) (sandbox string) {
	f.t.Helper()
	config := &cri.PodSandboxConfig{Metadata: &cri.PodSandboxMetadata{Name: pod, Namespace: "other", Uid: pod}}
	sandbox, err := f.RunPodSandbox(f.t.Context(), config, "")
	if err != nil {
		f.t.Fatal(err)
	}
	c := &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: "main"}, Image: &cri.ImageSpec{Image: image},
		Labels: map[string]string{runtime.LabelPodName: pod, runtime.LabelPodNamespace: "other"},
	}
	for _, v := range volumes {
		c.Mounts = append(c.Mounts, &cri.Mount{ContainerPath: "/" + v, Image: &cri.ImageSpec{Image: v}})
	}
	if _, err := f.CreateContainer(f.t.Context(), sandbox, c, config); err != nil {
		f.t.Fatal(err)
	}
	return sandbox
}

// removeSandbox removes a sandbox with its containers.
func (f *fixture) removeSandbox(id string) {
	f.t.Helper()
	if err := f.RemovePodSandbox(f.t.Context(), id); err != nil {
		f.t.Fatal(err)
	}
}

// pod returns a pod with an init container, a container and an image volume.
func pod(name string, initImage, image, volume string) *manifest.Pod {
	spec := v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: image}}}
	if initImage != "" {
		spec.InitContainers = []v1.Container{{Name: "init", Image: initImage}}
	}
	if volume != "" {
		spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: volume}}}}
	}
	return &manifest.Pod{Key: types.NamespacedName{Namespace: "default", Name: name}, Object: &v1.Pod{Spec: spec}}
}

// sleep advances the time of the bubble, and then waits until no goroutine can continue.
func sleep(d time.Duration) { <-time.After(d); synctest.Wait() }

// policy is the default of the kubelet.
var policy = gc.Policy{HighPercent: 85, LowPercent: 80, MinAge: 2 * time.Minute}

// TestCollect checks that unused images are removed when the disk usage reaches the high threshold,
// the least recently used image first, and that images of pods and containers are kept.
func TestCollect(t *testing.T) {
	run(t, policy, func(f *fixture) {
		for _, name := range []string{"pause:1", "web:1", "init:1", "data:1", "foreign:1", "mounted:1", "old:1", "older:1"} {
			f.add(name, 100)
		}
		f.AddImage(runtimetest.Image{Name: "pinned:1", Size: 10, Pinned: true})
		job := f.createContainer("job", "old:1")
		sandbox := f.createContainer("foreign", "foreign:1", "mounted:1")
		f.run(pod("web", "init:1", "web:1", "data:1"))
		f.want("pause:1", "web:1", "init:1", "data:1", "foreign:1", "mounted:1", "old:1", "older:1", "pinned:1") // not old enough
		f.removeSandbox(job)
		f.wantEvents()
		f.setOther(50) // 86 %
		sleep(5 * time.Minute)
		f.want("pause:1", "web:1", "init:1", "data:1", "foreign:1", "mounted:1", "old:1", "pinned:1")
		if want := map[gc.Reason]int{gc.Space: 1}; !maps.Equal(f.collected, want) {
			f.t.Errorf("collected images by reason: got %v, want %v", f.collected, want)
		}
		f.wantEvents()
		f.removeSandbox(sandbox)
		f.setOther(400)
		sleep(5 * time.Minute)
		f.want("pause:1", "web:1", "init:1", "data:1", "pinned:1")
	})
}

// TestReclaim_FinishedPod checks that a pod that has finished at its source needs its image only while it
// has a container on the node, because it never runs again.
func TestReclaim_FinishedPod(t *testing.T) {
	run(t, policy, func(f *fixture) {
		for _, name := range []string{"waits:1", "finished:1", "data:1", "kept:1"} {
			f.add(name, 100)
		}
		finished := func(name, image, volume string) *manifest.Pod {
			p := pod(name, "", image, volume)
			p.Traits.HasStateAtSource, p.Object.Status.Phase = true, v1.PodSucceeded
			return p
		}
		f.createContainer("kept", "kept:1")
		pods := []*manifest.Pod{pod("waits", "", "waits:1", ""), finished("finished", "finished:1", "data:1"), finished("kept", "kept:1", "")}
		f.run(pods...)
		for _, p := range pods {
			f.pods.Apply(reconcile.Change{Reports: []*state.Report{{Key: p.Key, Pod: p.Object, Version: p}}})
		}
		sleep(time.Minute)
		if _, err := f.ReclaimAll(f.t.Context()); err != nil {
			f.t.Error(err)
		}
		f.want("waits:1", "kept:1")
	})
}

// A customSandbox is a Runtime that creates sandboxes from another image.
type customSandbox struct {
	images.Runtime
	image string
}

func (r customSandbox) Settings(context.Context) (runtime.Settings, error) {
	return runtime.Settings{SandboxImage: r.image}, nil
}

// TestPrune_Users checks that the images of all pods are kept that may still start: of desired pods, of
// pods that their source deletes, of the versions in reports, and of ephemeral containers, which only the
// reported pod contains. The sandbox image of the runtime is kept, too. The images of removed pods are
// removed.
func TestPrune_Users(t *testing.T) {
	run(t, policy, func(f *fixture) {
		kept := []string{"desired:1", "terminating:1", "version:1", "successor:1", "debug:1", "ephemeral:1", "custom-pause:1"}
		for _, name := range append([]string{"removed:1"}, kept...) {
			f.add(name, 1)
		}
		f.calls = customSandbox{f.Client, "custom-pause:1"}
		f.run()
		desired, terminating := pod("desired", "", "desired:1", ""), pod("terminating", "", "terminating:1", "")
		ephemeral := pod("ephemeral", "", "absent:1", "")
		ephemeral.Object.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Image: "ephemeral:1"}}}
		version, removed := pod("version", "", "version:1", ""), pod("removed", "", "removed:1", "")
		withDebugger := pod("version", "", "absent:1", "").Object
		withDebugger.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Image: "debug:1"}}}
		reports := []*state.Report{
			{Key: version.Key, Version: version, Successor: pod("version", "", "successor:1", ""), Pod: withDebugger},
			{Key: removed.Key, Version: removed},
		}
		f.pods.Apply(reconcile.Change{Reports: reports, Set: &manifest.Set{
			Pods:            map[types.NamespacedName]*manifest.Pod{desired.Key: desired, ephemeral.Key: ephemeral},
			TerminatingPods: map[types.NamespacedName]*manifest.Pod{terminating.Key: terminating},
			CompleteSources: map[string]bool{source: true},
		}})
		f.pods.Apply(reconcile.Change{Removed: reports[1:]})
		if _, err := f.Prune(f.t.Context()); err != nil {
			f.t.Error(err)
		}
		f.want(kept...)
	})
}

// TestCollect_StoresUseAtStop checks that the use of an image since the last round is stored when podd
// stops, so that the age of the image begins at that time.
func TestCollect_StoresUseAtStop(t *testing.T) {
	run(t, gc.Policy{HighPercent: 100, LowPercent: 80, MaxAge: time.Hour}, func(f *fixture) {
		f.add("web:1", 1)
		f.run()
		sleep(50*time.Minute + time.Second)
		f.publish(pod("web", "", "web:1", ""))
		if _, err := f.List(f.t.Context()); err != nil { // finds that the image is in use
			f.t.Fatal(err)
		}
		f.restart()
		sleep(50 * time.Minute)
		f.want("web:1")
	})
}

// TestCollect_UnknownPods checks that no image is removed, not even at the request of a user, until
// all sources were read and the runtime was observed.
func TestCollect_UnknownPods(t *testing.T) {
	run(t, gc.Policy{HighPercent: 1, LowPercent: 0, MaxAge: time.Minute}, func(f *fixture) {
		f.add("web:1", 100)
		f.start()
		set := &manifest.Set{CompleteSources: map[string]bool{source: true}}
		for _, c := range []reconcile.Change{{}, {Set: &manifest.Set{}}, {Set: set, Starting: true}} {
			f.pods.Apply(c)
			sleep(time.Hour)
			f.want("web:1")
		}
		for name, request := range map[string]func(context.Context) error{
			"Prune":      func(ctx context.Context) error { _, err := f.Prune(ctx); return err },
			"Remove":     func(ctx context.Context) error { _, err := f.Remove(ctx, "web:1"); return err },
			"Reclaim":    func(ctx context.Context) error { _, err := f.Reclaim(ctx); return err },
			"ReclaimAll": func(ctx context.Context) error { _, err := f.ReclaimAll(ctx); return err },
			"List":       func(ctx context.Context) error { _, err := f.List(ctx); return err },
		} {
			if err := request(f.t.Context()); err == nil || !strings.Contains(err.Error(), "not read all sources") {
				f.t.Errorf("%s: got error %v, want one about the sources", name, err)
			}
		}
		f.want("web:1")
		f.publish()
		sleep(10 * time.Minute)
		f.want()
	})
}

// TestCollect_MaxAge checks that an image is removed when it was not used for the maximum age. The
// age survives a restart of podd, and a step of the wall clock does not change it.
func TestCollect_MaxAge(t *testing.T) {
	const maxAge = 24 * time.Hour
	run(t, gc.Policy{HighPercent: 100, LowPercent: 80, MinAge: time.Minute, MaxAge: maxAge}, func(f *fixture) {
		f.add("web:1", 1)
		f.add("never:1", 1)
		f.run(pod("web", "", "web:1", ""))
		sleep(maxAge - 2*time.Hour)
		f.restart() // web is removed
		f.want("web:1", "never:1")
		sleep(2*time.Hour + 10*time.Minute)
		f.want("web:1")
		if want := map[gc.Reason]int{gc.Age: 1}; !maps.Equal(f.collected, want) {
			f.t.Errorf("collected images by reason: got %v, want %v", f.collected, want)
		}
		// After another boot, the time during which the host was off does not count.
		f.stop()
		sleep(100 * maxAge)
		f.boot, f.bootTime = "two", time.Now()
		f.run()
		sleep(maxAge - 4*time.Hour)
		f.want("web:1")
		sleep(2 * time.Hour)
		f.want()
	})
}

// TestCollect_ShortMaxAge checks that an image is removed soon after a maximum age that is shorter
// than the usual interval between rounds, even if the image was added after a round.
func TestCollect_ShortMaxAge(t *testing.T) {
	run(t, gc.Policy{HighPercent: 100, LowPercent: 80, MaxAge: time.Minute}, func(f *fixture) {
		f.run()
		f.add("web:1", 1)
		sleep(50 * time.Second)
		f.want("web:1")
		sleep(4 * time.Minute)
		f.want()
	})
}

// TestCollect_LostRecord checks that all images are treated as new if the record file is damaged.
func TestCollect_LostRecord(t *testing.T) {
	run(t, gc.Policy{HighPercent: 100, LowPercent: 80, MaxAge: time.Hour}, func(f *fixture) {
		f.add("web:1", 1)
		f.run()
		sleep(50 * time.Minute)
		f.stop()
		data, err := os.ReadFile(f.recordFile)
		if err != nil {
			f.t.Fatal(err)
		}
		data[len(data)/2] ^= 1
		if err := os.WriteFile(f.recordFile, data, 0o600); err != nil {
			f.t.Fatal(err)
		}
		f.run()
		sleep(50 * time.Minute)
		f.want("web:1")
		sleep(20 * time.Minute)
		f.want()
	})
}

// TestCollect_Fails checks the events of failures: a failure to free enough space at once, and other
// failures when they are repeated.
func TestCollect_Fails(t *testing.T) {
	run(t, policy, func(f *fixture) {
		f.add("old:1", 100)
		f.add("stuck:1", 100)
		f.run()
		f.setOther(800)
		stuck, _, _ := f.ImageStatus(f.t.Context(), "stuck:1")
		remove := f.Inject(runtimetest.Fault{Method: "RemoveImage", Err: errors.New("read-only file system"),
			Match: func(q any) bool { return q.(*cri.RemoveImageRequest).GetImage().GetImage() == stuck.ID }})
		sleep(5 * time.Minute)
		f.want("stuck:1")
		f.wantEvents()
		sleep(5 * time.Minute)
		f.wantEvents("ImageGCFailed: removing image stuck:1: read-only file system")
		remove()
		f.setOther(900)
		sleep(5 * time.Minute)
		f.want()
		const full = "90% of the 1Ki of the image file system are used; removing unused images freed 1Ki of the required 1Ki; " +
			"the space is used by images in use, volumes, logs or other files"
		f.wantEvents("FreeDiskSpaceFailed: "+full, "ImageGCFailed: "+full)
		f.setOther(0)
		sleep(5 * time.Minute)
		f.wantEvents()
		f.mu.Lock()
		f.isUnsized = true
		f.mu.Unlock()
		sleep(5 * time.Minute)
		f.wantEvents()
		sleep(5 * time.Minute)
		f.wantEvents("ImageGCFailed: invalid capacity 0 on image filesystem")
	})
}

// A removalSpans is a Runtime that records the spans in the contexts of removals.
type removalSpans struct {
	images.Runtime
	spans []trace.SpanContext
}

func (r *removalSpans) RemoveImage(ctx context.Context, id string) error {
	r.spans = append(r.spans, trace.SpanContextFromContext(ctx))
	return r.Runtime.RemoveImage(ctx, id)
}

// TestCollect_Traced checks that each round has a span, in which images are removed.
func TestCollect_Traced(t *testing.T) {
	run(t, policy, func(f *fixture) {
		spans := tracetest.NewSpanRecorder()
		f.tracer = sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)).Tracer("test")
		removals := &removalSpans{Runtime: f.Client}
		f.calls = removals
		f.add("old:1", 100)
		f.run()
		f.setOther(800)
		sleep(5 * time.Minute)
		f.want()
		ended := spans.Ended()
		if len(ended) != 2 || len(removals.spans) != 1 {
			f.t.Fatalf("two rounds: got %d spans and %d removals, want 2 spans and 1 removal", len(ended), len(removals.spans))
		}
		if s := ended[1]; s.Name() != gctrace.Images || !s.SpanContext().Equal(removals.spans[0]) {
			f.t.Errorf("got span %s, want span %s in the context of the removal", s.Name(), gctrace.Images)
		}
	})
}

// TestCollect_UnknownUsers checks that no image is removed if the runtime does not report all users
// of images.
func TestCollect_UnknownUsers(t *testing.T) {
	for _, method := range []string{"ListContainers", "ContainerStatus", "ImageStatus", "Status", "ListImages"} {
		t.Run(method, func(t *testing.T) {
			run(t, gc.Policy{HighPercent: 1, LowPercent: 0}, func(f *fixture) {
				f.add("unused:1", 100)
				f.add("old:1", 100)
				f.createContainer("job", "old:1")
				remove := f.Inject(runtimetest.Fault{Method: method, Err: errors.New("busy")})
				f.run(pod("web", "", "web:1", ""))
				sleep(time.Hour)
				remove()
				f.want("old:1", "unused:1")
				sleep(5 * time.Minute)
				f.want("old:1")
			})
		})
	}
}

// TestCollect_UsedMeanwhile checks that an image is kept if a pod begins to use it while other images
// are being removed.
func TestCollect_UsedMeanwhile(t *testing.T) {
	run(t, gc.Policy{HighPercent: 1, LowPercent: 0, MinAge: time.Minute}, func(f *fixture) {
		f.add("a:1", 100)
		f.run()
		sleep(time.Second)
		f.add("b:1", 100)
		f.Inject(runtimetest.Fault{Method: "RemoveImage", Nth: 1, AfterEffect: true, Delay: time.Second, OnApply: func() {
			f.createContainer("job", "b:1")
		}})
		sleep(30 * time.Minute)
		f.want("b:1")
	})
}

// TestPrune_ManyImages checks that the number of calls is proportional to the number of images, and that
// the list of all images, which is long, is requested once.
func TestPrune_ManyImages(t *testing.T) {
	run(t, policy, func(f *fixture) {
		f.add("web:1", 1)
		f.createContainer("job", "web:1")
		f.run(pod("web", "", "short", ""))
		calls := func(n int) int {
			for i := range n {
				f.add(fmt.Sprintf("unused:%d", i), 1)
			}
			f.ForgetCalls()
			if all, err := f.Prune(f.t.Context()); len(all) != n || err != nil {
				f.t.Errorf("%d unused images: got %d removed images and error %v; want all images removed and no error", n, len(all), err)
			}
			if n := len(f.Calls("ListImages")); n != 1 {
				f.t.Errorf("got %d lists of all images, want 1", n)
			}
			return len(f.Calls())
		}
		if ten, twenty, many := calls(10), calls(20), calls(400); many-twenty != 38*(twenty-ten) {
			f.t.Errorf("got %d calls for 10 images, %d for 20 and %d for 400; want calls in proportion", ten, twenty, many)
		}
		f.want("web:1")
	})
}

// TestPrune_ChangedMeanwhile checks that an image is kept if it changes while other images are being
// removed. Each case makes one of the images a and b necessary while the other one is being removed.
func TestPrune_ChangedMeanwhile(t *testing.T) {
	for name, change := range map[string]func(f *fixture, kept string){
		"a pod needs the image":                    func(f *fixture, kept string) { f.publish(pod("web", "", kept, "")) },
		"a pod needs the image of a volume":        func(f *fixture, kept string) { f.publish(pod("web", "", "absent:1", kept)) },
		"a container mounts the image":             func(f *fixture, kept string) { f.createContainer("job", "base:1", kept) },
		"the image gets a name that a pod needs":   func(f *fixture, kept string) { f.AddImage(runtimetest.Image{Name: "web:1", ID: f.id(kept)}) },
		"the image is pinned by the configuration": func(f *fixture, kept string) { f.AddImage(runtimetest.Image{Name: kept, ID: f.id(kept), Pinned: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, policy, func(f *fixture) {
				f.AddImage(runtimetest.Image{Name: "base:1", Pinned: true})
				f.add("a:1", 1)
				f.add("b:1", 1)
				f.run(pod("web", "", "web:1", ""))
				var kept string
				f.Inject(runtimetest.Fault{Method: "RemoveImage", Nth: 1, AfterEffect: true, Delay: time.Second, OnApply: func() {
					kept = "a:1"
					if f.id(kept) == "" {
						kept = "b:1"
					}
					change(f, kept)
				}})
				removed, err := f.Prune(f.t.Context())
				if len(removed) != 1 || err != nil {
					t.Errorf("got the removed images %+v, error %v; want one image", removed, err)
				}
				f.want("base:1", kept)
			})
		})
	}
}

// id returns the ID of an image, or "" if the image is not on the node.
func (f *fixture) id(name string) string {
	f.t.Helper()
	i, _, err := f.ImageStatus(f.t.Context(), name)
	if err != nil {
		f.t.Fatal(err)
	}
	return i.ID
}

// TestRequests checks the requests of users and of the eviction.
func TestRequests(t *testing.T) {
	run(t, policy, func(f *fixture) {
		for _, name := range []string{"pause:1", "web:1", "old:1", "older:1"} {
			f.add(name, 10)
		}
		f.AddImage(runtimetest.Image{Name: "pinned:1", Size: 10, Pinned: true})
		f.createContainer("job", "web:1")
		f.run(pod("web", "", "web:1", ""), pod("db", "", "web:1", ""))
		l, err := f.List(f.t.Context())
		if err != nil {
			f.t.Fatal(err)
		}
		users := map[string][]string{}
		for _, i := range l.Images {
			users[i.Names[0]] = i.Users
		}
		if diff := cmp.Diff(map[string][]string{"pause:1": nil, "pinned:1": nil, "old:1": nil, "older:1": nil, "web:1": {"default/db", "default/web", "other/job"}}, users); diff != "" {
			f.t.Errorf("users (-want +got):\n%s", diff)
		}
		if len(l.Decision.Removals) > 0 || len(l.Decision.Kept) != 5 || l.Decision.UsedPercent != 5 {
			f.t.Errorf("got decision %+v, want 5 images that are kept at 5%%", l.Decision)
		}
		for name, want := range map[string]string{
			"web:1":    `image "web:1" is in use by default/db, default/web, other/job; remove these pods first`,
			"pause:1":  `the runtime creates sandboxes from image "pause:1"`,
			"pinned:1": `image "pinned:1" is pinned by the configuration of the runtime`,
			"absent:1": `no image "absent:1" on this node; "podd images" lists the images`,
		} {
			if _, err := f.Remove(f.t.Context(), name); err == nil || err.Error() != want {
				f.t.Errorf("removing %s: got error %v, want %q", name, err, want)
			}
		}
		removed, err := f.Remove(f.t.Context(), "old:1")
		if err != nil || removed.Names[0] != "old:1" {
			f.t.Errorf("removing old:1: got %+v (error %v), want image old:1", removed, err)
		}
		f.want("pause:1", "web:1", "older:1", "pinned:1")
		if freed, err := f.Reclaim(f.t.Context()); freed != 0 || err != nil {
			f.t.Errorf("Reclaim before the minimum age: got %d bytes, error %v; want 0", freed, err)
		}
		sleep(2 * time.Minute)
		if freed, err := f.Reclaim(f.t.Context()); freed != 10 || err != nil {
			f.t.Errorf("Reclaim: got %d bytes, error %v; want 10", freed, err)
		}
		f.want("pause:1", "web:1", "pinned:1")
		f.add("young:1", 5)
		if freed, err := f.ReclaimAll(f.t.Context()); freed != 5 || err != nil {
			f.t.Errorf("ReclaimAll: got %d bytes, error %v; want 5", freed, err)
		}
		f.want("pause:1", "web:1", "pinned:1")
		f.add("new:1", 5)
		f.add("newer:1", 5)
		if all, err := f.Prune(f.t.Context()); len(all) != 2 || err != nil {
			f.t.Errorf("Prune: got %+v, error %v; want 2 images", all, err)
		}
		f.want("pause:1", "web:1", "pinned:1")
		if want := map[gc.Reason]int{gc.Space: 2}; !maps.Equal(f.collected, want) {
			f.t.Errorf("collected images by reason: got %v, want %v", f.collected, want)
		}
	})
}

// TestRequests_Hang checks that a request returns when its context is done, although the runtime
// does not respond, and that requests fail after Run has returned.
func TestRequests_Hang(t *testing.T) {
	run(t, policy, func(f *fixture) {
		f.run()
		f.Inject(runtimetest.Fault{Method: "ListImages", Hangs: true})
		for range 2 {
			ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
			if _, err := f.Reclaim(ctx); !errors.Is(err, context.DeadlineExceeded) {
				f.t.Errorf("Reclaim while the runtime hangs: got error %v, want %v", err, context.DeadlineExceeded)
			}
			cancel()
		}
		f.stop()
		if _, err := f.Reclaim(f.t.Context()); err == nil {
			f.t.Error("Reclaim after Run has returned: got no error, want one")
		}
	})
}
