package decode_test

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/manifesttest"
)

// TestFile_StaticPod checks the name, annotations and toleration of a static pod.
func TestFile_StaticPod(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	p := manifesttest.DecodeOne(t, web, decode.Options{Kind: manifest.KindFile, Source: "/etc/m", Path: "/etc/m/web.yaml", NodeName: "Node.Example", Now: now})
	if got := p.Key.String(); got != "default/web-node.example" {
		t.Errorf("Key: got %s, want the name with the suffix", got)
	}
	if got := p.ManifestKey().String(); got != "default/web" {
		t.Errorf("ManifestKey: got %s, want the name without the suffix", got)
	}
	if p.Object.Name != p.Key.Name || p.Object.Namespace != p.Key.Namespace || p.Object.UID != p.UID || p.Object.Spec.NodeName != "Node.Example" {
		t.Errorf("Spec: got pod %s/%s with UID %s on node %s, want the pod's Key and UID and the node Node.Example", p.Object.Namespace, p.Object.Name, p.Object.UID, p.Object.Spec.NodeName)
	}
	want := map[string]string{
		manifest.AnnotationConfigHash:   string(p.UID),
		manifest.AnnotationConfigSource: "file",
		manifest.AnnotationConfigSeen:   "2026-01-02T03:04:05.000000006Z",
	}
	for key, value := range want {
		if p.Object.Annotations[key] != value {
			t.Errorf("annotation %s: got %q, want %q", key, p.Object.Annotations[key], value)
		}
	}
	if p.Object.Status.Phase != v1.PodPending {
		t.Errorf("phase: got %s, want Pending", p.Object.Status.Phase)
	}
	if got := p.Object.Spec.Tolerations; len(got) != 1 || got[0] != (v1.Toleration{Operator: "Exists", Effect: "NoExecute"}) {
		t.Errorf("tolerations: got %v, want one of all NoExecute taints", got)
	}
	if p.Origin.Source != "/etc/m" || p.Origin.String() != "/etc/m/web.yaml:1" || p.Origin.Position("spec.containers[0].image") != (manifest.Position{Line: 4, Column: 34}) {
		t.Errorf("got origin %s and position of the image %v, want /etc/m/web.yaml:1 and line 4, column 34", p.Origin, p.Origin.Position("spec.containers[0].image"))
	}
}

// TestFile_URLPod checks that a pod from a URL gets no default toleration.
func TestFile_URLPod(t *testing.T) {
	p := manifesttest.DecodeOne(t, web, decode.Options{Kind: manifest.KindURL, NodeName: "n"})
	if p.Object.Annotations[manifest.AnnotationConfigSource] != "http" || len(p.Object.Spec.Tolerations) != 0 {
		t.Errorf("got annotations %v and tolerations %v, want the source url and no toleration", p.Object.Annotations, p.Object.Spec.Tolerations)
	}
}

// TestFile_FixedUID checks that a pod whose manifest sets a UID has this UID, and that its annotation
// config.hash contains the UID. An edit must change the Hash and not the UID.
func TestFile_FixedUID(t *testing.T) {
	fixed := strings.Replace(web, "{name: web}", "{name: web, uid: my-own-uid}", 1)
	p := manifesttest.DecodeOne(t, fixed, decode.Options{NodeName: "n"})
	edited := manifesttest.DecodeOne(t, strings.Replace(fixed, "i:1", "i:2", 1), decode.Options{NodeName: "n"})
	if p.UID != "my-own-uid" || !p.HasFixedUID || p.Object.Annotations[manifest.AnnotationConfigHash] != "my-own-uid" {
		t.Errorf("got UID %s, HasFixedUID %t and annotations %v; want UID my-own-uid, true, and my-own-uid in the annotation config.hash", p.UID, p.HasFixedUID, p.Object.Annotations)
	}
	if edited.UID != p.UID || edited.Hash == p.Hash {
		t.Errorf("after an edit: got UID %s, hash %s, same hash %t, want the same UID and another hash", edited.UID, edited.Hash, edited.Hash == p.Hash)
	}
}

// TestFile_Suffix checks that pods of two runs have different names and UIDs, but the same
// short name.
func TestFile_Suffix(t *testing.T) {
	fixed := strings.Replace(web, "name: web", "name: web, uid: fixed", 1)
	for _, text := range []string{web, fixed} {
		a := manifesttest.DecodeOne(t, text, decode.Options{NodeName: "n", NameSuffix: "r1"})
		b := manifesttest.DecodeOne(t, text, decode.Options{NodeName: "n", NameSuffix: "r2"})
		if a.Key.Name != "web-r1" || a.ManifestKey() != b.ManifestKey() || a.ManifestKey().Name != "web" || a.Object.Spec.NodeName != "n" {
			t.Errorf("%q: got pod %s, short name %s, node %q, want the suffix only in the name", text, a.Key, a.ManifestKey(), a.Object.Spec.NodeName)
		}
		if a.UID == b.UID || a.UID == "fixed" || a.HasFixedUID || a.UID != a.Object.UID {
			t.Errorf("%q: got UIDs %q and %q, fixed %t, want different generated UIDs", text, a.UID, b.UID, a.HasFixedUID)
		}
	}
}

