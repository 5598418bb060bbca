package device

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"podd/manifest"
	"podd/reconcile/device/allocation"
)

// TestLaws checks with random operations that no two pods have the same device. A container must
// keep its devices, also across restarts of podd. At the end all devices must be free.
func TestLaws(t *testing.T) {
	var pods []*manifest.Pod
	for i, containers := range [][]string{{"main=1"}, {"main=2"}, {"init:a=2", "main=1", "b=1"}, {"sidecar:s=1", "main=1"}, {"main=3"}} {
		for _, more := range []string{"", "then=0"} { // two versions of each pod
			pods = append(pods, podRequesting(t, fmt.Sprint("p", i), append(slices.Clone(containers), strings.Fields(more)...)...))
		}
	}
	dir, runs := t.TempDir(), 0
	rapid.Check(t, func(r *rapid.T) {
		runs++
		file := filepath.Join(dir, fmt.Sprint(runs))
		l, plugin := reopen(t, file), &fake{}
		given, present := map[string]string{}, map[allocation.PodVersion]allocation.IDs{}
		r.Repeat(map[string]func(*rapid.T){
			"use": func(r *rapid.T) {
				p := rapid.SampledFrom(pods).Draw(r, "pod")
				for other := range present {
					if other.Key == p.Key && other != versionOf(p) {
						delete(present, other)
						removeAll(given, other)
					}
				}
				present[versionOf(p)] = nil
				if _, err := acquireDevices(t, l, p, "main"); err != nil {
					return
				}
				for _, c := range p.Object.Spec.Containers {
					ids, _ := acquireDevices(t, l, p, c.Name)
					at := fmt.Sprint(versionOf(p), c.Name)
					if was, had := given[at]; had && was != ids {
						r.Fatalf("devices of %s: got %q, want %q as before", at, ids, was)
					}
					given[at] = ids
				}
			},
			"end": func(r *rapid.T) {
				for h := range present {
					if rapid.Bool().Draw(r, "ends") {
						delete(present, h)
						removeAll(given, h)
					}
				}
				l.SetHolders(present, true)
			},
			"list": func(r *rapid.T) {
				all := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "-d", "e", "-f"}), rapid.ID[string]).Draw(r, "devices")
				serve(l, gpu, plugin, strings.Join(all, " "))
			},
			"leave":   func(*rapid.T) { l.Unregister(gpu, plugin) },
			"restart": func(*rapid.T) { l = reopen(t, file); l.SetHolders(present, rapid.Bool().Draw(r, "whole")) },
			"": func(r *rapid.T) {
				owner := map[string]allocation.PodVersion{}
				for h, pod := range l.pods {
					for _, grants := range pod {
						for _, id := range grants[gpu].IDs {
							if other, taken := owner[id]; taken && other != h {
								r.Fatalf("device %s: got allocations to %v and %v; want one", id, other, h)
							}
							owner[id] = h
						}
					}
				}
				if n := l.Counts()[gpu].Total; n < int64(len(owner)) {
					r.Fatalf("total number of devices: got %d, want at least the %d that are allocated", n, len(owner))
				}
			},
		})
		if l.SetHolders(nil, true); allocations(l) != "" {
			r.Fatalf("at the end: got allocations %s, want none", allocations(l))
		}
	})
}

// removeAll deletes the devices of a version.
func removeAll(given map[string]string, h allocation.PodVersion) {
	for at := range given {
		if strings.HasPrefix(at, fmt.Sprint(h)) {
			delete(given, at)
		}
	}
}
