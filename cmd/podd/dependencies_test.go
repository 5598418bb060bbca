package main

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podd/cmd/podd/docs"
)

// dependencyRow matches a row of the table of dependencies in the page "architecture".
var dependencyRow = regexp.MustCompile("(?m)^\\| `([^` ]+)` \\| (.+) \\|$")

// TestDependencies checks that the page "architecture" lists the direct dependencies and the modules
// of the tools in go.mod, sorted, each with its purpose.
func TestDependencies(t *testing.T) {
	text, ok := docs.Page("architecture")
	if !ok {
		t.Fatal(`podd has no page "architecture"`)
	}
	_, section, ok := strings.Cut(text, "\n## Dependencies\n")
	if !ok {
		t.Fatal(`the page "architecture" has no section "Dependencies"`)
	}
	var got []string
	for _, row := range dependencyRow.FindAllStringSubmatch(section, -1) {
		got = append(got, row[1])
	}
	if diff := cmp.Diff(directDependencies(t), got); diff != "" {
		t.Errorf("dependencies in go.mod and in the page \"architecture\" (-go.mod +page):\n%s", diff)
	}
}

// directDependencies returns the direct dependencies and the modules of the tools in go.mod,
// sorted.
func directDependencies(t *testing.T) (modules []string) {
	t.Helper()
	out, err := exec.Command("go", "mod", "edit", "-json", "../../go.mod").Output()
	if err != nil {
		t.Fatalf("reading go.mod: %v", err)
	}
	var file struct {
		Require []struct {
			Path     string
			Indirect bool
		}
		Tool []struct{ Path string }
	}
	if err := json.Unmarshal(out, &file); err != nil {
		t.Fatalf("decoding the JSON form of go.mod: %v", err)
	}
	for _, r := range file.Require {
		isTool := slices.ContainsFunc(file.Tool, func(tool struct{ Path string }) bool { return isBelow(tool.Path, r.Path) })
		if !r.Indirect || isTool {
			modules = append(modules, r.Path)
		}
	}
	slices.Sort(modules)
	return modules
}
