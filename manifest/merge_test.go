package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"podd/manifest"
)

// unmerged leaves out what Merge adds to objects.
var unmerged = cmpopts.IgnoreUnexported(manifest.Objects{})

// batch is a source with one file.
func batch(kind, path, text string) manifest.Batch {
	f := manifest.Decode([]byte(text), manifest.Options{Kind: kind, Source: path, Path: path, Node: "n"})
	b := manifest.Collect(path, kind, f)
	b.Complete = true
	b.Files = []manifest.FileState{{Path: path}}
	return b
}

func podText(name, more string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s%s}\nspec: {containers: [{name: main, image: \"i:1\"}]}\n", name, more)
}

func lines(problems []manifest.Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.String())
	}
	return out
}

// TestPrecedence: a file before a URL before the API, then the order of batches
// and of pods; the loser is told with both places.
func TestPrecedence(t *testing.T) {
	file, url, api := podText("web", ""), "#\n"+podText("web", "")+podText("db", ""), podText("web-n", "")+podText("db-n", "")
	set := manifest.Merge([]manifest.Batch{
		batch(manifest.KindAPI, "api", api),
		batch(manifest.KindURL, "https://x", url),
		batch(manifest.KindFile, "b.yaml", file),
		batch(manifest.KindFile, "a.yaml", file+file),
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
		"a.yaml:4:12: error: metadata.name: pod default/web is at b.yaml:2, too, which comes first and counts; rename or remove one",
		"a.yaml:9:12: error: metadata.name: pod default/web is at b.yaml:2, too, which comes first and counts; rename or remove one",
		"https://x:5:12: error: metadata.name: pod default/web is at b.yaml:2, too, which comes first and counts; rename or remove one",
		"api:4:12: error: metadata.name: pod default/web-n is at b.yaml:2, too, which comes first and counts; rename or remove one",
		"api:9:12: error: metadata.name: pod default/db-n is at https://x:8, too, which comes first and counts; rename or remove one",
	}
	if diff := cmp.Diff(wantProblems, lines(set.Problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"api": true, "https://x": true, "a.yaml": true, "b.yaml": true}, set.Complete); diff != "" {
		t.Errorf("complete (-want +got):\n%s", diff)
	}
	if len(set.Files) != 4 || set.Files[0].Path != "a.yaml" || set.Files[3].Path != "https://x" {
		t.Errorf("files = %v", set.Files)
	}
}

// TestSharedUID: two pods cannot have one directory.
func TestSharedUID(t *testing.T) {
	set := manifest.Merge([]manifest.Batch{batch(manifest.KindFile, "a.yaml", podText("web", ", uid: u")+podText("db", ", uid: u"))})
	want := []string{"a.yaml:9:22: error: metadata.uid: pod default/web (a.yaml:2) has this uid, too; remove it from one"}
	if diff := cmp.Diff(want, lines(set.Problems)); diff != "" || len(set.Pods) != 1 {
		t.Errorf("%d pods; problems (-want +got):\n%s", len(set.Pods), diff)
	}
}

// TestObjects: objects stay with their source; in one source the first wins.
func TestObjects(t *testing.T) {
	conf := func(value string) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {k: " + value + "}\n"
	}
	o := manifest.Options{Source: "/etc/m", Path: "/etc/m/a.yaml"}
	first := manifest.Decode([]byte(conf("one")), o)
	o.Path = "/etc/m/b.yaml"
	second := manifest.Decode([]byte("#\n"+conf("two")), o)
	local := manifest.Collect("/etc/m", manifest.KindFile, first, second)
	set := manifest.Merge([]manifest.Batch{local, batch(manifest.KindURL, "https://x", conf("three"))})
	for source, want := range map[string]string{"/etc/m": "one", "https://x": "three"} {
		for key, c := range set.Objects[source].ConfigMaps {
			if key.String() != "default/c" || c.Data["k"] != want {
				t.Errorf("%s has %s = %q, want %q", source, key, c.Data["k"], want)
			}
		}
		if len(set.Objects[source].ConfigMaps) != 1 {
			t.Errorf("%s has %d ConfigMaps", source, len(set.Objects[source].ConfigMaps))
		}
	}
	want := []string{"/etc/m/b.yaml:3: error: ConfigMap default/c is at /etc/m/a.yaml:2, too, which comes first and counts; remove one"}
	if diff := cmp.Diff(want, lines(set.Problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestEqualProblemsAreOne: a source told twice is told once.
func TestEqualProblemsAreOne(t *testing.T) {
	b := batch(manifest.KindFile, "a.yaml", podText("web", "")+"---\nkind: What\n")
	b.Problems = append(b.Problems, b.Problems...)
	if set := manifest.Merge([]manifest.Batch{b}); len(set.Problems) != 1 {
		t.Errorf("problems = %v", set.Problems)
	}
}

// TestNothingIsWritten: Merge and Conflicts leave what they are given as it is.
func TestNothingIsWritten(t *testing.T) {
	text := podText("web", ", uid: u, labels: {a: b}") + podText("web", "") + podText("db", ", uid: u") +
		"---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n" + "---\nkind: What\n"
	make := func() []manifest.Batch {
		return []manifest.Batch{batch(manifest.KindURL, "https://x", text), batch(manifest.KindFile, "a.yaml", text), batch(manifest.KindFile, "a.yaml", text)}
	}
	batches, untouched := make(), make()
	set := manifest.Merge(batches)
	for _, p := range set.Pods {
		p.Short()
	}
	for i := range batches {
		manifest.Conflicts(batches[i].Pods)
	}
	if diff := cmp.Diff(untouched, batches, unmerged); diff != "" {
		t.Errorf("written (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(set, manifest.Merge(batches), unmerged); diff != "" {
		t.Errorf("the second merge differs (-first +second):\n%s", diff)
	}
}

// TestConflicts: host ports that several pods want.
func TestConflicts(t *testing.T) {
	pod := func(name, spec string) string {
		return fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  %s\n", name, spec)
	}
	ports := func(ports string) string {
		return "containers: [{name: main, image: i, ports: [" + ports + "]}]"
	}
	tests := map[string]struct {
		text string
		want []string
	}{
		"none":      {pod("a", ports("{containerPort: 80, hostPort: 80}")) + pod("b", ports("{containerPort: 80, hostPort: 81}, {containerPort: 90}")), nil},
		"same":      {pod("a", ports("{containerPort: 80, hostPort: 80}")) + pod("b", ports("{containerPort: 8080, hostPort: 80}")), []string{"f:12:69: error: spec.containers[0].ports[0].hostPort: 80 is taken by default/a (f:6)"}},
		"protocol":  {pod("a", ports("{containerPort: 80, hostPort: 80}")) + pod("b", ports("{containerPort: 80, hostPort: 80, protocol: UDP}")), nil},
		"addresses": {pod("a", ports("{containerPort: 80, hostPort: 80, hostIP: 127.0.0.1}")) + pod("b", ports("{containerPort: 80, hostPort: 80, hostIP: 127.0.0.2}")), nil},
		"several addresses": {pod("a", ports("{containerPort: 80, hostPort: 80, hostIP: 127.0.0.1}, {containerPort: 80, hostPort: 80, hostIP: 10.0.0.1}")) + pod("b", ports("{containerPort: 80, hostPort: 80, hostIP: 127.0.0.1}")),
			[]string{"f:12:67: error: spec.containers[0].ports[0].hostPort: 80 is taken by default/a (f:6)"}},
		"every address": {pod("a", ports("{containerPort: 80, hostPort: 80, hostIP: 127.0.0.1}")) + pod("b", ports("{containerPort: 80, hostPort: 80, hostIP: 0.0.0.0}")),
			[]string{"f:12:67: error: spec.containers[0].ports[0].hostPort: 80 is taken by default/a (f:6)"}},
		"host network": {pod("a", "hostNetwork: true\n  "+ports("{containerPort: 80}")) + pod("b", "hostNetwork: true\n  "+ports("{containerPort: 80}")),
			[]string{"f:14:47: error: spec.containers[0].ports[0].hostPort: 80 is taken by default/a (f:7)"}},
		"init": {pod("a", "initContainers: [{name: i, image: i, ports: [{containerPort: 80, hostPort: 80}]}]\n  "+ports("")) + pod("b", ports("{containerPort: 80, hostPort: 80}")), nil},
		"sidecar": {pod("a", "initContainers: [{name: i, image: i, restartPolicy: Always, ports: [{containerPort: 80, hostPort: 80}]}]\n  "+ports("")) + pod("b", ports("{containerPort: 80, hostPort: 80}")),
			[]string{"f:13:67: error: spec.containers[0].ports[0].hostPort: 80 is taken by default/a (f:6)"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := manifest.Decode([]byte(tt.text), manifest.Options{Path: "f", Node: "n"})
			if f.Refused() || len(f.Pods) != 2 {
				t.Fatalf("%d pods, problems %v", len(f.Pods), f.Problems)
			}
			if diff := cmp.Diff(tt.want, lines(manifest.Conflicts(f.Pods))); diff != "" {
				t.Errorf("conflicts (-want +got):\n%s", diff)
			}
			for _, p := range manifest.Conflicts(f.Pods) {
				if !strings.HasSuffix(p.Pod.Name, "-n") {
					t.Errorf("problem is about %s, want the full name", p.Pod)
				}
			}
		})
	}
}
