package device

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"podd/manifest"
)

// TestLaws: whatever comes and goes, no two pods have one device, a container keeps
// what it was given, over restarts of podd too, and in the end all is free.
func TestLaws(t *testing.T) {
	var pods []*manifest.Pod
	for i, containers := range [][]string{{"main=1"}, {"main=2"}, {"init:a=2", "main=1", "b=1"}, {"sidecar:s=1", "main=1"}, {"main=3"}} {
		for _, more := range []string{"", "then=0"} { // two versions of each
			pods = append(pods, asking(t, fmt.Sprint("p", i), append(slices.Clone(containers), strings.Fields(more)...)...))
		}
	}
	dir, runs := t.TempDir(), 0
	rapid.Check(t, func(r *rapid.T) {
		runs++
		file := filepath.Join(dir, fmt.Sprint(runs))
		l, plugin := reopen(t, file), &fake{}
		given, present := map[string]string{}, map[Holder]Held{}
		r.Repeat(map[string]func(*rapid.T){
			"use": func(r *rapid.T) {
				p := rapid.SampledFrom(pods).Draw(r, "pod")
				for other := range present {
					if other.Key == p.Key && other != HolderOf(p) {
						delete(present, other)
						forget(given, other)
					}
				}
				present[HolderOf(p)] = nil
				if _, err := use(t, l, p, "main"); err != nil {
					return
				}
				for _, c := range p.Spec.Spec.Containers {
					ids, _ := use(t, l, p, c.Name)
					at := fmt.Sprint(HolderOf(p), c.Name)
					if was, had := given[at]; had && was != ids {
						r.Fatalf("%s had %q and has %q", at, was, ids)
					}
					given[at] = ids
				}
			},
			"end": func(r *rapid.T) {
				for h := range present {
					if rapid.Bool().Draw(r, "ends") {
						delete(present, h)
						forget(given, h)
					}
				}
				l.Hold(present, true)
			},
			"list": func(r *rapid.T) {
				all := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "-d", "e", "-f"}), rapid.ID[string]).Draw(r, "devices")
				serve(l, gpu, plugin, strings.Join(all, " "))
			},
			"leave":   func(*rapid.T) { l.Leave(gpu, plugin) },
			"restart": func(*rapid.T) { l = reopen(t, file); l.Hold(present, rapid.Bool().Draw(r, "whole")) },
			"": func(r *rapid.T) {
				owner := map[string]Holder{}
				for h, pod := range l.pods {
					for _, grants := range pod {
						for _, id := range grants[gpu].IDs {
							if other, taken := owner[id]; taken && other != h {
								r.Fatalf("%s is had by %v and %v", id, other, h)
							}
							owner[id] = h
						}
					}
				}
				if n := l.Counts()[gpu].Total; n < int64(len(owner)) {
					r.Fatalf("%d are counted, and %d are had", n, len(owner))
				}
			},
		})
		if l.Hold(nil, true); has(l) != "" {
			r.Fatalf("in the end %s", has(l))
		}
	})
}

// forget drops what a version had.
func forget(given map[string]string, h Holder) {
	for at := range given {
		if strings.HasPrefix(at, fmt.Sprint(h)) {
			delete(given, at)
		}
	}
}
