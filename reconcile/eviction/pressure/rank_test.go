package pressure

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// newCandidate returns a pod with one container. requests are pairs such as "memory=1Gi".
func newCandidate(name string, priority int32, u *Usage, requests ...string) Candidate {
	list := v1.ResourceList{}
	for _, r := range requests {
		key, value, _ := strings.Cut(r, "=")
		list[v1.ResourceName(key)] = resource.MustParse(value)
	}
	return Candidate{Usage: u, Pod: &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       v1.PodSpec{Priority: &priority, Containers: []v1.Container{{Name: "app", Resources: v1.ResourceRequirements{Requests: list}}}},
	}}
}

func rankedNames(all []Candidate) string {
	var names []string
	for _, c := range all {
		names = append(names, c.Pod.Name)
	}
	return strings.Join(names, " ")
}

func TestRank(t *testing.T) {
	memory := func(n int64) *Usage { return &Usage{MemoryBytes: n} }
	disk := func(volumes, layers, logs int64) *Usage {
		return &Usage{Volumes: DiskUsage{Bytes: volumes, Inodes: 1}, Layers: DiskUsage{Bytes: layers, Inodes: 2}, Logs: DiskUsage{Bytes: logs, Inodes: 3}}
	}
	separateImages := Layout{1, 2, 2}
	for name, test := range map[string]struct {
		signal Signal
		layout Layout
		pods   []Candidate
		want   string
	}{
		"usage above requests": {MemoryAvailable, oneDisk, []Candidate{
			newCandidate("small", 0, memory(100)), newCandidate("large", 0, memory(300)),
			newCandidate("requests-all", 0, memory(900), "memory=1000"), newCandidate("requests-less", 0, memory(900), "memory=700"),
		}, "large requests-less small requests-all"},
		"priority before usage": {MemoryAvailable, oneDisk, []Candidate{
			newCandidate("important", 10, memory(900)), newCandidate("other", 0, memory(1)), newCandidate("negative", -5, memory(1)),
		}, "negative other important"},
		"requests before priority": {AllocatableMemoryAvailable, oneDisk, []Candidate{
			newCandidate("within", 0, memory(5), "memory=10"), newCandidate("exceeds", 10, memory(11), "memory=10"),
		}, "exceeds within"},
		"unknown usage first": {MemoryAvailable, oneDisk, []Candidate{
			newCandidate("known", 0, memory(900)), newCandidate("unknown", 0, nil),
		}, "unknown known"},
		"critical": {MemoryAvailable, oneDisk, []Candidate{
			newCandidate("critical", 2_000_000_000, memory(900)), newCandidate("almost", 1_999_999_999, memory(1)),
		}, "almost"},
		"one disk": {NodefsAvailable, oneDisk, []Candidate{
			newCandidate("volumes", 0, disk(50, 0, 0)), newCandidate("layers", 0, disk(0, 60, 0)), newCandidate("logs", 0, disk(0, 0, 70)), newCandidate("all", 0, disk(30, 30, 30)),
			newCandidate("requests", 0, disk(90, 0, 0), "ephemeral-storage=100"),
		}, "all logs layers volumes requests"},
		"nodefs without layers": {NodefsAvailable, separateImages, []Candidate{
			newCandidate("layers", 0, disk(0, 60, 0)), newCandidate("logs", 0, disk(0, 0, 1)),
		}, "logs layers"},
		"imagefs with layers": {ImagefsAvailable, separateImages, []Candidate{
			newCandidate("logs", 0, disk(9, 0, 9)), newCandidate("layers", 0, disk(0, 1, 0)),
		}, "layers logs"},
		"inodes": {NodefsInodesFree, oneDisk, []Candidate{
			newCandidate("few", 0, &Usage{Volumes: DiskUsage{Bytes: 900, Inodes: 1}}), newCandidate("many", 0, &Usage{Logs: DiskUsage{Bytes: 1, Inodes: 9}}),
		}, "many few"},
		"lower bound first": {NodefsInodesFree, oneDisk, []Candidate{
			newCandidate("measured", 0, &Usage{Volumes: DiskUsage{Inodes: 900}}), newCandidate("important", 1, &Usage{Volumes: DiskUsage{Inodes: 500, IsLowerBound: true}}),
			newCandidate("volumes", 0, &Usage{Volumes: DiskUsage{Inodes: 400, IsLowerBound: true}}), newCandidate("logs", 0, &Usage{Logs: DiskUsage{Inodes: 300, IsLowerBound: true}}),
		}, "volumes logs measured important"},
		"many small files": {NodefsAvailable, oneDisk, []Candidate{
			newCandidate("many", 0, &Usage{Volumes: DiskUsage{Bytes: 5, IsLowerBound: true}}), newCandidate("large", 0, disk(9, 0, 0)),
		}, "large many"},
		"lower bound on another disk": {ImagefsAvailable, separateImages, []Candidate{
			newCandidate("bound", 0, &Usage{Volumes: DiskUsage{Bytes: 50, IsLowerBound: true}, Layers: DiskUsage{Bytes: 1}}), newCandidate("layers", 0, disk(0, 2, 0)),
		}, "layers bound"},
		"processes": {PIDAvailable, oneDisk, []Candidate{
			newCandidate("many", 5, &Usage{Processes: 90}), newCandidate("few", 0, &Usage{Processes: 2}), newCandidate("more", 0, &Usage{Processes: 3}),
		}, "more few many"},
		"processes: priority before unknown usage": {PIDAvailable, oneDisk, []Candidate{
			newCandidate("unknown", 5, nil), newCandidate("many", 0, &Usage{Processes: 90}), newCandidate("none", -1, &Usage{}), newCandidate("low", 0, nil),
		}, "none low many unknown"},
	} {
		if got := rankedNames(Rank(test.pods, test.signal, test.layout)); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
		slices.Reverse(test.pods)
		if got := rankedNames(Rank(test.pods, test.signal, test.layout)); got != test.want {
			t.Errorf("%s, in reverse order: got %s, want %s", name, got, test.want)
		}
	}
}

