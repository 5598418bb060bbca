package event

import (
	"bytes"
	_ "embed"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// kubeletReasons contains the reasons of the events that a kubelet records, one a line. The program
// testdata/controlplane/settings writes this file. It omits reasons that are not constants in the kubelet: the
// reasons of rejected pods and the conditions of PodCertificateRequests.
//
//go:embed testdata/reasons.txt
var kubeletReasons string

// computedReasons are reasons that the code of podd does not contain as text, because it computes them from the
// reason of a condition; see TestForResize.
var computedReasons = []string{"ResizeDeferred", "ResizeInfeasible"}

// unusedReason matches a line of the package comment with reasons that podd does not use.
var unusedReason = regexp.MustCompile(`(?m)^\t([A-Z]\w+(?:, [A-Z]\w+)*)  `)

// TestReasons checks that podd records events with each reason of the kubelet, or that the package comment
// contains why it does not.
func TestReasons(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	var unused []string
	for _, match := range unusedReason.FindAllStringSubmatch(file.Doc.Text(), -1) {
		unused = append(unused, strings.Split(match[1], ", ")...)
	}
	used := usedReasons(t)
	for _, reason := range strings.Fields(kubeletReasons) {
		if !used[reason] && !slices.Contains(unused, reason) && !slices.Contains(computedReasons, reason) {
			t.Errorf("%s: got neither an event nor a line in the package comment, want one of them", reason)
		}
	}
	for _, reason := range unused {
		if used[reason] {
			t.Errorf("%s: got an event and a line in the package comment, want only one of them", reason)
		}
		if !slices.Contains(strings.Fields(kubeletReasons), reason) {
			t.Errorf("%s: got a line in the package comment, but it is no reason of a kubelet", reason)
		}
	}
}

// recordedReason matches a reason where podd's code records an event: the argument of a function that
// creates or records events, a variable reason, a constant Reason…, or a field EventReason.
var recordedReason = regexp.MustCompile(`(?:(?:Event|record|addFailure)\((?:v1\.EventType\w+, )?|\breason :?= |\bReason\w+ += |\bEventReason: )"([A-Z]\w+)"`)

// usedReasons returns the reasons with which podd's code records events. It also returns a few other words,
// because recordedReason matches all variables and constants with such a name.
func usedReasons(t *testing.T) map[string]bool {
	t.Helper()
	used := map[string]bool{}
	for _, dir := range []string{"reconcile", "cmd/podd/internal/daemon", "cmd/podd/internal/cluster"} {
		root := os.DirFS("../..")
		err := fs.WalkDir(root, dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := fs.ReadFile(root, path)
			for line := range bytes.Lines(text) {
				code, _, _ := bytes.Cut(line, []byte("//"))
				for _, match := range recordedReason.FindAllSubmatch(code, -1) {
					used[string(match[1])] = true
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return used
}
