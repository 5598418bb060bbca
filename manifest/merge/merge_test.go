package merge_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/manifesttest"
	"podd/manifest/merge"
)

func lines(problems []manifest.Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.String())
	}
	return out
}

// TestBatches_Precedence checks that files take precedence over URLs, URLs over the API, and
// earlier batches and pods over later ones. The Problem of an ignored pod must contain the
// positions of both pods.
func TestBatches_Precedence(t *testing.T) {
	file, url, api := manifesttest.Pod("web", ""), "#\n"+manifesttest.Pod("web", "")+manifesttest.Pod("db", ""), manifesttest.Pod("web-n", "")+manifesttest.Pod("db-n", "")
	set := merge.Batches([]manifest.Batch{
		manifesttest.Batch(manifest.KindAPI, "api", api),
		manifesttest.Batch(manifest.KindURL, "https://x", url),
		manifesttest.Batch(manifest.KindFile, "b.yaml", file),
		manifesttest.Batch(manifest.KindFile, "a.yaml", file+file),
	})
	got := map[string]string{}
	for key, p := range set.Pods {
		got[key.String()] = p.Origin.String()
	}
	want := map[string]string{"default/web-n": "b.yaml:2", "default/db-n": "https://x:8"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	wantProblems := []string{
		"a.yaml:4:12: error: metadata.name: pod default/web is also defined at b.yaml:2, which takes precedence; rename or remove one",
		"a.yaml:9:12: error: metadata.name: pod default/web is also defined at b.yaml:2, which takes precedence; rename or remove one",
		"https://x:5:12: error: metadata.name: pod default/web is also defined at b.yaml:2, which takes precedence; rename or remove one",
		"api:4:12: error: metadata.name: pod default/web-n is also defined at b.yaml:2, which takes precedence; rename or remove one",
		"api:9:12: error: metadata.name: pod default/db-n is also defined at https://x:8, which takes precedence; rename or remove one",
	}
	if diff := cmp.Diff(wantProblems, lines(set.Problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"api": true, "https://x": true, "a.yaml": true, "b.yaml": true}, set.CompleteSources); diff != "" {
		t.Errorf("sources with a complete listing (-want +got):\n%s", diff)
	}
	if len(set.FileStates) != 4 || set.FileStates[0].Path != "a.yaml" || set.FileStates[3].Path != "https://x" {
		t.Errorf("files: got %v, want the files of all batches by path", set.FileStates)
	}
}

// TestBatches_SharedUID checks that only the first of two pods with the same UID is used,
// because both would have the same directory.
func TestBatches_SharedUID(t *testing.T) {
	set := merge.Batches([]manifest.Batch{manifesttest.Batch(manifest.KindFile, "a.yaml", manifesttest.Pod("web", ", uid: u")+manifesttest.Pod("db", ", uid: u"))})
	want := []string{"a.yaml:9:22: error: metadata.uid: pod default/web (a.yaml:2) has the same uid; remove the uid from one of the pods"}
	if diff := cmp.Diff(want, lines(set.Problems)); diff != "" || len(set.Pods) != 1 {
		t.Errorf("got %d pods; problems (-want +got):\n%s", len(set.Pods), diff)
	}
}

// TestBatches_Objects checks that the objects of different sources stay separate, and that the
// first of two objects with the same name in one source is used.
func TestBatches_Objects(t *testing.T) {
	conf := func(value string) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {k: " + value + "}\n"
	}
	o := decode.Options{Source: "/etc/m", Path: "/etc/m/a.yaml"}
	first := decode.File([]byte(conf("one")), o)
	o.Path = "/etc/m/b.yaml"
	second := decode.File([]byte("#\n"+conf("two")), o)
	local := merge.Files("/etc/m", manifest.KindFile, first, second)
	set := merge.Batches([]manifest.Batch{local, manifesttest.Batch(manifest.KindURL, "https://x", conf("three"))})
	for source, want := range map[string]string{"/etc/m": "one", "https://x": "three"} {
		for key, c := range set.ObjectsBySource[source].ConfigMaps {
			if key.String() != "default/c" || c.Data["k"] != want {
				t.Errorf("%s: ConfigMap %s: got %q, want %q", source, key, c.Data["k"], want)
			}
		}
		if len(set.ObjectsBySource[source].ConfigMaps) != 1 {
			t.Errorf("%s: got %d ConfigMaps, want those of this source only", source, len(set.ObjectsBySource[source].ConfigMaps))
		}
	}
	want := []string{"/etc/m/b.yaml:3: error: ConfigMap default/c is also defined at /etc/m/a.yaml:2, which takes precedence; remove one"}
	if diff := cmp.Diff(want, lines(set.Problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestBatches_EqualProblems checks that equal Problems of a source are reported once.
func TestBatches_EqualProblems(t *testing.T) {
	b := manifesttest.Batch(manifest.KindFile, "a.yaml", manifesttest.Pod("web", "")+"---\nkind: What\n")
	b.Problems = append(b.Problems, b.Problems...)
	if set := merge.Batches([]manifest.Batch{b}); len(set.Problems) != 1 {
		t.Errorf("problems: got %v, want one", set.Problems)
	}
}

// TestBatches_KeepsInput checks that Batches and FindHostPortConflicts do not change their input.
func TestBatches_KeepsInput(t *testing.T) {
	text := manifesttest.Pod("web", ", uid: u, labels: {a: b}") + manifesttest.Pod("web", "") + manifesttest.Pod("db", ", uid: u") +
		"---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n" + "---\nkind: What\n"
	make := func() []manifest.Batch {
		return []manifest.Batch{manifesttest.Batch(manifest.KindURL, "https://x", text), manifesttest.Batch(manifest.KindFile, "a.yaml", text), manifesttest.Batch(manifest.KindFile, "a.yaml", text)}
	}
	batches, untouched := make(), make()
	set := merge.Batches(batches)
	for _, p := range set.Pods {
		p.ManifestKey()
	}
	for i := range batches {
		manifest.FindHostPortConflicts(batches[i].Pods)
	}
	if diff := cmp.Diff(untouched, batches); diff != "" {
		t.Errorf("Batches or FindHostPortConflicts changed the input (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(set, merge.Batches(batches)); diff != "" {
		t.Errorf("merging again (-first +second):\n%s", diff)
	}
}
