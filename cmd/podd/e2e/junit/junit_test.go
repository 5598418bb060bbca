package junit

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "junit.xml")
	text := `<testsuites><testsuite>
<testcase name="[SynchronizedBeforeSuite]" status="passed"></testcase>
<testcase name="[It] runs" status="passed"></testcase>
<testcase name="[It] fails" status="failed"><failure message="m">got 1</failure></testcase>
<testcase name="[It] hangs" status="timedout"><failure>too long</failure></testcase>
<testcase name="[It] needs cgroup v2" status="skipped"><skipped message="skipped - requires cgroup v2"></skipped></testcase>
<testcase name="[It] is not selected" status="skipped"><skipped message="skipped"></skipped></testcase>
<testcase name="[SynchronizedAfterSuite]" status="panicked"><failure>index out of range</failure></testcase>
</testsuite></testsuites>`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	want := Report{
		Passed: []string{"runs"},
		Failures: []string{
			"[It] fails: failed: got 1", "[It] hangs: timedout: too long", "[SynchronizedAfterSuite]: panicked: index out of range",
		},
		Skipped:  map[string]string{"needs cgroup v2": "requires cgroup v2"},
		Excluded: []string{"is not selected"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Read: -want +got:\n%s", diff)
	}
	if _, err := Read(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("Read of a missing file: got no error, want one")
	}
}
