package offline

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/poddtest"
	"podd/manifest"
	"podd/manifest/source"
	"podd/reconcile"
	"podd/server"
)

// runPlan runs podd plan with the given root directory and manifest path. If the parameter url is not "",
// it is an additional manifest URL. No runtime runs. If podd plan fails, runPlan appends the error to
// stderr.
func runPlan(ctx context.Context, t *testing.T, root, path, url string) (stdout, stderr string) {
	t.Helper()
	endpoint := "unix://" + filepath.Join(root, "no.sock")
	flags := config.Flags{FileFlags: config.FileFlags{RootDir: root}, NodeFlags: config.NodeFlags{HostnameOverride: "n1"}, RuntimeFlags: config.RuntimeFlags{ContainerRuntimeEndpoint: &endpoint}, SourceFlags: config.SourceFlags{PodManifestPath: []string{path}}}
	if url != "" {
		flags.ManifestURL = []string{url}
	}
	var o, e bytes.Buffer
	if err := (&PlanCmd{Flags: flags}).Run(ctx, iostreams.Streams{In: strings.NewReader(""), Out: &o, Err: &e}); err != nil {
		e.WriteString(err.Error())
	}
	return o.String(), e.String()
}

// writeJournal writes the journal of the pod default/old-n1, as if podd had run this pod earlier.
func writeJournal(t *testing.T, root string) {
	t.Helper()
	dir := filepath.Join(root, "pods", "11111111-1111-1111-1111-111111111111")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	text := `{"key":{"Namespace":"default","Name":"old-n1"},"uid":"11111111-1111-1111-1111-111111111111","hash":"h","volumes":true}`
	if err := os.WriteFile(filepath.Join(dir, "journal.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// webManifest is the manifest of the pod web.
const webManifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: i}]}\n"

// TestPlan_CachedContent checks that podd plan uses the cached valid content of a manifest directory if
// the current content is invalid, as podd run does.
func TestPlan_CachedContent(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	file := filepath.Join(dir, "web.yaml")
	if err := os.WriteFile(file, []byte(webManifest), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := source.NewDir(dir, source.Options{NodeName: "n1", CacheDir: filepath.Join(root, "sources")})
	if err := s.Run(ctx, func(manifest.Batch) { cancel() }); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(webManifest, "image: i", "imag: i", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, errs := runPlan(t.Context(), t, root, dir, ""); !strings.Contains(out, "\ndefault/web-n1\n") {
		t.Errorf("got stdout\n%s\nstderr\n%s\nwant the pod default/web-n1", out, errs)
	}
}

// TestPlan_UnreadSource checks that podd plan names a source that does not respond, and does not plan to
// stop pods that this source may define.
func TestPlan_UnreadSource(t *testing.T) {
	root := t.TempDir()
	writeJournal(t, root)
	const rule = "SourcesNotRead"
	if out, errs := runPlan(t.Context(), t, root, t.TempDir(), ""); !strings.Contains(out, "default/old-n1") || strings.Contains(out, rule) {
		t.Errorf("all sources read: got stdout\n%s\nstderr\n%s\nwant text with the stop of default/old-n1", out, errs)
	}
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	dir := t.TempDir()
	var out, errs string
	// The first timeout is less than that of podd plan. On a busy machine, podd plan may read no source
	// before the timeout.
	for timeout := 2 * time.Second; timeout < 5*time.Minute && !strings.Contains(out, rule); timeout *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		out, errs = runPlan(ctx, t, root, dir, web.URL+"/m")
		cancel()
	}
	if !strings.Contains(out, rule) || !strings.Contains(errs, "reading source "+web.URL+"/m timed out") {
		t.Errorf("unresponsive URL: got stdout\n%s\nstderr\n%s\nwant the rule %q, and a timeout of the URL", out, errs, rule)
	}
}

// TestPlan_RunningPodd checks that podd plan uses the sources of the running podd. If its arguments are
// manifests, podd plan also reads these manifests. It then prints only the pods that they define, and
// the pods that podd has read from them earlier.
func TestPlan_RunningPodd(t *testing.T) {
	root, dir, more := t.TempDir(), t.TempDir(), t.TempDir()
	writeManifest := func(path, text string) string {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	manifestOf := func(name string) string { return strings.Replace(webManifest, "name: web", "name: "+name, 1) }
	one := writeManifest(filepath.Join(dir, "one.yaml"), manifestOf("one"))
	writeManifest(filepath.Join(dir, "two.yaml"), manifestOf("two"))
	writeJournal(t, root)
	removed := &server.PodView{Path: one, Pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "old-n1"}}}
	f := poddtest.Serve(t, &server.View{Node: "n1", RootDir: root, Sources: []string{dir}, Pods: []*server.PodView{removed}})
	for name, test := range map[string]struct {
		targets []string
		root    string
		want    string
	}{
		"no targets":             {nil, "", "default/old-n1 default/one-n1 default/two-n1"},
		"pod":                    {[]string{"two"}, "", "default/two-n1"},
		"new manifest":           {[]string{writeManifest(filepath.Join(more, "web.yaml"), webManifest)}, "", "default/web-n1"},
		"edited manifest":        {[]string{writeManifest(filepath.Join(more, "edit.yaml"), strings.Replace(manifestOf("two"), "image: i", "image: j", 1))}, "", "default/two-n1"},
		"file of a source":       {[]string{one}, "", "default/old-n1 default/one-n1"},
		"another root directory": {nil, t.TempDir(), ""},
	} {
		var out, errs bytes.Buffer
		endpoint := "unix://" + filepath.Join(root, "no.sock")
		c := &PlanCmd{Flags: config.Flags{FileFlags: config.FileFlags{RunDir: f.Dir, RootDir: test.root}, RuntimeFlags: config.RuntimeFlags{ContainerRuntimeEndpoint: &endpoint}}, Targets: test.targets}
		err := c.Run(t.Context(), iostreams.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		var got []string
		for line := range strings.Lines(out.String()) {
			if !strings.HasPrefix(line, " ") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		if strings.Join(got, " ") != test.want || (err != nil) != (test.want == "") {
			t.Errorf("%s: got pods %q, error %v; want pods %q (an error if there are none); stdout:\n%s\nstderr:\n%s", name, got, err, test.want, out.String(), errs.String())
		}
	}
}

// TestPlan_Replaces checks that podd plan prints whether an edit replaces a pod. It must also print the
// reason if the View of the running podd contains the running version of the pod.
func TestPlan_Replaces(t *testing.T) {
	key := types.NamespacedName{Namespace: "default", Name: "web-n1"}
	pod := func(limits v1.ResourceList) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace},
			Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Limits: limits}}}}}
	}
	limited := pod(v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")})
	running := &server.View{Pods: []*server.PodView{{Pod: pod(nil)}}}
	for _, test := range []struct {
		name     string
		edited   *v1.Pod
		running  *server.View
		replaces bool
		want     string
	}{
		{"edit that replaces no pod", limited, running, false, ""},
		{"different QoS class", limited, running, true, "  replaces the running version: the QoS class would change from BestEffort to Burstable, but cannot change while the pod runs\n"},
		{"same QoS class", pod(nil), running, true, "  replaces the running version\n"},
		{"podd not running", limited, nil, true, "  replaces the running version\n"},
		{"pod not in the View of the running podd", limited, &server.View{}, true, "  replaces the running version\n"},
	} {
		var out strings.Builder
		planned := []reconcile.PlannedPod{{Key: key, Pod: &manifest.Pod{Key: key, Object: test.edited}, ReplacesRunning: test.replaces}}
		if err := printPlan(&out, nil, planned, test.running); err != nil {
			t.Fatal(err)
		}
		if first := "default/web-n1\n" + test.want; !strings.HasPrefix(out.String(), first) || strings.Contains(out.String(), "replaces") != test.replaces {
			t.Errorf("%s: got %q, want text that begins with %q and that contains \"replaces\": %t", test.name, out.String(), first, test.replaces)
		}
	}
}

