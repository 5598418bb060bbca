package config

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	credential "k8s.io/kubelet/config/v1"
)

var update = flag.Bool("update", false, "rewrite testdata/load")

// TestTranscripts loads what each of testdata/load describes. The comment has
// lines "args: …" and, for another machine than usual, "machine: …"; the files
// stand beside each other in the working directory, those in bin being programs; "want" is everything that
// comes of it: warnings, errors and the fields that differ from the defaults.
func TestTranscripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/load/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, path := range paths {
		abs, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) { transcript(t, abs) })
	}
}

func transcript(t *testing.T, path string) {
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
		path := write(t, dir, f.Name, string(f.Data))
		if filepath.Dir(f.Name) == "bin" && os.Chmod(path, 0o755) != nil {
			t.Fatalf("making %s a program", path)
		}
	}
	got := strings.ReplaceAll(load(string(a.Comment)), dir, "$WORK")
	if *update {
		a.Files = append(a.Files, txtar.File{Name: "want", Data: []byte(got)})
		if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// load does what the comment of a transcript says and tells what happened.
func load(comment string) string {
	var args []string
	m := machine
	for line := range strings.Lines(comment) {
		key, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch key {
		case "args":
			args = append(args, strings.Fields(rest)...)
		case "machine":
			m.CgroupV2 = !strings.Contains(rest, "cgroupv1")
			m.Swap = strings.Contains(rest, "swap")
			m.SwapLimits = !strings.Contains(rest, "unlimited")
			if strings.Contains(rest, "kubelet") {
				m.Program = "kubelet"
			}
			if _, host, ok := strings.Cut(rest, "hostname="); ok {
				m.Hostname = host
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
	v, d := reflect.ValueOf(got), reflect.ValueOf(base())
	for _, field := range settings(v.Type()) {
		if got := told(v.FieldByIndex(field.Index)); got != told(d.FieldByIndex(field.Index)) {
			fmt.Fprintf(&b, "%s = %s\n", field.Name, got)
		}
	}
	return b.String()
}

// settings returns the fields of a Config without Shown, those of its groups in their
// place.
func settings(config reflect.Type) (all []reflect.StructField) {
	for _, field := range reflect.VisibleFields(config) {
		if !field.Anonymous && field.Name != "Shown" {
			all = append(all, field)
		}
	}
	return all
}

// told is a value on one line; plugins, which have pointers, as JSON.
func told(v reflect.Value) string {
	if plugins, ok := v.Interface().([]credential.CredentialProvider); ok {
		data, _ := json.Marshal(plugins)
		return string(data)
	}
	if v.Kind() == reflect.Struct {
		return fmt.Sprintf("%+v", v)
	}
	return fmt.Sprint(v)
}
