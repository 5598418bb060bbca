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

func configMap(name, data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop}\ndata: " + data + "\n---\n"
}

func secret(name, data string) string {
	return strings.Replace(strings.Replace(configMap(name, data), "ConfigMap", "Secret", 1), "\ndata", "\nstringData", 1)
}

// newSet returns the set of two sources with one file each.
func newSet(t *testing.T, texts map[string]string) *manifest.Set {
	t.Helper()
	var batches []manifest.Batch
	for _, name := range []string{"/a", "/b"} {
		f := decode.File([]byte(texts[name]), decode.Options{Source: name, Path: name + "/x.yaml", NodeName: "n"})
		if len(f.Problems) > 0 {
			t.Fatal(f.Problems)
		}
		b := merge.Files(name, manifest.KindFile, f)
		b.IsComplete = true
		batches = append(batches, b)
	}
	return merge.Batches(batches)
}

var webKey = types.NamespacedName{Namespace: "shop", Name: "web-n"}

func TestResolveSet_Missing(t *testing.T) {
	pod := strings.ReplaceAll(reader, "%s", "")
	objects := configMap("conf", "{a: x}") + secret("key", "{p: hunter2}")
	for name, test := range map[string]struct{ a, b, want string }{
		"complete":              {pod + objects, "", ""},
		"no objects":            {pod, "", `ConfigMap "conf" (x.yaml:7) is not defined in /a (also missing: Secret "key" at x.yaml:11)`},
		"other source":          {pod + secret("key", "{p: x}"), configMap("conf", "{a: x}"), `ConfigMap "conf" (x.yaml:7) is not defined in /a (/b defines one, but only pods of that source can use it)`},
		"other name":            {pod + secret("key", "{p: x}") + configMap("config", "{a: x}"), "", `ConfigMap "conf" (x.yaml:7) is not defined in /a (did you mean "config"?)`},
		"other namespace":       {pod + secret("key", "{p: x}") + strings.Replace(configMap("conf", "{a: x}"), "shop", "mall", 1), "", `ConfigMap "conf" (x.yaml:7) is not defined in /a in namespace shop (there is one in namespace mall)`},
		"no key for a file":     {pod + secret("key", "{p: x}") + configMap("conf", "{b: x}"), "", `ConfigMap "conf" (x.yaml:7) at x.yaml:18 has no key "a" (did you mean "b"?)`},
		"no key for a variable": {pod + secret("key", "{P: hunter2}") + configMap("conf", "{a: x}"), "", `Secret "key" (x.yaml:11) at x.yaml:13 has no key "p" (did you mean "P"?)`},
		"other kind":            {pod + secret("key", "{p: x}") + secret("conf", "{a: x}"), "", `ConfigMap "conf" (x.yaml:7) is not defined in /a`},
	} {
		set := newSet(t, map[string]string{"/a": test.a, "/b": test.b})
		s := refs.ResolveSet(set, "salt", nil, nil).Refs[webKey]
		if s.MissingMessage != test.want {
			t.Errorf("%s: got %q, want %q", name, s.MissingMessage, test.want)
		}
		if name == "complete" && (s.ConfigMap("conf") == nil || s.Secret("key") == nil || s.Secret("pull") != nil) {
			t.Errorf("%s: got %+v, want the ConfigMap \"conf\" and the Secret \"key\", and not the Secret \"pull\"", name, s)
		}
	}
}

// TestResolveSet_IncompleteSource checks that a pod waits for optional objects until its source
// was read completely, because a file that was not read may contain them.
func TestResolveSet_IncompleteSource(t *testing.T) {
	pod := strings.Replace(strings.ReplaceAll(reader, "%s", ""), "{name: conf, items", "{name: conf, optional: true, items", 1)
	set := newSet(t, map[string]string{"/a": pod + secret("key", "{p: x}")})
	if s := refs.ResolveSet(set, "salt", nil, nil).Refs[webKey]; s.MissingMessage != "" {
		t.Errorf("complete source: Missing: got %q, want none", s.MissingMessage)
	}
	set.CompleteSources["/a"] = false
	if s := refs.ResolveSet(set, "salt", nil, nil).Refs[webKey]; s.MissingMessage != `ConfigMap "conf" (x.yaml:7) is not defined in /a; the source of the pod has not been read completely yet` {
		t.Errorf("incomplete source: Missing: got %q, want the optional ConfigMap", s.MissingMessage)
	}
}

