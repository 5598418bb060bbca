package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// TestParseEnvFile checks the value of variable A in a file, or the error.
func TestParseEnvFile(t *testing.T) {
	for text, want := range map[string]string{
		"A='1'":                           "1",
		"B='2'\nA='1'\nA='3'\n":           "1",
		"\n \t\n# A='0'\n  A='1' # text":  "1",
		"A='1\r\n 2'\r\n":                 "1\n 2",
		"B='x\nA=y'\nA='$B \\n \"q\" #'":  `$B \n "q" #`,
		"B='2'":                           "",
		"":                                "",
		"A=''":                            "",
		"A= '1'":                          "",
		"B= anything\nA='1'":              "1",
		"A='1'\nnot a variable":           "1",
		"not a variable\nA='1'":           "error: line 1 is not a variable; write NAME='VALUE' without spaces before and after =",
		"\nA ='1'":                        "error: line 2 is not a variable; write NAME='VALUE' without spaces before and after =",
		"='1'":                            "error: line 1 is not a variable; write NAME='VALUE' without spaces before and after =",
		"B='1\n2'\nA=1":                   "error: line 3: the value must be in single quotes",
		"A=\"1\"":                         "error: line 1: the value must be in single quotes",
		"A=":                              "error: line 1: the value must be in single quotes",
		"A='1\n2\n":                       "error: line 1: the value has no closing quote",
		"A='1'2":                          "error: line 1: only a comment may follow the closing quote",
		strings.Repeat("\n", 9) + "A='''": "error: line 10: only a comment may follow the closing quote",
	} {
		got, err := parseEnvFile(text, "A")
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want {
			t.Errorf("variable A of the file %q: got %q, want %q", text, got, want)
		}
	}
}

// FuzzParseEnvFile parses a file, and then a file that sets the variable to the value that the first
// call returned, in single quotes. The second call must return the same value.
func FuzzParseEnvFile(f *testing.F) {
	f.Add("B='2'\nA='1\n'", "A")
	f.Fuzz(func(t *testing.T, text, key string) {
		value, err := parseEnvFile(text, key)
		if err != nil || value == "" {
			return
		}
		again, err := parseEnvFile(key+"='"+value+"'", key)
		if again != value || err != nil {
			t.Errorf("file %q, variable %q: second call: got %q (error %v), want %q as from the first call", text, key, again, err, value)
		}
	})
}

// TestEnvironment_Files checks variables from files.
func TestEnvironment_Files(t *testing.T) {
	yes := true
	ref := func(path, key string, optional *bool) *v1.EnvVarSource {
		return &v1.EnvVarSource{FileKeyRef: &v1.FileKeySelector{VolumeName: "vars", Path: path, Key: key, Optional: optional}}
	}
	file := EnvFile{Volume: "vars", Path: "a.env"}
	text := map[EnvFile]string{file: "A='1'\nN='\x00'\nbroken s3cret\n"}
	for name, test := range map[string]struct {
		source *v1.EnvVarSource
		want   string // text of the variable X and of a variable that refers to it
	}{
		"value":            {ref("a.env", "A", nil), "X=1 Y=<1>"},
		"optional value":   {ref("a.env", "A", &yes), "X=1 Y=<1>"},
		"damaged file":     {ref("a.env", "B", &yes), `setting variable "X" of container "main": file "a.env" of volume "vars": line 3 is not a variable; write NAME='VALUE' without spaces before and after =`},
		"NUL":              {ref("a.env", "N", nil), `setting variable "X" of container "main": the value contains a NUL byte, so it cannot be the value of a variable; mount it as a file`},
		"no file":          {ref("b.env", "A", nil), `setting variable "X" of container "main": file "b.env" of volume "vars" does not exist; write it in an init container, or set optional`},
		"no optional file": {ref("b.env", "A", &yes), "Y=<$(X)>"},
	} {
		c := &v1.Container{Name: "main", Env: []v1.EnvVar{{Name: "X", ValueFrom: test.source}, {Name: "Y", Value: "<$(X)>"}}}
		got := ""
		env, err := newEnvironment(&ContainerInput{Pod: &manifest.Pod{}, Container: c, EnvFiles: text})
		if err != nil {
			got = err.Error()
		} else {
			for _, v := range env.vars {
				got += v.Key + "=" + string(v.Value) + " "
			}
		}
		if got = strings.TrimSpace(got); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
	c := &v1.Container{Env: []v1.EnvVar{{Name: "A", ValueFrom: ref("a.env", "A", nil)}, {Name: "B", ValueFrom: ref("a.env", "B", nil)}, {Name: "C", Value: "c"}, {Name: "D", ValueFrom: &v1.EnvVarSource{}}}}
	if diff := cmp.Diff([]EnvFile{file}, EnvFiles(c)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
