package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hundredPods returns a View with 100 pods of typical size.
func hundredPods() *View {
	v := &View{Revision: 1, Node: "n1"}
	for i := range 100 {
		p := pod(fmt.Sprintf("web-%03d-n1", i))
		p.Pod.UID, p.Pod.Annotations = "u", map[string]string{"a": strings.Repeat("x", 300)}
		for c := range 2 {
			name := fmt.Sprintf("c%d", c)
			p.Pod.Spec.Containers = append(p.Pod.Spec.Containers, v1.Container{
				Name: name, Image: "registry.example/web:1", Command: []string{"sh", "-c", "sleep 1"},
				Env:          []v1.EnvVar{{Name: "A", Value: strings.Repeat("v", 50)}},
				VolumeMounts: []v1.VolumeMount{{Name: "data", MountPath: "/data"}},
			})
			p.Pod.Status.ContainerStatuses = append(p.Pod.Status.ContainerStatuses, v1.ContainerStatus{
				Name: name, Image: "registry.example/web:1", ContainerID: "containerd://" + strings.Repeat("0", 64),
				State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Unix(1, 0)}},
			})
		}
		v.Pods = append(v.Pods, p)
	}
	return v
}

// TestPodLists checks that a list that is assembled from encoded pods equals a list that is encoded
// as a whole, no matter which pods have changed.
func TestPodLists(t *testing.T) {
	var lists PodListCache
	check := func(v *View) {
		t.Helper()
		want := v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []v1.Pod{}}
		for _, p := range v.Pods {
			item := *p.Pod
			item.TypeMeta = metav1.TypeMeta{}
			want.Items = append(want.Items, item)
		}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		l := lists.list(v, func(p *v1.Pod) *v1.Pod { return p })
		if diff := cmp.Diff(string(text), string(l.body)); diff != "" {
			t.Fatal(diff)
		}
		runtime.KeepAlive(l)
	}
	v := hundredPods()
	check(&View{})
	check(v)
	check(v)
	changed := &View{Revision: 2, Pods: slices.Clone(v.Pods)}
	changed.Pods[7] = pod("web-007-n1")
	check(changed)
	check(&View{Revision: 3, Pods: slices.Delete(slices.Clone(changed.Pods), 3, 50)})
	check(&View{Revision: 4, Pods: v.Pods})
	check(&View{})
}

// TestPodLists_Allocations checks that repeated requests do not encode unchanged pods again.
func TestPodLists_Allocations(t *testing.T) {
	var lists PodListCache
	whole := func(p *v1.Pod) *v1.Pod { return p }
	v := hundredPods()
	first := lists.list(v, whole)
	if n := testing.AllocsPerRun(100, func() { lists.list(v, whole) }); n > 0 {
		t.Errorf("a request for an unchanged list: got %v allocations, want 0", n)
	}
	allocated := func(f func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	all := allocated(func() { encodePods(v, nil, whole) })
	next := &View{Revision: 2, Pods: slices.Clone(v.Pods)}
	next.Pods[7] = pod("web-007-n1")
	one := allocated(func() { encodePods(next, first, whole) })
	if all > 8e6 || one > uint64(len(first.body)*2) {
		t.Errorf("a list of %d bytes: encoding allocates %d bytes, want at most 8 MB; encoding after a change of one pod allocates %d bytes, want at most twice the size of the list", len(first.body), all, one)
	}
	t.Logf("a list of %d bytes allocates %d bytes, after a change of one pod %d", len(first.body), all, one)
}

func BenchmarkPods(b *testing.B) {
	state := NewLatestView(hundredPods())
	s := readOnly()
	s.State = state
	b.ReportAllocs()
	for b.Loop() {
		v := *state.View() // every iteration serves a View with one changed pod
		v.Revision++
		v.Pods = slices.Clone(v.Pods)
		changed := *v.Pods[3]
		v.Pods[3] = &changed
		state.Publish(&v)
		if got := sendTo(s, http.MethodGet, "/pods", "localhost"); got.Code != http.StatusOK {
			b.Fatal(got.Code)
		}
	}
}
