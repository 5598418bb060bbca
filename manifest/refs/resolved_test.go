package refs_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/merge"
	"podd/manifest/refs"
)

const reader = `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop%s}
spec:
  imagePullSecrets: [{name: pull}]
  volumes: [{name: conf, configMap: {name: conf, items: [{key: a, path: a}]}}]
  containers:
  - name: main
    image: i:1
    env: [{name: P, valueFrom: {secretKeyRef: {name: key, key: p}}}]
---
`

func configOf(name, data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop}\ndata: " + data + "\n---\n"
}

func secretOf(name, data string) string {
	return strings.Replace(strings.Replace(configOf(name, data), "ConfigMap", "Secret", 1), "\ndata", "\nstringData", 1)
}

// setOf is what sources hold, each one text.
func setOf(t *testing.T, texts map[string]string) *manifest.Set {
	t.Helper()
	var batches []manifest.Batch
	for _, name := range []string{"/a", "/b"} {
		f := decode.File([]byte(texts[name]), decode.Options{Source: name, Path: name + "/x.yaml", Node: "n"})
		if len(f.Problems) > 0 {
			t.Fatal(f.Problems)
		}
		b := merge.Files(name, manifest.KindFile, f)
		b.Complete = true
		batches = append(batches, b)
	}
	return merge.Batches(batches)
}

var webKey = types.NamespacedName{Namespace: "shop", Name: "web-n"}

func TestResolveSet_Missing(t *testing.T) {
	pod := strings.ReplaceAll(reader, "%s", "")
	good := configOf("conf", "{a: x}") + secretOf("key", "{p: hunter2}")
	for name, test := range map[string]struct{ a, b, want string }{
		"all there":       {pod + good, "", ""},
		"nothing there":   {pod, "", `ConfigMap "conf" (x.yaml:7) is not in /a (likewise Secret "key" at x.yaml:11)`},
		"another source":  {pod + secretOf("key", "{p: x}"), configOf("conf", "{a: x}"), `ConfigMap "conf" (x.yaml:7) is not in /a (the one in /b serves pods from there alone)`},
		"another name":    {pod + secretOf("key", "{p: x}") + configOf("config", "{a: x}"), "", `ConfigMap "conf" (x.yaml:7) is not in /a (did you mean "config"?)`},
		"another space":   {pod + secretOf("key", "{p: x}") + strings.Replace(configOf("conf", "{a: x}"), "shop", "mall", 1), "", `ConfigMap "conf" (x.yaml:7) is not in /a in namespace shop (there is one in mall)`},
		"no key of files": {pod + secretOf("key", "{p: x}") + configOf("conf", "{b: x}"), "", `ConfigMap "conf" (x.yaml:7) at x.yaml:18 has no key "a" (did you mean "b"?)`},
		"no key of a var": {pod + secretOf("key", "{P: hunter2}") + configOf("conf", "{a: x}"), "", `Secret "key" (x.yaml:11) at x.yaml:13 has no key "p" (did you mean "P"?)`},
		"of another kind": {pod + secretOf("key", "{p: x}") + secretOf("conf", "{a: x}"), "", `ConfigMap "conf" (x.yaml:7) is not in /a`},
	} {
		set := setOf(t, map[string]string{"/a": test.a, "/b": test.b})
		s := refs.ResolveSet(set, "salt", nil, nil).Refs[webKey]
		if s.Missing != test.want {
			t.Errorf("%s: got %q, want %q", name, s.Missing, test.want)
		}
		if name == "all there" && (s.ConfigMap("conf") == nil || s.Secret("key") == nil || s.Secret("pull") != nil) {
			t.Errorf("%s: got %+v", name, s)
		}
	}
}

// TestResolveSet_IncompleteSource: what is optional may yet come, so nobody
// starts, or starts again, without it.
func TestResolveSet_IncompleteSource(t *testing.T) {
	pod := strings.Replace(strings.ReplaceAll(reader, "%s", ""), "{name: conf, items", "{name: conf, optional: true, items", 1)
	set := setOf(t, map[string]string{"/a": pod + secretOf("key", "{p: x}")})
	if s := refs.ResolveSet(set, "salt", nil, nil).Refs[webKey]; s.Missing != "" {
		t.Errorf("got %q", s.Missing)
	}
	set.Complete["/a"] = false
	if s := refs.ResolveSet(set, "salt", nil, nil).Refs[webKey]; s.Missing != `ConfigMap "conf" (x.yaml:7) is not in /a, which was not read whole yet` {
		t.Errorf("got %q", s.Missing)
	}
}

