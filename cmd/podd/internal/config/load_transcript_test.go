package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	credential "k8s.io/kubelet/config/v1"

	"podd/runtime/runtimetest/golden"
)

// TestLoad_Transcripts calls Load for each transcript in testdata/load, a txtar archive. In the comment
// of a transcript, a line "args: …" contains flags, and a line "host: …" changes the HostFacts. The
// files of the transcript are in the working directory, and the files in bin are executable. The
// file "want" contains the warnings, and then the error of Load or the fields of the Config that
// differ from the defaults.
func TestLoad_Transcripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/load/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("listing testdata/load/*.txtar: got %d files, error %v; want at least one file", len(paths), err)
	}
	for _, path := range paths {
		abs, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) { runTranscript(t, abs) })
	}
}

// runTranscript checks one transcript. With -update, it writes the file "want" of the transcript.
func runTranscript(t *testing.T, path string) {
	a, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	want := ""
	for i, f := range a.Files {
		if f.Name == "want" {
			want = string(f.Data)
			a.Files = append(a.Files[:i:i], a.Files[i+1:]...)
			break
		}
	}
	for _, f := range a.Files {
		path := writeFile(t, dir, f.Name, string(f.Data))
		if filepath.Dir(f.Name) == "bin" && os.Chmod(path, 0o755) != nil {
			t.Fatalf("chmod 0755 %s failed", path)
		}
	}
	got := strings.ReplaceAll(loadTranscript(string(a.Comment)), dir, "$WORK")
	if golden.IsUpdate() {
		a.Files = append(a.Files, txtar.File{Name: "want", Data: []byte(got)})
		if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("file \"want\" of the transcript (-want +got):\n%s", diff)
	}
}

// loadTranscript calls Load as the comment of a transcript describes. It returns the text that the file
// "want" must contain.
func loadTranscript(comment string) string {
	var args []string
	m := testHost
	for line := range strings.Lines(comment) {
		key, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch key {
		case "args":
			args = append(args, strings.Fields(rest)...)
		case "host":
			m.UsesCgroupV2 = !strings.Contains(rest, "cgroupv1")
			m.SwapEnabled = strings.Contains(rest, "swap")
			m.CanLimitSwap = !strings.Contains(rest, "unlimited")
			if strings.Contains(rest, "kubelet") {
				m.Program = "kubelet"
			}
			if _, host, ok := strings.Cut(rest, "hostname="); ok {
				m.Hostname = host
			}
			_, m.KernelRelease, _ = strings.Cut(rest, "kernel=")
			for _, word := range strings.Fields(rest) {
				for i, prefix := range []string{"traces-endpoint=", "endpoint="} {
					if rawURL, ok := strings.CutPrefix(word, prefix); ok {
						m.TracingURLs[i] = rawURL
					}
				}
			}
		}
	}
	flags, err := tryParse(args...)
	if err != nil {
		return "usage: " + err.Error() + "\n"
	}
	got, warnings, err := Load(flags, m)
	var b strings.Builder
	for _, w := range warnings {
		fmt.Fprintln(&b, w)
	}
	if err != nil {
		fmt.Fprintln(&b, err)
		return b.String()
	}
	v, d := reflect.ValueOf(got), reflect.ValueOf(defaultConfig())
	for _, field := range configFields(v.Type()) {
		if got := format(v.FieldByIndex(field.Index)); got != format(d.FieldByIndex(field.Index)) {
			fmt.Fprintf(&b, "%s = %s\n", field.Name, got)
		}
	}
	return b.String()
}

// configFields returns the fields of Config and of its embedded structs, except RedactedConfig.
func configFields(config reflect.Type) (all []reflect.StructField) {
	for _, field := range reflect.VisibleFields(config) {
		if !field.Anonymous && field.Name != "RedactedConfig" {
			all = append(all, field)
		}
	}
	return all
}

// format formats a value on one line. It formats credential provider plugins as JSON, because they
// contain pointers.
func format(v reflect.Value) string {
	if plugins, ok := v.Interface().([]credential.CredentialProvider); ok {
		data, _ := json.Marshal(plugins)
		return string(data)
	}
	if v.Kind() == reflect.Struct {
		return fmt.Sprintf("%+v", v)
	}
	return fmt.Sprint(v)
}
