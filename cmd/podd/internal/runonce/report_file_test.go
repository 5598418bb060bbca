package runonce

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"podd/cmd/podd/internal/exit"
)

// newTestResult returns the result of a run with a succeeded, a long-running, a failed and an unstarted
// pod.
func newTestResult(t *testing.T) runResult {
	build, db, test := newPod(t, "build", never, "main"), newPod(t, "db", always, "pg"), newPod(t, "test", never, "unit")
	return newTestResultOf(verdict{Outcome: outcomeCompleted, Code: 137}, 12.4, map[string][]string{"unit": {"one <", "two"}, "main": {"built", "all"}},
		withReportAt(build, 9, setExit("main", 0, 1, 8.1), setFinished), withReportAt(db, 1.2, setReady),
		withReportAt(test, 12, setExit("unit", 137, 1, 3), setExitReason("unit", "OOMKilled", ""), setMessage("unit", "no\nroom"), setFinished),
		newPod(t, "late", never, "c"))
}

func TestWriteJUnit(t *testing.T) {
	r := newTestResult(t)
	var b bytes.Buffer
	if err := writeJUnit(&b, &r); err != nil {
		t.Fatal(err)
	}
	want := `<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="podd" tests="4" failures="1" errors="0" skipped="1" time="12.400" timestamp="2026-03-01T14:02:00">
    <testcase classname="default.build" name="build" file="ci/test.yaml:1" time="8.100">
      <system-out>built&#xA;all</system-out>
    </testcase>
    <testcase classname="default.db" name="db" file="ci/test.yaml:1" time="1.200">
      <system-out>ready in 1.2s, stopped</system-out>
    </testcase>
    <testcase classname="default.test" name="test" file="ci/test.yaml:1" time="3.000">
      <failure message="OOMKilled (137) after 3.0s: limit 256Mi, ci/test.yaml:10">OOMKilled (137) after 3.0s: limit 256Mi, ci/test.yaml:10&#xA;no&#xA;room</failure>
      <system-out>one &lt;&#xA;two</system-out>
    </testcase>
    <testcase classname="default.late" name="late" file="ci/test.yaml:1" time="0.000">
      <skipped message="not started">not started</skipped>
    </testcase>
  </testsuite>
</testsuites>
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("JUnit report (-want +got):\n%s", diff)
	}
}

// TestWriteJUnit_NotStarted checks the JUnit report of a run that could not start, and the report of a run
// without pods. Optional attributes are missing if they have no value.
func TestWriteJUnit_NotStarted(t *testing.T) {
	for _, tt := range []struct {
		name   string
		result *runResult
		want   string
	}{
		{"run that could not start", notStartedResult(errors.New("\"a.yaml\" & more"), exit.Internal), `<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="podd" tests="1" failures="0" errors="1" skipped="0" time="0.000">
    <testcase classname="podd" name="podd" time="0.000">
      <error message="&#34;a.yaml&#34; &amp; more">&#34;a.yaml&#34; &amp; more</error>
    </testcase>
  </testsuite>
</testsuites>
`},
		{"run without pods", &runResult{}, `<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="podd" tests="0" failures="0" errors="0" skipped="0" time="0.000"></testsuite>
</testsuites>
`},
	} {
		var b bytes.Buffer
		if err := writeJUnit(&b, tt.result); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, b.String()); diff != "" {
			t.Errorf("JUnit report of a %s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestWriteJUnit_ValidXML checks that the JUnit report is valid XML, whatever bytes the output of
// containers contains.
func TestWriteJUnit_ValidXML(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\x00\x1b[31m", "]]>", "\xff\xfe", "\ud7ff\ufffe"}))
		r := runResult{Rows: []resultRow{{Name: text.Draw(t, "name"), State: rowFailed, Text: text.Draw(t, "text"), LastLines: []string{text.Draw(t, "line")}}}}
		var b bytes.Buffer
		if err := writeJUnit(&b, &r); err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(&b); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				t.Fatalf("decoding the report: %v", err)
			}
		}
	})
}

func TestWriteJSON(t *testing.T) {
	r := newTestResult(t)
	var b bytes.Buffer
	if err := writeJSON(&b, &r); err != nil {
		t.Fatal(err)
	}
	var got jsonReport
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Outcome != outcomeCompleted || got.Code != 137 || got.PodCount != 4 || got.FailedCount != 1 || len(got.Results) != 4 {
		t.Errorf("got %+v, want the outcome completed, exit code 137, and 4 pods, of which one failed", got)
	}
	row := got.Results[2]
	if row.State != "failed" || row.Container != "unit" || *row.ExitCode != 137 || row.Reason != "OOMKilled" || strings.Join(row.LastLines, ",") != "one <,two" || row.Message != "no\nroom" {
		t.Errorf("result of the pod test: got %+v, want its failed container unit with exit code 137, last lines and message", row)
	}
}

// TestRows_Timeout checks that a pod that neither ended nor became ready before the timeout has failed. Its
// duration is the duration of the run.
func TestRows_Timeout(t *testing.T) {
	r := newTestResultOf(verdict{Outcome: outcomeTimedOut, Code: exit.Timeout}, 12.4, nil,
		withReportAt(newPod(t, "build", never, "main"), 3, setRunning("main")), withReportAt(newPod(t, "late", never, "c"), 3), withReportAt(newPod(t, "db", always, "pg"), 3))
	for _, row := range r.Rows {
		if row.State != rowFailed || row.Duration != 12400*time.Millisecond {
			t.Errorf("got %+v, want a failed pod with the duration 12.4s", row)
		}
	}
}

// TestRows_SeveralContainers checks the last lines of a succeeded pod with two containers. The report
// contains them, but the summary does not.
func TestRows_SeveralContainers(t *testing.T) {
	r := newTestResultOf(verdict{Outcome: outcomeCompleted}, 9, map[string][]string{"a": {"one"}, "b": {"two", "three"}},
		withReportAt(newPod(t, "build", never, "a", "b"), 9, setExit("a", 0, 1, 2), setExit("b", 0, 1, 2), setFinished))
	if got := strings.Join(r.Rows[0].LastLines, ","); got != "a | one,b | two,b | three" {
		t.Errorf("got last lines %q, want the lines of both containers with prefixes", got)
	}
	if strings.Contains(r.summary(), "three") {
		t.Errorf("got a summary with the output of a succeeded pod, want one without:\n%s", r.summary())
	}
}

// TestNewReportFile checks that newReportFile returns an error for a file that cannot be written. It must
// not create or change a file, because the report is written only at the end of the run.
func TestNewReportFile(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "none", "a.xml"), filepath.Join(dir, "a.xml", "b.xml"), filepath.Join(dir, "dir.json")} {
		if err := os.MkdirAll(filepath.Join(dir, "dir.json"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "a.xml"), []byte("earlier"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := newReportFile(path); err == nil || !strings.Contains(err.Error(), "no pod was started") {
			t.Errorf("%s: got error %v, want one that contains \"no pod was started\"", path, err)
		}
	}
	for name, want := range map[string]string{"a.xml": "earlier", "new.xml": ""} {
		path := filepath.Join(dir, name)
		if _, err := newReportFile(path); err != nil {
			t.Fatal(err)
		}
		if text, _ := os.ReadFile(path); string(text) != want {
			t.Errorf("%s: got content %q, want %q", name, text, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new.xml")); err == nil {
		t.Error("newReportFile created new.xml, want it to create no file")
	}
}

// TestNotStartedResult checks that the report of a run that could not start contains the reason. It also
// checks that newReportFile rejects a file name with an unknown format.
func TestNotStartedResult(t *testing.T) {
	if _, err := newReportFile("result.txt"); err == nil {
		t.Error("result.txt: got no error, want one for the unknown format")
	}
	for _, name := range []string{"a.xml", "a.json"} {
		path := filepath.Join(t.TempDir(), name)
		report, err := newReportFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := report.write(notStartedResult(errors.New("there is no pod to run"), exit.Internal)); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte("there is no pod to run")) {
			t.Errorf("%s: got content %s, error %v; want the reason", name, text, err)
		}
	}
}
