package server

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func describe(pods []*PodView) string {
	var all []string
	for _, p := range pods {
		all = append(all, fmt.Sprintf("%s %p", p.Pod.Name, p))
	}
	return strings.Join(all, ", ")
}

// TestLatest_Update checks that a View contains the pods after all previous updates, sorted
// by name. It must not matter how many earlier Views were read, and earlier Views must not change.
func TestLatest_Update(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		latest, revision := NewLatestView(&View{}), uint64(0)
		model, read := map[string]*PodView{}, map[*View]string{}
		name := rapid.StringMatching("[a-d][a-d]?")
		rt.Repeat(map[string]func(*rapid.T){
			"update": func(rt *rapid.T) {
				changes := map[types.NamespacedName]*PodView{}
				for _, name := range rapid.SliceOfN(name, 0, 6).Draw(rt, "names") {
					key := types.NamespacedName{Namespace: "default", Name: name}
					changes[key] = nil
					delete(model, name)
					if rapid.Bool().Draw(rt, "there") {
						changes[key] = &PodView{Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}}
						model[name] = changes[key]
					}
				}
				outdated := latest.Changed(revision)
				revision++
				latest.Update(&View{Revision: revision}, changes)
				select {
				case <-outdated:
				default:
					rt.Fatal("Changed of the previous revision: got an open channel after Update, want it closed")
				}
			},
			"read": func(rt *rapid.T) {
				var want []*PodView
				for _, name := range slices.Sorted(maps.Keys(model)) {
					want = append(want, model[name])
				}
				v := latest.View()
				if got := describe(v.Pods); v.Revision != revision || got != describe(want) {
					rt.Fatalf("got revision %d with pods %s, want revision %d with pods %s", v.Revision, got, revision, describe(want))
				}
				read[v] = describe(v.Pods)
			},
			"": func(rt *rapid.T) {
				for v, was := range read {
					if now := describe(v.Pods); now != was {
						rt.Fatalf("a later update changed the View of revision %d from %s to %s", v.Revision, was, now)
					}
				}
			},
		})
	})
}

// TestLatest_UpdateCost checks that an update does not copy the unchanged pods before a reader
// requests the new View.
func TestLatest_UpdateCost(t *testing.T) {
	cost := func(n int) uint64 {
		pods := make([]*PodView, n)
		for i := range pods {
			pods[i] = &PodView{Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("p%06d", i)}}}
		}
		latest := NewLatestView(&View{Pods: pods})
		changes := map[types.NamespacedName]*PodView{types.NamespacedName(pods[0].Key()): pods[0]}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range 100 {
			latest.Update(&View{Revision: uint64(i)}, changes)
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / 100
	}
	if few, many := cost(10), cost(10_000); many > few+10_000 {
		t.Errorf("an update allocates %d bytes with 10,000 pods and %d with 10, want about the same", many, few)
	}
}