// An edit of what a pod does not read keeps every pointer; an edit of what it
// reads makes another supply, and another version only of a pod that asks for it.
func TestResolveSet_Changes(t *testing.T) {
	for _, note := range []string{"", `, annotations: {podd/restart-on-change: "true"}`, `, uid: fixed, annotations: {podd/restart-on-change: "true"}`} {
		pod := strings.ReplaceAll(reader, "%s", note)
		of := func(a, p, pull, other string) *manifest.Set {
			return setOf(t, map[string]string{"/a": configOf("other", other) + configOf("conf", "{a: v"+a+"}") + secretOf("key", "{p: v"+p+"}") + secretOf("pull", "{x: v"+pull+"}") + pod})
		}
		first := of("1", "1", "1", "{}")
		one := refs.ResolveSet(first, "salt", nil, nil)
		same := *first
		same.Objects = of("1", "1", "1", "{b: new}").Objects
		two := refs.ResolveSet(&same, "salt", nil, one)
		if two.Refs[webKey] != one.Refs[webKey] || two.Set.Pods[webKey] != one.Set.Pods[webKey] {
			t.Errorf("%s: an unrelated edit is a change", note)
		}
		asked := note != ""
		for name, next := range map[string]*manifest.Set{
			"files": of("2", "1", "1", "{}"), "env": of("1", "2", "1", "{}"), "pull": of("1", "1", "2", "{}"),
			"type of pull": of("1", "1", "1}\ntype: example.com/other #", "{}"),
		} {
			edited := *first
			edited.Objects = next.Objects
			b := refs.ResolveSet(&edited, "salt", nil, one)
			if b.Refs[webKey] == one.Refs[webKey] {
				t.Errorf("%s: the supply stayed after an edit of %s", note, name)
			}
			was, now := one.Set.Pods[webKey], b.Set.Pods[webKey]
			if changed := was.Hash != now.Hash; changed != (asked && !strings.HasSuffix(name, "pull")) {
				t.Errorf("%s: an edit of %s makes another version: %v", note, name, changed)
			}
			if now.FixedUID && now.UID != was.UID || !now.FixedUID && (now.UID != was.UID) != (now.Hash != was.Hash) || now.Spec.UID != now.UID {
				t.Errorf("%s: uid %s (%s), was %s", note, now.UID, now.Spec.UID, was.UID)
			}
			again := refs.ResolveSet(&edited, "salt", nil, nil).Set.Pods[webKey]
			if again.Hash != now.Hash || again.UID != now.UID {
				t.Errorf("%s: another podd makes another version of it", note)
			}
		}
		if asked && refs.ResolveSet(first, "pepper", nil, nil).Set.Pods[webKey].Hash == one.Set.Pods[webKey].Hash {
			t.Errorf("%s: the content can be guessed", note)
		}
		if first.Pods[webKey].Spec.UID != first.Pods[webKey].UID {
			t.Errorf("%s: the manifest's pod was written", note)
		}
	}
}

// TestResolveSet_OtherRole: an edit may read the same objects for another role.
func TestResolveSet_OtherRole(t *testing.T) {
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec: {containers: [{name: main, image: 'i:1'%s}]%s}\n---\n"
	objects := configOf("conf", "{a: x}")
	one := refs.ResolveSet(setOf(t, map[string]string{"/a": fmt.Sprintf(pod, ", envFrom: [{configMapRef: {name: conf}}]", "") + objects}), "salt", nil, nil)
	edited := *one.Set
	edited.Pods = setOf(t, map[string]string{"/a": fmt.Sprintf(pod, "", ", volumes: [{name: v, configMap: {name: conf}}]") + objects}).Pods
	two := refs.ResolveSet(&edited, "salt", nil, one)
	if s := two.Refs[webKey]; s.Files == "" || s.Env != "" {
		t.Errorf("got %+v", s)
	}
}
