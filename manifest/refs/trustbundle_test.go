package refs_test

import (
	"slices"
	"strings"
	"testing"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/manifesttest"
	"podd/manifest/refs"
)

// trustBundle returns the document of a ClusterTrustBundle.
func trustBundle(name, signer, stage, text string) string {
	return "apiVersion: certificates.k8s.io/v1\nkind: ClusterTrustBundle\nmetadata: {name: \"" + name + "\", labels: {stage: \"" + stage + "\"}}\nspec:\n  signerName: \"" + signer +
		"\"\n  trustBundle: |\n    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n---\n"
}

// trustReader returns the document of a pod with sources of ClusterTrustBundles.
func trustReader(annotations string, sources ...string) string {
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop" + annotations + "}\nspec:\n  containers: [{name: main, image: \"i:1\"}]\n  volumes:\n  - name: trust\n    projected:\n      sources:\n"
	for i, source := range sources {
		text += "      - clusterTrustBundle: {path: " + string(rune('a'+i)) + ", " + source + "}\n"
	}
	return text + "---\n"
}

const mesh = "signerName: example.com/mesh"

func TestResolveSet_TrustBundles(t *testing.T) {
	a, b, c := manifesttest.CACertificate(t, "a"), manifesttest.CACertificate(t, "b"), manifesttest.CACertificate(t, "c")
	objects := trustBundle("example.com:mesh:2", "example.com/mesh", "prod", a) + trustBundle("example.com:mesh:1", "example.com/mesh", "test", c+a) +
		trustBundle("roots", "", "prod", b) + trustBundle("example.com:other:1", "example.com/other", "prod", b)
	for source, test := range map[string]struct{ want, missing string }{
		`name: roots`:                {b, ""},
		`name: "example.com:mesh:1"`: {c + a, ""},
		`name: root`:                 {"", `ClusterTrustBundle "root" (x.yaml:10) is not defined in /a (did you mean "roots"?)`},
		`name: root, optional: true`: {"", ""},
		mesh + `, labelSelector: {}`: {c + a, ""},
		mesh + `, labelSelector: {matchLabels: {stage: prod}}`: {a, ""},
		mesh + `, labelSelector: {matchLabels: {stage: dev}}`: {"",
			`ClusterTrustBundle of signer "example.com/mesh" with the labels "stage=dev" (x.yaml:10) is not defined in /a`},
		mesh + `, labelSelector: {matchLabels: {stage: dev}}, optional: true`: {"", ""},
		mesh: {"", `ClusterTrustBundle of signer "example.com/mesh" (without a labelSelector, none is selected; write labelSelector: {} to select all) (x.yaml:10) is not defined in /a`},
		`signerName: example.com/none, labelSelector: {}`: {"", `ClusterTrustBundle of signer "example.com/none" (x.yaml:10) is not defined in /a`},
	} {
		set := newSet(t, map[string]string{"/a": trustReader("", source) + objects})
		s := refs.ResolveSet(set, "salt", nil, nil).Refs[webKey]
		if s.MissingMessage != test.missing {
			t.Errorf("%s: missing: got %q, want %q", source, s.MissingMessage, test.missing)
		}
		projection := set.Pods[webKey].Object.Spec.Volumes[0].Projected.Sources[0].ClusterTrustBundle
		if got, found := s.TrustAnchors(projection); string(got) != test.want || found != (test.want != "") {
			t.Errorf("%s: found: %t, got\n%s\nwant\n%s", source, found, got, test.want)
		} else if missing := s.MissingTrustBundle(projection); !found && (!missing.DoesNotExist || !strings.HasSuffix(missing.Message, "does not exist")) {
			t.Errorf("%s: got missing object %+v, want DoesNotExist true and a message that ends in \"does not exist\"", source, missing)
		}
	}
	set := newSet(t, map[string]string{"/a": trustReader("", "name: roots"), "/b": objects})
	want := `ClusterTrustBundle "roots" (x.yaml:10) is not defined in /a (/b defines one, but only pods of that source can use it)`
	if s := refs.ResolveSet(set, "salt", nil, nil).Refs[webKey]; s.MissingMessage != want {
		t.Errorf("bundle of another source: got %q, want %q", s.MissingMessage, want)
	}
}

// TestResolveSet_TrustBundleChanges checks that the digest of files changes only when the selected
// certificates change.
func TestResolveSet_TrustBundleChanges(t *testing.T) {
	a, b := manifesttest.CACertificate(t, "a"), manifesttest.CACertificate(t, "b")
	pod := trustReader(`, annotations: {podd/restart-on-change: "true"}`, mesh+", labelSelector: {matchLabels: {stage: prod}}", mesh+", labelSelector: {matchLabels: {stage: test}}", "name: roots")
	bundles := func(prod, test, roots, more string) string {
		return pod + trustBundle("example.com:mesh:prod", "example.com/mesh", "prod", prod) + trustBundle("example.com:mesh:test", "example.com/mesh", "test", test) + trustBundle("roots", "", "", roots) + more
	}
	first := newSet(t, map[string]string{"/a": bundles(a, a, a, "")})
	was := refs.ResolveSet(first, "salt", nil, nil)
	for name, test := range map[string]struct {
		text    string
		changes bool
	}{
		"bundle of a signer":       {bundles(b, a, a, ""), true},
		"second selector":          {bundles(a, b, a, ""), true},
		"named bundle":             {bundles(a, a, b, ""), true},
		"another bundle":           {bundles(a, a, a, trustBundle("example.com:mesh:dev", "example.com/mesh", "dev", b)), false},
		"a comment":                {bundles(a, a, "# root\n"+a, ""), false},
		"another selected bundle":  {bundles(a, a, a, trustBundle("example.com:mesh:prod2", "example.com/mesh", "prod", b)), true},
		"another name of a bundle": {strings.ReplaceAll(bundles(a, a, a, ""), "example.com:mesh:prod", "example.com:mesh:x"), false},
	} {
		edited := *first
		edited.ObjectsBySource = newSet(t, map[string]string{"/a": test.text}).ObjectsBySource
		now := refs.ResolveSet(&edited, "salt", nil, was)
		if changed := now.Refs[webKey].FilesDigest != was.Refs[webKey].FilesDigest; changed != test.changes {
			t.Errorf("%s: FilesDigest has changed: got %t, want %t", name, changed, test.changes)
		}
		if changed := now.Set.Pods[webKey].Hash != was.Set.Pods[webKey].Hash; changed != test.changes {
			t.Errorf("%s: version of the pod has changed: got %t, want %t", name, changed, test.changes)
		}
	}
}

// TestResolveSet_ClusterTrustBundles checks bundles of an API server.
func TestResolveSet_ClusterTrustBundles(t *testing.T) {
	anchor := manifesttest.CACertificate(t, "a")
	name, signer, yes := "roots", "example.com/mesh", true
	byName := &v1.ClusterTrustBundleProjection{Name: &name, Path: "a"}
	bySigner := &v1.ClusterTrustBundleProjection{SignerName: &signer, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "prod"}}, Path: "b"}
	bundle := func(name, signer, stage string) *certificates.ClusterTrustBundle {
		return &certificates.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"stage": stage}}, Spec: certificates.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: anchor}}
	}
	named := func(o *manifest.Objects) {
		o.TrustBundles = map[types.NamespacedName]*certificates.ClusterTrustBundle{{Name: name}: bundle(name, "", "")}
	}
	listed := func(stages ...string) func(o *manifest.Objects) {
		return func(o *manifest.Objects) {
			all := []*certificates.ClusterTrustBundle{}
			for _, stage := range stages {
				all = append(all, bundle("example.com:mesh:"+stage, signer, stage))
			}
			o.Cluster.SignerTrustBundles = map[string][]*certificates.ClusterTrustBundle{signer: all}
		}
	}
	missing := func(source *v1.ClusterTrustBundleProjection, notExist bool, message string) func(*manifest.Objects) {
		return func(o *manifest.Objects) {
			o.Cluster.Missing[refs.TrustBundleRef(source)] = manifest.MissingObject{DoesNotExist: notExist, Message: message}
		}
	}
	for _, test := range []struct {
		name     string
		edits    []func(*manifest.Objects)
		optional bool
		want     refs.Blocker
	}{
		{"both exist", []func(*manifest.Objects){named, listed("test", "prod")}, false, refs.Blocker{}},
		{"name requested", []func(*manifest.Objects){listed("prod")}, true, refs.Blocker{MissingMessage: "ClusterTrustBundle roots is being looked up", EndsByItself: true}},
		{"signer requested", []func(*manifest.Objects){named}, true, refs.Blocker{MissingMessage: `the list of ClusterTrustBundles of signer "example.com/mesh" is being looked up`, EndsByItself: true}},
		{"name absent", []func(*manifest.Objects){missing(byName, true, "not found"), listed("prod")}, false, refs.Blocker{MissingMessage: "not found", Volume: "trust"}},
		{"optional name absent", []func(*manifest.Objects){missing(byName, true, "not found"), listed("prod")}, true, refs.Blocker{}},
		{"API not served", []func(*manifest.Objects){missing(byName, false, "not served"), listed("prod")}, true, refs.Blocker{MissingMessage: "not served", Volume: "trust"}},
		{"signer forbidden", []func(*manifest.Objects){named, missing(bySigner, false, "forbidden")}, true, refs.Blocker{MissingMessage: "forbidden", Volume: "trust"}},
		{"no labels match", []func(*manifest.Objects){named, listed("test")}, false, refs.Blocker{MissingMessage: `ClusterTrustBundle of signer "example.com/mesh" with the labels "stage=prod" not found`, Volume: "trust"}},
		{"optional labels match nothing", []func(*manifest.Objects){named, listed()}, true, refs.Blocker{}},
	} {
		p := clusterPod()
		o := clusterObjects(p)
		for _, edit := range test.edits {
			edit(&o)
		}
		byName.Optional, bySigner.Optional = nil, nil
		if test.optional {
			byName.Optional, bySigner.Optional = &yes, &yes
		}
		p.Object.Spec.Volumes = append(p.Object.Spec.Volumes, v1.Volume{Name: "trust", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{
			Sources: []v1.VolumeProjection{{ClusterTrustBundle: byName}, {ClusterTrustBundle: bySigner}}}}})
		_, s := resolve(p, o, nil)
		if s.Blocker != test.want {
			t.Errorf("%s: got %+v, want %+v", test.name, s.Blocker, test.want)
		}
		for _, source := range []*v1.ClusterTrustBundleProjection{byName, bySigner} {
			anchors, found := s.TrustAnchors(source)
			if found && string(anchors) != anchor {
				t.Errorf("%s: certificates for %s: got\n%s\nwant\n%s", test.name, source.Path, anchors, anchor)
			}
			why := s.MissingTrustBundle(source)
			if isBlocked := slices.Contains([]string{"name requested", "signer requested", "API not served", "signer forbidden"}, test.name); !found && why.DoesNotExist == isBlocked {
				t.Errorf("%s: bundle for %s: got missing object %+v, want DoesNotExist %t", test.name, source.Path, why, !isBlocked)
			}
		}
	}
}
