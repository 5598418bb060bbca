package decode

import (
	"encoding/json"
	"reflect"
	"strconv"

	v1 "k8s.io/api/core/v1"
)

// listDifferences returns the values, by path, that differ between text and pod, which is the pod of
// text with defaults.
func listDifferences(text []byte, pod *v1.Pod) map[string]any {
	after, err := json.Marshal(pod)
	if err != nil {
		panic(err)
	}
	var a, b any
	if json.Unmarshal(text, &b) != nil || json.Unmarshal(after, &a) != nil {
		panic("not JSON")
	}
	out := map[string]any{}
	addDifferences(b, a, "", out)
	return out
}

// addDifferences adds the values below path that differ to out, by path. The value of a removed
// field is nil.
func addDifferences(before, after any, path string, out map[string]any) {
	if reflect.DeepEqual(before, after) || path == ".status" || path == ".kind" || path == ".apiVersion" {
		return
	}
	b, isMap := before.(map[string]any)
	if a, ok := after.(map[string]any); ok && (isMap || before == nil) {
		if before == nil {
			out[path] = map[string]any{}
		}
		for key := range a {
			addDifferences(b[key], a[key], path+"."+key, out)
		}
		for key := range b {
			if _, kept := a[key]; !kept {
				addDifferences(b[key], nil, path+"."+key, out)
			}
		}
		return
	}
	l, isList := before.([]any)
	if a, ok := after.([]any); ok && isList && len(a) == len(l) {
		for i := range a {
			addDifferences(l[i], a[i], path+"["+strconv.Itoa(i)+"]", out)
		}
		return
	}
	out[path] = after
}