// TestPlan_UnknownPod checks that podd plan accepts every form of the name of an existing pod, and fails
// for the name of a pod that does not exist.
func TestPlan_UnknownPod(t *testing.T) {
	planned := []reconcile.PlannedPod{{
		Key: types.NamespacedName{Namespace: "default", Name: "web-n1"},
		Pod: &manifest.Pod{Object: &v1.Pod{Spec: v1.PodSpec{NodeName: "n1"}}},
	}}
	f := planFilter{pods: []string{"web", "web-n1", "default/web", "wbe"}}
	if got := strings.Join(f.unknownPods(planned), " "); got != "wbe" {
		t.Errorf("got the unknown pods %q, want only wbe", got)
	}
	dir := t.TempDir()
	root, manifests := filepath.Join(dir, "root"), filepath.Join(dir, "manifests")
	for _, d := range []string{root, manifests} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	endpoint := "unix://" + filepath.Join(root, "no.sock")
	c := PlanCmd{Targets: []string{"nosuch"}, Flags: config.Flags{
		FileFlags: config.FileFlags{RootDir: root}, NodeFlags: config.NodeFlags{HostnameOverride: "n1"},
		RuntimeFlags: config.RuntimeFlags{ContainerRuntimeEndpoint: &endpoint}, SourceFlags: config.SourceFlags{PodManifestPath: []string{manifests}},
	}}
	var out, log bytes.Buffer
	err := c.Run(t.Context(), iostreams.Streams{In: strings.NewReader(""), Out: &out, Err: &log})
	if err == nil || !strings.Contains(err.Error(), "planning pod nosuch: pod not found") {
		t.Errorf("podd plan nosuch: got error %v, stdout %q; want the error that the pod was not found", err, out.String())
	}
}

// TestPlan_Pressure checks that podd plan admits no pod if the running podd reports pressure of the node.
func TestPlan_Pressure(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(webManifest), 0o644); err != nil {
		t.Fatal(err)
	}
	f := poddtest.Serve(t, &server.View{Node: "n1", RootDir: root, Sources: []string{dir}, Pressure: []v1.NodeConditionType{v1.NodeDiskPressure}})
	var out, errs bytes.Buffer
	endpoint := "unix://" + filepath.Join(root, "no.sock")
	c := &PlanCmd{Flags: config.Flags{FileFlags: config.FileFlags{RunDir: f.Dir}, RuntimeFlags: config.RuntimeFlags{ContainerRuntimeEndpoint: &endpoint}}}
	if err := c.Run(t.Context(), iostreams.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}); err != nil {
		t.Fatal(err)
	}
	if want := "the node has the condition [DiskPressure]"; !strings.Contains(out.String(), want) || strings.Contains(out.String(), "pull image") {
		t.Errorf("got stdout\n%s\nstderr\n%s\nwant %q and no pull of an image", out.String(), errs.String(), want)
	}
}
