package cluster

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
)

// statusPatch returns a strategic merge patch of a pod's status, with the UID as
// precondition, or nil if it is equal.
func statusPatch(seen *v1.Pod, next *v1.PodStatus) ([]byte, error) {
	was, err := jsonFields(&seen.Status)
	if err != nil {
		return nil, err
	}
	is, err := jsonFields(next)
	if err != nil {
		return nil, err
	}
	d := difference(was, is)
	delete(d, "conditions") // the order is not significant
	if c := changedByType(asList(was["conditions"]), asList(is["conditions"])); len(c) > 0 {
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
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": seen.UID}, "status": d})
}

// changedByType returns the patch of a list that the API server merges by type.
func changedByType(before, after []any) []any {
	var all []any
	for _, c := range after {
		is, _ := c.(map[string]any)
		was := ofType(before, is["type"])
		if d := difference(was, is); len(d) > 0 {
			d["type"] = is["type"]
			all = append(all, d)
		}
	}
	for _, c := range before {
		was, _ := c.(map[string]any)
		if ofType(after, was["type"]) == nil {
			all = append(all, map[string]any{"$patch": "delete", "type": was["type"]})
		}
	}
	return all
}

func ofType(all []any, t any) map[string]any {
	for _, c := range all {
		if m, _ := c.(map[string]any); m["type"] == t {
			return m
		}
	}
	return nil
}

func asList(v any) []any {
	all, _ := v.([]any)
	return all
}
