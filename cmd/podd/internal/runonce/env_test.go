package runonce

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

func TestEnv(t *testing.T) {
	lookup := func(name string) (string, bool) {
		if name == "HOME" {
			return "/root", true
		}
		return "", false
	}
	tests := []struct {
		name  string
		file  string
		words []string
		want  string
		unset string
		err   string
	}{
		{name: "words", words: []string{"A=1", "B=", "C=x=y z"}, want: "A=1 B= C=x=y z"},
		{name: "the last wins", words: []string{"A=1", "B=2", "A=3"}, want: "B=2 A=3"},
		{name: "podd's own", words: []string{"HOME", "NONE", "NONE"}, want: "HOME=/root", unset: "NONE"},
		{name: "a file", file: "\ufeffA=1\r\n\n# comment\n  B=2 \nHOME\nNONE\n", want: "A=1 B=2  HOME=/root", unset: "NONE"},
		{name: "words win", file: "A=1\nB=2", words: []string{"A=3"}, want: "B=2 A=3"},
		{name: "no name", words: []string{"=secret"}, err: "reading -e: what stands before = is no variable's name; want K=V"},
		{name: "no word", words: []string{""}, err: "reading -e: want K=V, or the name of a variable that podd has"},
		{name: "a bad name", file: "A=1\nsecret value=x", err: "line 2: what stands before = is no variable's name; want K=V"},
		{name: "a zero byte", words: []string{"A=secret\x00"}, err: "reading -e: the value of A has a zero byte in it"},
		{name: "too large", file: strings.Repeat("#", envLimit) + "\n", err: "it is larger than 1 MiB"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var files []string
			if test.file != "" {
				files = []string{filepath.Join(t.TempDir(), "env")}
				if err := os.WriteFile(files[0], []byte(test.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			env, unset, err := Env(files, test.words, lookup)
			if test.err != "" {
				if err == nil || !strings.HasSuffix(err.Error(), test.err) || strings.Contains(err.Error(), "secret") {
					t.Fatalf("got %v, %v; want error %q", env, err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(unset, " "); got != test.unset {
				t.Errorf("unset: got %q, want %q", got, test.unset)
			}
			if diff := cmp.Diff(test.want, envText(env)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEnvFileErrors(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{
		filepath.Join(dir, "none"): "reading --env-file " + dir + "/none: no such file or directory",
		dir:                        "reading --env-file " + dir + ": is a directory",
	} {
		if _, _, err := Env([]string{name}, nil, os.LookupEnv); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func envText(env []v1.EnvVar) string {
	var words []string
	for _, e := range env {
		words = append(words, e.Name+"="+e.Value)
	}
	return strings.Join(words, " ")
}

// TestWithEnv: in every container, over the manifest's, as they are, and the
// manifest's pod stays as it was.
func TestWithEnv(t *testing.T) {
	text := `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  initContainers:
  - {name: i, image: x}
  containers:
  - {name: c, image: x, env: [{name: A, value: 1}, {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: B, value: $(NEW)}]}
`
	p := wanted(t, strings.Replace(text, "value: 1", `value: "1"`, 1))[0]
	before := p.Spec.DeepCopy()
	got := WithEnv(p, []v1.EnvVar{{Name: "NAME", Value: "n"}, {Name: "NEW", Value: "$(A) $x"}})
	if diff := cmp.Diff(before, p.Spec); diff != "" {
		t.Errorf("the pod was written:\n%s", diff)
	}
	if got.Key != p.Key || got.UID != p.UID {
		t.Errorf("identity changed to %s %s", got.Key, got.UID)
	}
	if text := envText(got.Spec.Spec.InitContainers[0].Env); text != "NAME=n NEW=$$(A) $$x" {
		t.Errorf("the init container has %q", text)
	}
	if text := envText(got.Spec.Spec.Containers[0].Env); text != "NEW=$$(A) $$x A=1 NAME=n B=$(NEW)" {
		t.Errorf("the container has %q", text)
	}
	if got.Spec.Spec.Containers[0].Env[2].ValueFrom != nil {
		t.Error("an overridden variable has its source still")
	}
	if same := WithEnv(p, nil); same != p {
		t.Error("nothing to add, and another pod")
	}
	var _ *manifest.Pod = got
}
