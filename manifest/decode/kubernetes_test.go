package decode

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"podd/manifest"
	"podd/manifest/defaults"
	"podd/manifest/manifesttest/kubernetes"
	"podd/manifest/supported"
	"podd/manifest/validate"
)

// TestKubernetes compares decoding, defaults and validation with the recorded results of
// Kubernetes. podd must refuse the same pods because of the same fields, and must set the same
// defaults in valid pods. In addition, podd refuses unsupported fields. With -v, the test prints the
// number of refused pods for each unsupported field.
func TestKubernetes(t *testing.T) {
	cases, differ := 0, map[string][]string{}
	unsupported, own := map[string]int{}, map[string]int{}
	kubernetes.Read(t, func(c kubernetes.Case) {
		cases++
		got := replay(c.Text())
		for _, field := range got.unsupported {
			unsupported[anyIndex(field)]++
		}
		for _, d := range compare(&c, got, own) {
			differ[d] = append(differ[d], c.String())
		}
	})
	for _, d := range slices.SortedFunc(maps.Keys(differ), func(a, b string) int { return len(differ[b]) - len(differ[a]) }) {
		t.Errorf("%d pods differ from Kubernetes: %s, for example\n\t%s", len(differ[d]), d, differ[d][0])
	}
	if cases < 10000 {
		t.Errorf("the recording has %d cases, want at least 10000", cases)
	}
	t.Logf("%d cases; unsupported fields:%s\nintended differences to Kubernetes:%s", cases, formatCounts(unsupported), formatCounts(own))
	for _, e := range append(slices.Clone(stricter), laxer...) {
		if own[e.field] == 0 {
			t.Errorf("exception for %s: no recorded pod needs it; remove it", e.field)
		}
	}
}

// replayed contains the results of podd for a pod.
type replayed struct {
	refused     []string // fields
	unsupported []string // the refused fields that podd does not support
	mistyped    bool
	defaulted   *v1.Pod
}

// replay decodes a pod like decoder.decodePod and records the intermediate results.
func replay(text []byte) replayed {
	var r replayed
	var tree map[string]any
	if err := utiljson.Unmarshal(text, &tree); err != nil {
		panic(err)
	}
	n, user := &objectProblems{}, manifest.WithoutServerFields(tree)
	checked := podSchema().Check(user, n.addFault)
	r.mistyped = len(n.wrongTypePaths) > 0
	pod := &v1.Pod{}
	n.unmarshal(checked, pod)
	defaults.Pod(pod)
	r.defaulted = pod.DeepCopy()
	n.addInvalid(validate.Pod(pod, validate.Options{}))
	validated := len(n.problems)
	n.addProblems(supported.CheckPod(checked))
	checkVolumeSources(user, checked, n)
	for i, problem := range n.problems {
		if problem.Severity == manifest.Error && i >= validated {
			r.unsupported = append(r.unsupported, strings.TrimSuffix(problem.FieldPath, ".type"))
		}
	}
	resolvePriority(&pod.Spec, n)
	for _, problem := range n.problems {
		if problem.Severity == manifest.Error {
			r.refused = append(r.refused, problem.FieldPath)
		}
	}
	return r
}

// compare returns the differences to Kubernetes, without the indexes of fields.
func compare(c *kubernetes.Case, got replayed, own map[string]int) (list []string) {
	if c.Undecodable || got.mistyped {
		if c.Undecodable != (len(got.refused) > 0 && got.mistyped) {
			list = append(list, fmt.Sprintf("decoded by podd: %t, by Kubernetes: %t: changed field %s", !got.mistyped, !c.Undecodable, anyIndex(changedField(c))))
		}
		return list
	}
	switch c.Refers {
	case "", "configmaps", "secrets", "serviceaccounts", "persistentvolumeclaims":
		// podd accepts these references. It reads the objects from the source of the pod, or warns.
	default:
		if len(got.refused) == 0 {
			list = append(list, "podd accepts a reference to "+c.Refers)
		}
	}
	theirs, ours := errorFields(c), map[string]bool{}
	for _, field := range got.refused {
		names := kubernetesNames(field)
		for _, name := range names {
			ours[name] = true
		}
		if isCovered(field, got.unsupported) || slices.ContainsFunc(names, func(name string) bool { return theirs[name] || hasSeveralSources(theirs, name) }) {
			continue
		}
		if s := findException(stricter, field); s != "" {
			own[s]++
			continue
		}
		list = append(list, "podd refuses, Kubernetes does not: "+anyIndex(field))
	}
	for field := range theirs {
		if ours[field] || ours[volumeSource.ReplaceAllString(field, "$1")] || isCovered(field, got.unsupported) || isConsequence(field, theirs, got.unsupported) {
			continue
		}
		if s := findException(laxer, field); s != "" {
			own[s]++
			continue
		}
		if isEmptyString(c, field) {
			own["an empty string counts as not set"]++
			continue
		}
		list = append(list, "Kubernetes refuses, podd does not: "+anyIndex(field))
	}
	if c.Defaults == 0 {
		return list
	}
	adds := listDifferences(c.Text(), got.defaulted)
	for path, want := range c.Adds {
		if have, ok := adds[path]; !ok || !reflect.DeepEqual(have, want) {
			list = append(list, fmt.Sprintf("Kubernetes defaults %s to %v, podd to %v", anyIndex(path), want, have))
		}
	}
	for path, have := range adds {
		if _, ok := c.Adds[path]; !ok {
			list = append(list, fmt.Sprintf("podd defaults %s to %v, Kubernetes does not", anyIndex(path), have))
		}
	}
	return list
}

// errorFields returns the fields that Kubernetes refused.
func errorFields(c *kubernetes.Case) map[string]bool {
	out := map[string]bool{}
	for _, e := range c.Errors {
		_, field, _ := strings.Cut(e, " ")
		field = strings.Replace(field, "spec.overhead.limits[", "spec.overhead[", 1) // Kubernetes validates the overhead like limits
		out[field] = true
	}
	return out
}

// changedField returns the field that a case changes.
func changedField(c *kubernetes.Case) string {
	if len(c.Set) == 0 {
		return c.Base
	}
	return strings.Join(c.Set[len(c.Set)-1].Path, ".")
}

// isCovered reports whether a field, a field above it or a field below it is unsupported. podd
// reports no other error about such a field.
func isCovered(field string, unsupported []string) bool {
	for _, u := range unsupported {
		if within(field, u) || within(u, field) {
			return true
		}
	}
	return false
}

func within(field, in string) bool {
	return field == in || strings.HasPrefix(field, in+".") || strings.HasPrefix(field, in+"[")
}