// TestFile_UID checks which edits and options change a generated UID.
func TestFile_UID(t *testing.T) {
	at := decode.Options{Path: "/a/web.yaml", Source: "/a", NodeName: "n"}
	uid := manifesttest.DecodeOne(t, web, at).UID
	same := map[string]struct {
		text string
		o    decode.Options
	}{
		"another file":     {web, decode.Options{Path: "/b/x.yaml", Source: "/b", NodeName: "n"}},
		"a URL":            {web, decode.Options{Kind: manifest.KindURL, Path: "https://x", NodeName: "n"}},
		"another time":     {web, decode.Options{NodeName: "n", Now: time.Unix(1, 0)}},
		"further down":     {"# note\n---\n" + web, at},
		"another order":    {"kind: Pod\nspec: {containers: [{image: i:1, name: main}]}\nmetadata: {name: web}\napiVersion: v1\n", at},
		"in a list":        {"apiVersion: v1\nkind: List\nitems: [{kind: Pod, apiVersion: v1, metadata: {name: web}, spec: {containers: [{name: main, image: i:1}]}}]\n", at},
		"in a PodList":     {`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"web"},"spec":{"containers":[{"name":"main","image":"i:1"}]}}]}`, at},
		"with status":      {web + "status: {phase: Running}\n", at},
		"as exported":      {strings.Replace(web, "{name: web}", "{name: web, creationTimestamp: null, resourceVersion: \"5\", managedFields: []}", 1), at},
		"with nulls":       {strings.Replace(web, "spec: {", "spec: {hostname: null, ", 1), at},
		"with an anchor":   {strings.Replace(web, "name: web", "name: &n web", 1), at},
		"with no effects":  {strings.Replace(web, "{name: web}", "{name: web, finalizers: [example.com/a]}", 1), at},
		"strict":           {web, decode.Options{NodeName: "n", Strict: true}},
		"windows lines":    {strings.ReplaceAll(web, "\n", "\r\n"), at},
		"byte order mark":  {"\xef\xbb\xbf" + web, at},
		"quotes, comments": {strings.ReplaceAll(web, "kind: Pod", "kind: \"Pod\" # yes"), at},
	}
	for name, tt := range same {
		if got := manifesttest.DecodeOne(t, tt.text, tt.o).UID; got != uid {
			t.Errorf("%s: got uid %s, want %s", name, got, uid)
		}
	}
	differs := map[string]struct {
		text string
		o    decode.Options
	}{
		"another node":      {web, decode.Options{NodeName: "m"}},
		"another name":      {strings.Replace(web, "name: web", "name: wob", 1), at},
		"another namespace": {strings.Replace(web, "name: web", "name: web, namespace: shop", 1), at},
		"another image":     {strings.Replace(web, "i:1", "i:2", 1), at},
		"a label":           {strings.Replace(web, "name: web", "name: web, labels: {a: b}", 1), at},
		"a written default": {web + "  # no\n", decode.Options{NodeName: "n.example"}},
	}
	for name, tt := range differs {
		if got := manifesttest.DecodeOne(t, tt.text, tt.o).UID; got == uid {
			t.Errorf("%s: got the same UID %s, want another UID", name, got)
		}
	}
}

// TestFile_Priority checks that podd accepts only the two built-in priority classes of
// Kubernetes.
func TestFile_Priority(t *testing.T) {
	tests := []struct{ spec, want string }{
		{"priority: 7", ""},
		{"priorityClassName: system-node-critical", ""},
		{"priorityClassName: system-cluster-critical, priority: 2000000000", ""},
		{"priorityClassName: system-cluster-critical, priority: 1", "1 differs from the priority 2000000000 of class system-cluster-critical; remove this field"},
		{"priorityClassName: gold, priority: 1", `"gold" not found, because there is no cluster; set spec.priority instead, or use one of the built-in classes system-node-critical and system-cluster-critical`},
	}
	for _, tt := range tests {
		f := decode.File([]byte(strings.Replace(web, "spec: {", "spec: {"+tt.spec+",", 1)), decode.Options{})
		got := ""
		if len(f.Problems) > 0 {
			got = f.Problems[0].Message
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.spec, got, tt.want)
		}
	}
}

// TestFile_LongNames checks that the length limits of the name and the hostname include the
// suffix.
func TestFile_LongNames(t *testing.T) {
	tests := []struct {
		name, node string
		severity   manifest.Severity
		want       string
	}{
		{strings.Repeat("a", 251), "n", manifest.Warning, "hostname"},
		{strings.Repeat("a", 252), "n", manifest.Error, "is too long: 254 characters with the node's name appended (limit 253)"},
		{strings.Repeat("a", 61), "n", "", ""},
		{strings.Repeat("a", 62), "n", manifest.Warning, "hostname"},
		{"web", "", "", ""},
	}
	for _, tt := range tests {
		f := decode.File([]byte(strings.Replace(web, "name: web", "name: "+tt.name, 1)), decode.Options{NodeName: tt.node})
		var p manifest.Problem
		if len(f.Problems) == 1 {
			p = f.Problems[0]
		}
		if p.Severity != tt.severity || !strings.Contains(p.Message, tt.want) || len(f.Problems) > 1 {
			t.Errorf("name of %d letters: got %v, want %s %q", len(tt.name), f.Problems, tt.severity, tt.want)
		}
	}
}
