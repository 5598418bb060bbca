package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

const whenImmutable = "field is immutable when `immutable` is set"

func immutable(flag *bool) bool { return flag != nil && *flag }

func (c *write) fixedConfig(s stored, was, is *v1.ConfigMap) error {
	switch {
	case !immutable(was.Immutable):
		return nil
	case !immutable(is.Immutable):
		return c.forbid(s, "immutable", whenImmutable)
	case !equality.Semantic.DeepEqual(was.Data, is.Data):
		return c.forbid(s, "data", whenImmutable)
	case !equality.Semantic.DeepEqual(was.BinaryData, is.BinaryData):
		return c.forbid(s, "binaryData", whenImmutable)
	}
	return nil
}

func (c *write) fixedSecret(s stored, was, is *v1.Secret) error {
	switch {
	case was.Type != is.Type:
		return c.forbid(s, "type", "field is immutable")
	case !immutable(was.Immutable):
		return nil
	case !immutable(is.Immutable):
		return c.forbid(s, "immutable", whenImmutable)
	case !equality.Semantic.DeepEqual(was.Data, is.Data):
		return c.forbid(s, "data", whenImmutable)
	}
	return nil
}

// fixedClaim: what a claim asks for may grow.
func (c *write) fixedClaim(s stored, was, is *v1.PersistentVolumeClaim) error {
	before, after := was.Spec.Resources.Requests[v1.ResourceStorage], is.Spec.Resources.Requests[v1.ResourceStorage]
	if after.Cmp(before) < 0 {
		return c.forbid(s, "spec.resources.requests.storage", "field can not be less than previous value")
	}
	same := is.DeepCopy()
	same.Spec.Resources.Requests = was.Spec.Resources.Requests
	if field := differs(was.Spec, same.Spec, "spec"); field != "" {
		return c.forbid(s, field, "spec is immutable after creation except resources.requests for bound claims")
	}
	return nil
}

func (c *write) fixedVolume(s stored, was, is *v1.PersistentVolume) error {
	if field := differs(was.Spec.PersistentVolumeSource, is.Spec.PersistentVolumeSource, "spec"); field != "" {
		return c.forbid(s, field, "spec.persistentvolumesource is immutable after creation")
	}
	if was.Spec.NodeAffinity != nil && !equality.Semantic.DeepEqual(was.Spec.NodeAffinity, is.Spec.NodeAffinity) {
		return c.forbid(s, "spec.nodeAffinity", "field is immutable")
	}
	return nil
}

// differs is the first field, in order of its path, in which two values differ; ""
// for none. It shows no values: they may be somebody's secrets.
func differs(a, b any, path string) string {
	if equality.Semantic.DeepEqual(a, b) {
		return ""
	}
	return differ(tree(a), tree(b), path)
}

func tree(v any) (t any) {
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err != nil {
		panic("comparing objects of Kubernetes: " + err.Error())
	}
	return t
}

func differ(a, b any, path string) string {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return path
		}
		all := maps.Clone(x)
		maps.Copy(all, y)
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if !equality.Semantic.DeepEqual(x[key], y[key]) {
				return differ(x[key], y[key], path+"."+key)
			}
		}
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return path
		}
		for n := range x {
			if !equality.Semantic.DeepEqual(x[n], y[n]) {
				return differ(x[n], y[n], fmt.Sprintf("%s[%d]", path, n))
			}
		}
	}
	return path
}
