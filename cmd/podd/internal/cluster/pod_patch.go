package cluster

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
)

// statusPatch is a strategic merge patch that makes a pod's status another, if it
// is still the pod that was seen; nil when it is that already.
func statusPatch(seen *v1.Pod, next *v1.PodStatus) ([]byte, error) {
	was, err := fields(&seen.Status)
	if err != nil {
		return nil, err
	}
	is, err := fields(next)
	if err != nil {
		return nil, err
	}
	d := difference(was, is)
	delete(d, "conditions") // another order is none
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

// changedByType has what makes one list of another where the API server merges them
// by type, field by field.
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
