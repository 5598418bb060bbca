package main

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	api "k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/capabilities"
	"k8s.io/kubernetes/pkg/registry/core/pod"
)

func init() {
	capabilities.Setup(true, 0) // as in the kubelet and in API servers with --allow-privileged
}

// validate decodes a pod as the kubelet decodes a static pod. Then it sets defaults and validates
// the pod, as an API server with default feature gates does. Unlike an API server, it does not drop
// fields of disabled gates, because a kubelet does not drop them. For a valid pod, it also returns
// the changes made by defaulting.
func validate(text []byte) (verdict, map[string]any) {
	obj, err := runtime.Decode(legacyscheme.Codecs.UniversalDecoder(), text)
	p, ok := obj.(*api.Pod)
	if err != nil || !ok {
		return verdict{Undecodable: true}, nil
	}
	podutil.DefaultPodLevelResources(p)
	defaulted := &v1.Pod{}
	if err := corev1.Convert_core_Pod_To_v1_Pod(p.DeepCopy(), defaulted, nil); err != nil {
		return verdict{Undecodable: true}, nil
	}
	v := verdict{}
	if _, v.Refers, err = podutil.HasAPIObjectReference(p); err != nil {
		v.Refers = err.Error()
	}
	if p.Namespace == "" {
		p.Namespace = metav1.NamespaceDefault // set by the kubelet; an API server takes it from the URL
	}
	for _, e := range pod.Strategy.Validate(context.Background(), p) {
		v.Errors = append(v.Errors, toText(e))
	}
	slices.Sort(v.Errors)
	v.Errors = slices.Compact(v.Errors)
	if v.Errors != nil {
		return v, nil
	}
	return v, difference(text, defaulted)
}

func toText(e *field.Error) string {
	return strings.TrimPrefix(string(e.Type), "FieldValue") + " " + e.Field
}

// difference returns the fields of a pod with values that differ from those in text.
func difference(text []byte, pod *v1.Pod) map[string]any {
	var before, after any
	if err := json.Unmarshal(text, &before); err != nil {
		panic(err)
	}
	if err := json.Unmarshal(encode(pod), &after); err != nil {
		panic(err)
	}
	out := map[string]any{}
	addDifferences(before, after, "", out)
	return out
}

// addDifferences adds the fields below path that differ to out. It ignores the status, which is not
// set yet, and kind and apiVersion, which the decoded object does not contain.
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
			if _, isInAfter := a[key]; !isInAfter {
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