// TestRank_Laws checks that the ranking contains every pod that is not protected once, and that no
// pod comes before a pod that must be evicted first.
func TestRank_Laws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var pods []Candidate
		evictable := 0
		for i := range rapid.IntRange(0, 8).Draw(t, "pods") {
			var u *Usage
			if rapid.IntRange(0, 4).Draw(t, "measured") > 0 {
				u = &Usage{MemoryBytes: rapid.Int64Range(0, 20).Draw(t, "memory")}
			}
			c := newCandidate(fmt.Sprint(i), rapid.SampledFrom([]int32{-1, 0, 1, 2_000_000_000}).Draw(t, "priority"), u, fmt.Sprint("memory=", rapid.IntRange(0, 20).Draw(t, "request")))
			pods = append(pods, c)
			if !IsProtected(c.Pod) {
				evictable++
			}
		}
		ranking := Rank(pods, MemoryAvailable, oneDisk)
		names := map[string]bool{}
		for i, c := range ranking {
			names[c.Pod.Name] = true
			if IsProtected(c.Pod) {
				t.Fatalf("ranking: got the protected pod %s, want it omitted", c.Pod.Name)
			}
			if i == 0 || c.Usage == nil || ranking[i-1].Usage == nil {
				continue
			}
			before := ranking[i-1]
			exceeds := func(c Candidate) bool { return c.Usage.MemoryBytes > requestFor(MemoryAvailable, c.Pod) }
			if exceeds(c) && !exceeds(before) {
				t.Fatalf("ranking: got %s, which stays within its requests, before %s, which exceeds them", before.Pod.Name, c.Pod.Name)
			}
			if exceeds(c) == exceeds(before) && *c.Pod.Spec.Priority < *before.Pod.Spec.Priority {
				t.Fatalf("ranking: got %s before %s, which has a lower priority", before.Pod.Name, c.Pod.Name)
			}
		}
		if len(names) != evictable || len(ranking) != evictable {
			t.Fatalf("ranking: got %d pods, want %d different ones", len(ranking), evictable)
		}
	})
}

