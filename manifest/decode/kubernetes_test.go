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

// TestKubernetes compares decoding, defaults and validation with what Kubernetes
// made of the same pods: the same ones are refused, for the same fields, and
// valid ones get the same defaults. What podd does not serve is refused beside,
// and counted; run it with -v to see what is left.
func TestKubernetes(t *testing.T) {
	cases, differ := 0, map[string][]string{}
	unserved, own := map[string]int{}, map[string]int{}
	kubernetes.Read(t, func(c kubernetes.Case) {
		cases++
		got := replay(c.Text())
		for _, field := range got.unserved {
			unserved[anyIndex(field)]++
		}
		for _, d := range compare(&c, got, own) {
			differ[d] = append(differ[d], c.String())
		}
	})
	for _, d := range slices.SortedFunc(maps.Keys(differ), func(a, b string) int { return len(differ[b]) - len(differ[a]) }) {
		t.Errorf("%d times %s, as for\n\t%s", len(differ[d]), d, differ[d][0])
	}
	if cases < 10000 {
		t.Errorf("the recording has only %d cases", cases)
	}
	t.Logf("%d cases; refused as not served:%s\nother than Kubernetes, on purpose:%s", cases, counted(unserved), counted(own))
	for _, e := range append(slices.Clone(stricter), laxer...) {
		if own[e.field] == 0 {
			t.Errorf("%s: no case needs this exception; remove it", e.field)
		}
	}
}

// replayed is what podd made of a pod.
type replayed struct {
	refused   []string // fields
	unserved  []string // those of them that podd does not serve yet
	mistyped  bool
	defaulted *v1.Pod
}

// replay does what decoder.pod does, and looks in between.
func replay(text []byte) replayed {
	var r replayed
	var tree map[string]any
	if err := utiljson.Unmarshal(text, &tree); err != nil {
		panic(err)
	}
	n, written := &notes{}, manifest.UserPart(tree)
	known := podShape().check(written, "", n)
	r.mistyped = len(n.mistyped) > 0
	pod := &v1.Pod{}
	n.unmarshal(known, pod)
	defaults.Pod(pod)
	r.defaulted = pod.DeepCopy()
	n.invalid(validate.Pod(pod, validate.Options{}))
	validated := len(n.list)
	n.addAll(supported.Pod(known))
	checkSources(written, known, n)
	for i, problem := range n.list {
		if problem.Severity == manifest.Error && i >= validated {
			r.unserved = append(r.unserved, strings.TrimSuffix(problem.Field, ".type"))
		}
	}
	resolvePriority(&pod.Spec, n)
	for _, problem := range n.list {
		if problem.Severity == manifest.Error {
			r.refused = append(r.refused, problem.Field)
		}
	}
	return r
}

// compare says what differs, with any index for each.
func compare(c *kubernetes.Case, got replayed, own map[string]int) (list []string) {
	if c.Undecodable || got.mistyped {
		if c.Undecodable != (len(got.refused) > 0 && got.mistyped) {
			list = append(list, fmt.Sprintf("podd can read it: %t, Kubernetes: %t: %s", !got.mistyped, !c.Undecodable, anyIndex(changed(c))))
		}
		return list
	}
	switch c.Refers {
	case "", "configmaps", "secrets", "serviceaccounts", "persistentvolumeclaims": // podd has these beside the pod, or warns
	default:
		if len(got.refused) == 0 {
			list = append(list, "podd takes a reference to "+c.Refers)
		}
	}
	theirs, ours := errorFields(c), map[string]bool{}
	for _, field := range got.refused {
		names := coarse(field)
		for _, name := range names {
			ours[name] = true
		}
		if covered(field, got.unserved) || slices.ContainsFunc(names, func(name string) bool { return theirs[name] || severalAt(theirs, name) }) {
			continue
		}
		if s := find(stricter, field); s != "" {
			own[s]++
			continue
		}
		list = append(list, "podd refuses, Kubernetes does not: "+anyIndex(field))
	}
	for field := range theirs {
		if ours[field] || ours[several.ReplaceAllString(field, "$1")] || covered(field, got.unserved) || follows(field, theirs, got.unserved) {
			continue
		}
		if s := find(laxer, field); s != "" {
			own[s]++
			continue
		}
		if emptied(c, field) {
			own["an empty text is as if not written"]++
			continue
		}
		list = append(list, "Kubernetes refuses, podd does not: "+anyIndex(field))
	}
	if c.Defaults == 0 {
		return list
	}
	adds := difference(c.Text(), got.defaulted)
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

// errorFields are the fields that Kubernetes refused.
func errorFields(c *kubernetes.Case) map[string]bool {
	out := map[string]bool{}
	for _, e := range c.Errors {
		_, field, _ := strings.Cut(e, " ")
		field = strings.Replace(field, "spec.overhead.limits[", "spec.overhead[", 1) // it checks a container's limits
		out[field] = true
	}
	return out
}

// changed is the field that a case is about.
func changed(c *kubernetes.Case) string {
	if len(c.Set) == 0 {
		return c.Base
	}
	return strings.Join(c.Set[len(c.Set)-1].Path, ".")
}

// covered says that a field, or one in it, or one that it is in, is refused as
// not served: of such a field podd says no more.
func covered(field string, unserved []string) bool {
	for _, u := range unserved {
		if within(field, u) || within(u, field) {
			return true
		}
	}
	return false
}

func within(field, in string) bool {
	return field == in || strings.HasPrefix(field, in+".") || strings.HasPrefix(field, in+"[")
}