// TestResolveSet_Changes checks that an unrelated edit keeps every pointer. An edit of a referenced
// object must change the Resolved, and the version of a pod with restart-on-change.
func TestResolveSet_Changes(t *testing.T) {
	for _, more := range []string{"", `, annotations: {podd/restart-on-change: "true"}`, `, uid: fixed, annotations: {podd/restart-on-change: "true"}`} {
		pod := strings.ReplaceAll(reader, "%s", more)
		of := func(a, p, pull, other string) *manifest.Set {
			return newSet(t, map[string]string{"/a": configMap("other", other) + configMap("conf", "{a: v"+a+"}") + secret("key", "{p: v"+p+"}") + secret("pull", "{x: v"+pull+"}") + pod})
		}
		first := of("1", "1", "1", "{}")
		one := refs.ResolveSet(first, "salt", nil, nil)
		same := *first
		same.ObjectsBySource = of("1", "1", "1", "{b: new}").ObjectsBySource
		two := refs.ResolveSet(&same, "salt", nil, one)
		if two.Refs[webKey] != one.Refs[webKey] || two.Set.Pods[webKey] != one.Set.Pods[webKey] {
			t.Errorf("%s: after an unrelated edit: got another pod, want the same", more)
		}
		restartOnChange := more != ""
		for name, next := range map[string]*manifest.Set{
			"files": of("2", "1", "1", "{}"), "env": of("1", "2", "1", "{}"), "pull": of("1", "1", "2", "{}"),
			"type of pull": of("1", "1", "1}\ntype: example.com/other #", "{}"),
		} {
			edited := *first
			edited.ObjectsBySource = next.ObjectsBySource
			b := refs.ResolveSet(&edited, "salt", nil, one)
			if b.Refs[webKey] == one.Refs[webKey] {
				t.Errorf("%s: after an edit of %s: got the same Resolved, want another", more, name)
			}
			was, now := one.Set.Pods[webKey], b.Set.Pods[webKey]
			if changed := was.Hash != now.Hash; changed != (restartOnChange && !strings.HasSuffix(name, "pull")) {
				t.Errorf("%s: after an edit of %s: pod has another hash: got %v, want true only with restart-on-change", more, name, changed)
			}
			if now.HasFixedUID && now.UID != was.UID || !now.HasFixedUID && (now.UID != was.UID) != (now.Hash != was.Hash) || now.Object.UID != now.UID {
				t.Errorf("%s: got UID %s (%s in Object), previous UID %s; want a new UID only if it is not fixed and the hash has changed", more, now.UID, now.Object.UID, was.UID)
			}
			again := refs.ResolveSet(&edited, "salt", nil, nil).Set.Pods[webKey]
			if again.Hash != now.Hash || again.UID != now.UID {
				t.Errorf("%s: resolving again: got another version, want the same", more)
			}
		}
		if restartOnChange && refs.ResolveSet(first, "pepper", nil, nil).Set.Pods[webKey].Hash == one.Set.Pods[webKey].Hash {
			t.Errorf("%s: hashes with two salts: got the same, want different hashes", more)
		}
		if first.Pods[webKey].Object.UID != first.Pods[webKey].UID {
			t.Errorf("%s: ResolveSet changed the given pod", more)
		}
	}
}

// TestResolveSet_OtherRole edits a pod that uses a ConfigMap for variables, so that it uses the
// ConfigMap in a volume instead. The test checks the digests of files and variables after the edit.
func TestResolveSet_OtherRole(t *testing.T) {
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec: {containers: [{name: main, image: 'i:1'%s}]%s}\n---\n"
	objects := configMap("conf", "{a: x}")
	one := refs.ResolveSet(newSet(t, map[string]string{"/a": fmt.Sprintf(pod, ", envFrom: [{configMapRef: {name: conf}}]", "") + objects}), "salt", nil, nil)
	edited := *one.Set
	edited.Pods = newSet(t, map[string]string{"/a": fmt.Sprintf(pod, "", ", volumes: [{name: v, configMap: {name: conf}}]") + objects}).Pods
	two := refs.ResolveSet(&edited, "salt", nil, one)
	if s := two.Refs[webKey]; s.FilesDigest == "" || s.EnvDigest != "" {
		t.Errorf("after the edit: got FilesDigest %q and EnvDigest %q, want the first to be set and the second to be empty", s.FilesDigest, s.EnvDigest)
	}
}
