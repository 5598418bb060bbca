package offline

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podd/cmd/podd/internal/check"
)

// hostileReport contains a process name with a newline and a control character of terminals.
var hostileReport = check.Report{Outcome: check.Failed, Checks: []check.Result{
	{Check: "runtime", Outcome: check.OK, Detail: "containerd"},
	{Check: "clock", Outcome: check.Warning, Detail: "12:00", Problems: []check.Problem{{Outcome: check.Warning, Cause: "late", Remedy: "wait"}}},
	{Check: "ports", Outcome: check.Failed, Detail: "none", Problems: []check.Problem{
		{Outcome: check.Warning, Cause: "slow", Remedy: "hurry"}, {Outcome: check.Failed, Cause: "in use by a\n\x1b[31mb", Remedy: "stop it"},
	}},
}}

// TestReportText checks that the text lists failures before warnings, and that it escapes the process
// name in hostileReport.
func TestReportText(t *testing.T) {
	want := `CHECK    RESULT   DETAIL
runtime  ok       containerd
clock    warning  12:00
ports    failed   none
error: ports: in use by a\n\x1b[31mb
  remedy: stop it
warning: clock: late
  remedy: wait
warning: ports: slow
  remedy: hurry
3 checks: 1 failed, 1 warning
`
	if diff := cmp.Diff(want, reportText(hostileReport)); diff != "" {
		t.Errorf("report as text (-want +got):\n%s", diff)
	}
}

// TestPrintReport checks the field names in the JSON output of printReport.
func TestPrintReport(t *testing.T) {
	var b strings.Builder
	if err := printReport(&b, "json", check.Report{Outcome: check.Warning, Checks: hostileReport.Checks[1:2]}); err != nil {
		t.Fatal(err)
	}
	want := `{
  "result": "warning",
  "checks": [
    {
      "check": "clock",
      "result": "warning",
      "detail": "12:00",
      "problems": [
        {
          "result": "warning",
          "cause": "late",
          "remedy": "wait"
        }
      ]
    }
  ]
}
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("report as JSON (-want +got):\n%s", diff)
	}
}
