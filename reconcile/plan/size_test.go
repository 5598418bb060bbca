package plan

import (
	"encoding/json"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"podd/manifest"
	"podd/runtime"
)

const (
	small = "cpu=100m/ memory=/32Mi"
	large = "cpu=100m/ memory=/64Mi"
)

// resizes changes the input to a resize: the parameter from is the size with which the container
// runs, and the parameter to is its desired size.
func resizes(in *Input, from, to string) {
	c := &in.Desired.Object.Spec.Containers[0]
	c.Resources = v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")},
		Limits:   v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")},
	}
	in.Desired.ContainerHashes = map[string]manifest.ContainerHash{"app": {Resources: manifest.FormatSize(c.Resources)}}
	was := in.Desired.WithSizes(map[string]string{"app": from})
	in.Desired = in.Desired.WithSizes(map[string]string{"app": to})
	in.Observed[0].Annotations[runtime.AnnotationSize] = was.PodSize()
	in.Observed[0].Containers[0].Annotations[runtime.AnnotationSize] = from
}

func restarts(in *Input, name v1.ResourceName) {
	in.Desired.Object.Spec.Containers[0].ResizePolicy = []v1.ContainerResizePolicy{{ResourceName: name, RestartPolicy: v1.RestartContainer}}
}

// TestSizes checks the allocated and actual sizes of a container with a large desired size.
func TestSizes(t *testing.T) {
	reject := Verdict{Answer: Reject}
	for name, tt := range map[string]struct {
		change            func(*Input)
		allocated, actual string
		unsized           bool
	}{
		"admitted":          {func(*Input) {}, large, small, true},
		"rejected":          {func(in *Input) { in.Verdict = reject }, small, small, true},
		"rejected, exited":  {func(in *Input) { in.Verdict = reject; in.Observed[0].Containers[0].State = runtime.Exited }, small, small, true},
		"admitted, exited":  {func(in *Input) { in.Observed[0].Containers[0].State = runtime.Exited }, large, large, true},
		"container resized": {func(in *Input) { in.History.Sizes = map[string]Size{"c": {Value: large}} }, large, large, true},
		"container and pod resized": {func(in *Input) {
			in.History.Sizes = map[string]Size{"c": {Value: large}, "s-u": {Value: in.Desired.PodSize()}}
		}, large, large, false},
		"result of the resize unknown": {func(in *Input) { in.History.Sizes = UncertainSizes(in, ResizeContainer{ID: "c"}) }, large, small, true},
		"result unknown, and resized back": {func(in *Input) {
			in.History.Sizes = UncertainSizes(in, ResizeContainer{ID: "c"})
			resizes(in, small, small)
		}, small, small, true},
		"never created":                        {func(in *Input) { in.Observed = nil; in.Verdict = reject }, large, large, false},
		"running container of another version": {func(in *Input) { in.Observed[0].Annotations[runtime.AnnotationPodHash] = "v1:x"; in.Verdict = reject }, large, large, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := runs()
			resizes(&in, small, large)
			tt.change(&in)
			if got := WithAllocatedSizes(&in).ContainerHashes["app"].Resources; got != tt.allocated {
				t.Errorf("allocated size: got %s, want %s", got, tt.allocated)
			}
			if got := WithActualSizes(&in).ContainerHashes["app"].Resources; got != tt.actual {
				t.Errorf("actual size: got %s, want %s", got, tt.actual)
			}
			if got := IsResizePending(&in); got != tt.unsized {
				t.Errorf("IsResizePending: got %t, want %t", got, tt.unsized)
			}
		})
	}
}

// TestPodResources checks the resources of a pod whose desired size is large and whose cgroup has
// the small size.
func TestPodResources(t *testing.T) {
	for name, tt := range map[string]struct {
		change            func(*Input)
		allocated, actual string
	}{
		"admitted":    {func(*Input) {}, large, small},
		"rejected":    {func(in *Input) { in.Verdict = Verdict{Answer: Reject} }, small, small},
		"resized":     {func(in *Input) { in.History.Sizes = map[string]Size{"s-u": {Value: large}} }, large, large},
		"uncertain":   {func(in *Input) { in.History.Sizes = UncertainSizes(in, ResizePod{SandboxID: "s-u"}) }, large, small},
		"container":   {func(in *Input) { in.History.Sizes = UncertainSizes(in, ResizeContainer{Container: "app", ID: "c"}) }, large, small},
		"not created": {func(in *Input) { in.Observed = nil }, large, large},
	} {
		in := runs()
		resizes(&in, small, large)
		in.Observed[0].Annotations[runtime.AnnotationSize] = small
		tt.change(&in)
		allocated, actual := PodResources(&in)
		if got := manifest.FormatSize(*actual); got != tt.actual {
			t.Errorf("%s: actual size: got %s, want %s", name, got, tt.actual)
		}
		want := manifest.ParseSize(tt.allocated).Requests
		if got := (v1.ResourceRequirements{Requests: allocated}); manifest.FormatSize(got) != manifest.FormatSize(v1.ResourceRequirements{Requests: want}) {
			t.Errorf("%s: allocated requests: got %v, want %v", name, allocated, want)
		}
	}
}

// TestResize_WithoutRestart checks that a resize that requires no restart stops and starts no
// container, and that all running containers get the new size.
func TestResize_WithoutRestart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := genPod(t, "v1:0")
		p.Object.Spec.RestartPolicy = v1.RestartPolicyAlways
		for _, c := range containersOf(&p.Object.Spec) {
			c.ResizePolicy = nil
		}
		w := newWorld()
		w.order(p)
		quiet := func(Decision) {}
		w.settle(time.Minute, quiet, func(Action) {})
		q := genResized(t, p)
		w.order(q)
		d, settled := w.settle(time.Minute, quiet, func(a Action) {
			if v := a.Verb(); v == "stop" || v == "start" && w.starts[a.(StartContainer).Container] > 0 {
				t.Fatalf("got %s during a resize, want no stop and no restart", a)
			}
		})
		if !settled {
			t.Fatalf("actions remain a minute after the resize, want none\n%s", d)
		}
		if len(w.machine) != 1 || !w.machine[0].Ready {
			t.Fatalf("got sandboxes %v, want one that is ready", w.machine)
		}
		for _, c := range runningContainers(&w.machine[0]) {
			if w.sizes[c.ID] != q.ContainerHashes[c.Name].Resources {
				t.Fatalf("container %s: got size %s, want %s\n%s", c.Name, w.sizes[c.ID], q.ContainerHashes[c.Name].Resources, d)
			}
		}
	})
}

// TestSizeJSON checks that encoding and decoding a Size returns an equal Size. It also checks that
// the uncertain sizes in journals of earlier versions of podd are decoded.
func TestSizeJSON(t *testing.T) {
	for text, want := range map[string]Size{
		`""`:                                {},
		`"cpu=1/ memory=/"`:                 {Value: "cpu=1/ memory=/"},
		`{}`:                                {Uncertain: true},
		`{"before":"cpu=1/ memory=/"}`:      {"cpu=1/ memory=/", true},
		`"perhaps no more cpu=1/ memory=/"`: {"cpu=1/ memory=/", true},
		`"room for two sizes"`:              {Uncertain: true},
	} {
		var got Size
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("decoding %s: got %+v (error %v), want %+v", text, got, err, want)
		}
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &got); err != nil || got != want {
			t.Errorf("decoding the JSON of %+v, %s: got %+v (error %v), want an equal Size", want, data, got, err)
		}
	}
	if err := json.Unmarshal([]byte("1"), new(Size)); err == nil {
		t.Error("decoding a number: got no error, want one")
	}
}
