package nodesync

import (
	"encoding/json"
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/cluster/mergepatch"
)

// nodeStatusPatch returns a strategic merge patch that changes the status, labels and annotations
// of the Node a to those of the Node b. It returns "{}" if nothing differs.
// strategicpatch.CreateTwoWayMergePatch computes the same patches, but takes twice the time and
// adds 32 KiB to the binary. Tests use strategicpatch to verify the patches.
func nodeStatusPatch(a, b *v1.Node) ([]byte, error) {
	before, err := mergepatch.Fields(a)
	if err != nil {
		return nil, err
	}
	after, err := mergepatch.Fields(b)
	if err != nil {
		return nil, err
	}
	delete(before, "spec") // omit the spec, because it cannot be changed together with the status
	delete(after, "spec")
	d := mergepatch.Diff(before, after)
	if s, ok := d["status"].(map[string]any); ok {
		oldStatus, _ := before["status"].(map[string]any)
		adaptLists(s, oldStatus)
	}
	return json.Marshal(d)
}

// adaptLists adapts the lists in d to a strategic merge patch. d is the JSON merge patch of a
// status, and oldStatus is the status before the change. The API server merges conditions and addresses
// by type, and replaces all other lists. Unchanged conditions are removed from the patch. Conditions that
// are only in oldStatus are deleted with a directive. The list of addresses is replaced, because several
// addresses may have the same type (kubernetes/kubernetes#72202).
func adaptLists(d, oldStatus map[string]any) {
	if conditions, ok := d["conditions"].([]any); ok {
		before, _ := oldStatus["conditions"].([]any)
		changed := []any{}
		for _, c := range conditions {
			if !containsEqual(before, c) {
				changed = append(changed, c)
			}
		}
		for _, c := range before {
			if conditionType := c.(map[string]any)["type"]; !slices.ContainsFunc(conditions, func(c any) bool { return c.(map[string]any)["type"] == conditionType }) {
				changed = append(changed, map[string]any{"$patch": "delete", "type": conditionType})
			}
		}
		d["conditions"] = changed
	}
	if addresses, ok := d["addresses"].([]any); ok {
		d["addresses"] = append([]any{map[string]any{"$patch": "replace"}}, addresses...)
	}
}

// containsEqual reports whether list contains a value that is deeply equal to v.
func containsEqual(list []any, v any) bool {
	return slices.ContainsFunc(list, func(w any) bool { return reflect.DeepEqual(w, v) })
}
