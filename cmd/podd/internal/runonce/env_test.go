package runonce

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
)

// TestParseEnv checks the variables of -e and of one --env-file. Names without a value get the value of
// podd's environment, in which only HOME is set. No error must contain a value, here "secret".
func TestParseEnv(t *testing.T) {
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
		want  string // variables
		unset string // names without a value that podd's environment does not contain
		err   string // end of the error; "" for none
	}{
		{name: "words", words: []string{"A=1", "B=", "C=x=y z"}, want: "A=1 B= C=x=y z"},
		{name: "last value of a name", words: []string{"A=1", "B=2", "A=3"}, want: "B=2 A=3"},
		{name: "podd's environment", words: []string{"HOME", "NONE", "NONE"}, want: "HOME=/root", unset: "NONE"},
		{name: "file", file: "\ufeffA=1\r\n\n# comment\n  B=2 \nHOME\nNONE\n", want: "A=1 B=2  HOME=/root", unset: "NONE"},
		{name: "words replace those of files", file: "A=1\nB=2", words: []string{"A=3"}, want: "B=2 A=3"},
		{name: "empty name", words: []string{"=secret"}, err: "parsing the environment variable of -e: invalid variable name before the equals sign; write K=V"},
		{name: "empty word", words: []string{""}, err: "parsing the environment variable of -e: invalid variable name; write K=V, or K to pass on a variable of podd's environment"},
		{name: "invalid name", file: "A=1\nsecret value=x", err: "line 2: invalid variable name before the equals sign; write K=V"},
		{name: "NUL byte", words: []string{"A=secret\x00"}, err: "parsing the environment variable of -e: the value of variable A contains a NUL byte"},
		{name: "large file", file: strings.Repeat("#", maxEnvFileBytes) + "\n", err: ": the file is larger than 1 MiB"},
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
			env, unset, err := parseEnv(files, test.words, lookup)
			if test.err != "" {
				if err == nil || !strings.HasSuffix(err.Error(), test.err) || strings.Contains(err.Error(), "secret") {
					t.Fatalf("got variables %v, error %v; want an error that ends in %q and does not contain \"secret\"", env, err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(unset, " "); got != test.unset {
				t.Errorf("names that are not set: got %q, want %q", got, test.unset)
			}
			if diff := cmp.Diff(test.want, formatEnv(env)); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
		})
	}
}

// TestParseEnv_FileErrors checks the errors for files that cannot be read.
func TestParseEnv_FileErrors(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{
		filepath.Join(dir, "none"): "reading --env-file " + dir + "/none: no such file or directory",
		dir:                        "reading --env-file " + dir + ": is a directory",
	} {
		if _, _, err := parseEnv([]string{name}, nil, os.LookupEnv); err == nil || err.Error() != want {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}

// formatEnv returns the variables as K=V, separated by spaces.
func formatEnv(env []v1.EnvVar) string {
	var words []string
	for _, e := range env {
		words = append(words, e.Name+"="+e.Value)
	}
	return strings.Join(words, " ")
}

// TestPodWithEnv checks that podWithEnv adds variables to every container, without expanding their
// values. A variable must replace the variable of the manifest with the same name. The original pod
// must not change.
func TestPodWithEnv(t *testing.T) {
	text := `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  initContainers:
  - {name: i, image: x}
  containers:
  - {name: c, image: x, env: [{name: A, value: 1}, {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: B, value: $(NEW)}]}
`
	p := decodePods(t, strings.Replace(text, "value: 1", `value: "1"`, 1))[0]
	before := p.Object.DeepCopy()
	got := podWithEnv(p, []v1.EnvVar{{Name: "NAME", Value: "n"}, {Name: "NEW", Value: "$(A) $x"}})
	if diff := cmp.Diff(before, p.Object); diff != "" {
		t.Errorf("the original pod was modified (-before +after):\n%s", diff)
	}
	if got.Key != p.Key || got.UID != p.UID {
		t.Errorf("got key %s, UID %s; want key %s, UID %s as in the original pod", got.Key, got.UID, p.Key, p.UID)
	}
	if text := formatEnv(got.Object.Spec.InitContainers[0].Env); text != "NAME=n NEW=$$(A) $$x" {
		t.Errorf("init container: got variables %q, want the two new variables with escaped $", text)
	}
	if text := formatEnv(got.Object.Spec.Containers[0].Env); text != "NEW=$$(A) $$x A=1 NAME=n B=$(NEW)" {
		t.Errorf("container: got variables %q, want NEW before the variables of the manifest, and the new value of NAME", text)
	}
	if got.Object.Spec.Containers[0].Env[2].ValueFrom != nil {
		t.Error("replaced variable NAME: got a valueFrom, want only a value")
	}
	if same := podWithEnv(p, nil); same != p {
		t.Error("without new variables: got a copy of the pod, want the pod itself")
	}
}