func TestLayout_Reclaims(t *testing.T) {
	for name, test := range map[string]struct {
		layout                       Layout
		nodefs, imagefs, containerfs string // what frees space on each file system: c for containers, i for images
	}{
		"one disk":               {oneDisk, "ci", "ci", "ci"},
		"separate images":        {Layout{1, 2, 2}, "", "ci", "ci"},
		"separate images only":   {Layout{1, 2, 1}, "c", "i", "c"},
		"separate layers":        {Layout{1, 1, 2}, "i", "i", "c"},
		"three separate systems": {Layout{1, 2, 3}, "", "i", "c"},
	} {
		for signal, want := range map[Signal]string{
			NodefsAvailable: test.nodefs, NodefsInodesFree: test.nodefs, ImagefsAvailable: test.imagefs, ImagefsInodesFree: test.imagefs,
			ContainerfsAvailable: test.containerfs, ContainerfsInodesFree: test.containerfs, MemoryAvailable: "", PIDAvailable: "",
		} {
			got := ""
			if test.layout.ReclaimsContainers(signal) {
				got += "c"
			}
			if test.layout.ReclaimsImages(signal) {
				got += "i"
			}
			if got != want {
				t.Errorf("%s, signal %s: got %q, want %q (c: containers, i: images)", name, signal, got, want)
			}
		}
	}
}

func TestDescribeEviction(t *testing.T) {
	met := func(s Signal, quantity, available int64) MetThreshold {
		return MetThreshold{Threshold{Signal: s}, quantity, available}
	}
	u := &Usage{MemoryBytes: 300 << 20, Containers: []ContainerUsage{
		{"app", 200 << 20, 5 << 10}, {"debugger", 100 << 20, 1 << 30},
	}}
	whole := newCandidate("p", 0, u)
	whole.Pod.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Mi")}}
	two := newCandidate("p", 0, u)
	two.Pod.Spec.InitContainers = []v1.Container{{Name: "debugger"}}
	for name, test := range map[string]struct {
		met         MetThreshold
		c           Candidate
		want        string
		annotations map[string]string
	}{
		"memory": {met(MemoryAvailable, 100<<20, 51200<<10), newCandidate("p", 0, u),
			"The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container app was using 200Mi, request is 0, has larger consumption of memory. ",
			map[string]string{"starved_resource": "memory", "offending_containers": "app", "offending_containers_usage": "200Mi"}},
		"two containers": {met(MemoryAvailable, 100<<20, 51200<<10), two,
			"The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container app was using 200Mi, request is 0, has larger consumption of memory. " +
				"Container debugger was using 100Mi, request is 0, has larger consumption of memory. ",
			map[string]string{"starved_resource": "memory", "offending_containers": "app,debugger", "offending_containers_usage": "200Mi,100Mi"}},
		"within its requests": {met(MemoryAvailable, 100<<20, 1), newCandidate("p", 0, u, "memory=200Mi"),
			"The node was low on resource: memory. Threshold quantity: 100Mi, available: 1. ",
			map[string]string{"starved_resource": "memory", "offending_containers": "", "offending_containers_usage": ""}},
		"request of the pod": {met(MemoryAvailable, 100<<20, 1), whole,
			"The node was low on resource: memory. Threshold quantity: 100Mi, available: 1. Pod p was using 300Mi, request is 1Mi, has larger consumption of memory. " +
				"Container app was using 200Mi, request is 0, has larger consumption of memory. ",
			map[string]string{"starved_resource": "memory", "offending_pod": "p", "offending_pod_usage": "300Mi", "offending_containers": "app", "offending_containers_usage": "200Mi"}},
		"disk": {met(NodefsAvailable, 1<<30, 1<<20), newCandidate("p", 0, u, "ephemeral-storage=1Ki"),
			"The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: 1Mi. Container app was using 5Ki, request is 1Ki, has larger consumption of ephemeral-storage. ",
			map[string]string{"starved_resource": "ephemeral-storage", "offending_containers": "app", "offending_containers_usage": "5Ki"}},
		"inodes": {met(ImagefsInodesFree, 5000, 12), newCandidate("p", 0, u),
			"The node was low on resource: inodes. Threshold quantity: 5000, available: 12. ",
			map[string]string{"starved_resource": "inodes", "offending_containers": "", "offending_containers_usage": ""}},
		"unknown usage": {met(PIDAvailable, 1000, 2), newCandidate("p", 0, nil),
			"The node was low on resource: pids. Threshold quantity: 1000, available: 2. ",
			map[string]string{"starved_resource": "pids"}},
	} {
		got, annotations := DescribeEviction(test.met, test.c)
		if got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, test.want)
		}
		if !maps.Equal(annotations, test.annotations) {
			t.Errorf("%s: annotations:\n got %q\nwant %q", name, annotations, test.annotations)
		}
	}
	if got, want := met(NodefsInodesFree, 5000, 12).String(), "nodefs.inodesFree: 12 available, threshold 5000"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
