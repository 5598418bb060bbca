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

func reported(t *testing.T) Result {
	build, db, test := podOf(t, "build", never, "main"), podOf(t, "db", always, "pg"), podOf(t, "test", never, "unit")
	return resultOf(Verdict{Outcome: Ended, Code: 137}, 12.4, map[string][]string{"unit": {"one <", "two"}, "main": {"built", "all"}},
		heard(build, 9, exited("main", 0, 1, 8.1), isFinished), heard(db, 1.2, isReady),
		heard(test, 12, exited("unit", 137, 1, 3), exitReason("unit", "OOMKilled", ""), saying("unit", "no\nroom"), isFinished),
		podOf(t, "late", never, "c"))
}

func TestJUnit(t *testing.T) {
	r := reported(t)
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
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestJUnitIsXML whatever containers write.
func TestJUnitIsXML(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"\x00\x1b[31m", "]]>", "\xff\xfe", "\ud7ff\ufffe"}))
		r := Result{Rows: []Row{{Name: text.Draw(t, "name"), State: Failed, Text: text.Draw(t, "text"), Last: []string{text.Draw(t, "line")}}}}
		var b bytes.Buffer
		if err := writeJUnit(&b, &r); err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(&b); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				t.Fatalf("not XML: %v", err)
			}
		}
	})
}

func TestJSON(t *testing.T) {
	r := reported(t)
	var b bytes.Buffer
	if err := writeJSON(&b, &r); err != nil {
		t.Fatal(err)
	}
	var got jsonReport
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Outcome != Ended || got.Code != 137 || got.Pods != 4 || got.Failed != 1 || len(got.Results) != 4 {
		t.Errorf("got %+v", got)
	}
	row := got.Results[2]
	if row.State != "failed" || row.Container != "unit" || *row.ExitCode != 137 || row.Reason != "OOMKilled" || strings.Join(row.Last, ",") != "one <,two" || row.Message != "no\nroom" {
		t.Errorf("got %+v", row)
	}
}

// TestReportOfTimeout: how long a pod had is told of one that did not make it.
func TestReportOfTimeout(t *testing.T) {
	r := resultOf(Verdict{Outcome: TimedOut, Code: exit.Timeout}, 12.4, nil,
		heard(podOf(t, "build", never, "main"), 3, isRunning("main")), heard(podOf(t, "late", never, "c"), 3), heard(podOf(t, "db", always, "pg"), 3))
	for _, row := range r.Rows {
		if row.State != Failed || row.Took != 12400*time.Millisecond {
			t.Errorf("%+v", row)
		}
	}
}

// TestReportOfSeveral: the output of a pod that passes, container by container.
func TestReportOfSeveral(t *testing.T) {
	r := resultOf(Verdict{Outcome: Ended}, 9, map[string][]string{"a": {"one"}, "b": {"two", "three"}},
		heard(podOf(t, "build", never, "a", "b"), 9, exited("a", 0, 1, 2), exited("b", 0, 1, 2), isFinished))
	if got := strings.Join(r.Rows[0].Last, ","); got != "a | one,b | two,b | three" {
		t.Errorf("got %s", got)
	}
	r.Several = true
	if strings.Contains(r.Summary(), "three") {
		t.Errorf("it is repeated where nothing failed:\n%s", r.Summary())
	}
}

// TestReportThatCannotBe: a file that cannot be written is told of before
// anything runs, and one that can is left as it is.
func TestReportThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "none", "a.xml"), filepath.Join(dir, "a.xml", "b.xml"), filepath.Join(dir, "dir.json")} {
		if err := os.MkdirAll(filepath.Join(dir, "dir.json"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "a.xml"), []byte("earlier"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := NewReport(path); err == nil || !strings.Contains(err.Error(), "no pod was started") {
			t.Errorf("%s: %v", path, err)
		}
	}
	for name, want := range map[string]string{"a.xml": "earlier", "new.xml": ""} {
		path := filepath.Join(dir, name)
		if _, err := NewReport(path); err != nil {
			t.Fatal(err)
		}
		if text, _ := os.ReadFile(path); string(text) != want {
			t.Errorf("%s has %q", name, text)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new.xml")); err == nil {
		t.Error("an empty report is left")
	}
}

// TestReportOfNothing: what kept a run from beginning is in the report.
func TestReportOfNothing(t *testing.T) {
	if _, err := NewReport("result.txt"); err == nil {
		t.Error("a report in no format")
	}
	for _, name := range []string{"a.xml", "a.json"} {
		path := filepath.Join(t.TempDir(), name)
		report, err := NewReport(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := report.Write(NotRun(errors.New("there is no pod to run"))); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte("there is no pod to run")) {
			t.Errorf("%s has %s, %v", name, text, err)
		}
	}
}
