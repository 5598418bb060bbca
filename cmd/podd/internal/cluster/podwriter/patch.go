package podwriter

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/cluster/mergepatch"
)

// podStatusPatch returns a strategic merge patch that replaces the status of remote, a pod in the API
// server, by the status next. The API server applies the patch only to a pod with the UID of remote.
// podStatusPatch returns nil if the statuses are equal.
func podStatusPatch(remote *v1.Pod, next *v1.PodStatus) ([]byte, error) {
	before, err := mergepatch.Fields(&remote.Status)
	if err != nil {
		return nil, err
	}
	after, err := mergepatch.Fields(next)
	if err != nil {
		return nil, err
	}
	d := mergepatch.Diff(before, after)
	delete(d, "conditions") // patchByType compares the conditions, because their order is not significant
	if c := patchByType(asList(before["conditions"]), asList(after["conditions"])); len(c) > 0 {
		d["conditions"] = c
	}
	for _, name := range []string{"podIPs", "hostIPs"} {
		if list := asList(d[name]); list != nil {
			d[name] = append([]any{map[string]any{"$patch": "replace"}}, list...)
		}
	}
	if len(d) == 0 {
		return nil, nil
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": remote.UID}, "status": d})
}

// patchByType returns a patch of a list whose elements the API server merges by their field "type".
// The parameters before and after are the list before and after the change. patchByType returns nil
// if both lists have equal elements.
func patchByType(before, after []any) []any {
	var patch []any
	for _, c := range after {
		newElement, _ := c.(map[string]any)
		oldElement := findByType(before, newElement["type"])
		if d := mergepatch.Diff(oldElement, newElement); len(d) > 0 {
			d["type"] = newElement["type"]
			patch = append(patch, d)
		}
	}
	for _, c := range before {
		oldElement, _ := c.(map[string]any)
		if findByType(after, oldElement["type"]) == nil {
			patch = append(patch, map[string]any{"$patch": "delete", "type": oldElement["type"]})
		}
	}
	return patch
}

// findByType returns the element with a field "type" that equals t, or nil.
func findByType(list []any, t any) map[string]any {
	for _, c := range list {
		if m, _ := c.(map[string]any); m["type"] == t {
			return m
		}
	}
	return nil
}

// asList returns v as a list, or nil if v is not a list.
func asList(v any) []any {
	all, _ := v.([]any)
	return all
}
