package cluster

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
)

// podStatusPatch returns a strategic merge patch that replaces the status of the pod present by the
// status next. The API server applies the patch only to a pod with the UID of present.
// podStatusPatch returns nil if the statuses are equal.
func podStatusPatch(present *v1.Pod, next *v1.PodStatus) ([]byte, error) {
	before, err := jsonFields(&present.Status)
	if err != nil {
		return nil, err
	}
	after, err := jsonFields(next)
	if err != nil {
		return nil, err
	}
	d := jsonMergePatch(before, after)
	delete(d, "conditions") // patchByType compares the conditions, because their order is not significant
	if c := patchByType(asList(before["conditions"]), asList(after["conditions"])); len(c) > 0 {
		d["conditions"] = c
	}
	for _, name := range []string{"podIPs", "hostIPs"} {
		if all := asList(d[name]); all != nil {
			d[name] = append([]any{map[string]any{"$patch": "replace"}}, all...)
		}
	}
	if len(d) == 0 {
		return nil, nil
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": present.UID}, "status": d})
}

// patchByType returns a patch of a list whose elements the API server merges by their field "type".
// The parameters before and after are the list before and after the change. patchByType returns nil
// if both lists have equal elements.
func patchByType(before, after []any) []any {
	var all []any
	for _, c := range after {
		next, _ := c.(map[string]any)
		old := findByType(before, next["type"])
		if d := jsonMergePatch(old, next); len(d) > 0 {
			d["type"] = next["type"]
			all = append(all, d)
		}
	}
	for _, c := range before {
		old, _ := c.(map[string]any)
		if findByType(after, old["type"]) == nil {
			all = append(all, map[string]any{"$patch": "delete", "type": old["type"]})
		}
	}
	return all
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
