// Package check decides whether a host fulfills podd's prerequisites. Run is a pure function of
// Facts, which package inspect reads from the host. "podd check" prints the Report. If the daemon
// fails to start, it adds the failed checks of a Report to its error.
package check

import (
	"errors"
	"fmt"
)

// An Outcome is the result of a check or the severity of a Problem.
type Outcome string

// The outcomes in ascending order of severity.
const (
	OK      Outcome = "ok"
	Skipped Outcome = "skipped" // the check depends on another check, which failed
	Warning Outcome = "warning" // pods run, but something does not work or will not work later
	Failed  Outcome = "failed"  // podd does not start, or pods do not run
)

// A Problem is a reason for the outcome Warning or Failed.
type Problem struct {
	Outcome Outcome `json:"result"` // Warning or Failed
	Cause   string  `json:"cause"`
	Remedy  string  `json:"remedy"`
}

// Err returns an error with the cause and the remedy.
func (p Problem) Err() error { return errors.New(p.Cause + "; " + p.Remedy) }

// A Result is the result of one check.
type Result struct {
	Check    string    `json:"check"`  // name of the check, such as "ports"
	Outcome  Outcome   `json:"result"` // the most severe outcome of Problems, or OK or Skipped
	Detail   string    `json:"detail"` // the observed state, or why the check was skipped
	Problems []Problem `json:"problems,omitempty"`
}

// A Report contains the results of all checks that were made.
type Report struct {
	Outcome Outcome  `json:"result"` // the most severe outcome of Checks: OK, Warning or Failed
	Checks  []Result `json:"checks"`
}

// Count returns the number of checks with an outcome.
func (r Report) Count(o Outcome) (n int) {
	for _, c := range r.Checks {
		if c.Outcome == o {
			n++
		}
	}
	return n
}

// A need is a condition without which a check is skipped.
type need int

const (
	needsNothing need = iota
	needsRoot
	needsConfig  // implies needsRoot
	needsRuntime // implies needsConfig and needsRoot
)

// skipReason returns why a check with this need is skipped, or "" if the check can be made.
func (n need) skipReason(f *Facts) string {
	switch {
	case n >= needsRoot && !f.Privileges.isRoot():
		return "podd does not run as root"
	case n >= needsConfig && f.Config == nil:
		return "the configuration is invalid"
	case n >= needsRuntime && !f.Runtime.hasResponded():
		return "the runtime does not respond"
	}
	return ""
}

// checks contains the checks in the order of the Report.
var checks = []struct {
	name string
	need need
	run  func(f *Facts, r *Result)
}{
	{"configuration", needsNothing, checkConfiguration},
	{"privileges", needsNothing, checkPrivileges},
	{"cgroups", needsRoot, checkCgroups},
	{"kernel", needsRoot, checkKernel},
	{"limits", needsRoot, checkLimits},
	{"runtime", needsConfig, checkRuntime},
	{"sandbox image", needsRuntime, checkSandboxImage},
	{"pod network", needsRuntime, checkNetwork},
	{"disks", needsConfig, checkDisks},
	{"clock", needsRoot, checkClock},
	{"name resolution", needsConfig, checkNameResolution},
	{"ports", needsConfig, checkPorts},
	{"node agents", needsConfig, checkAgents},
}

// Run makes the checks.
func Run(f Facts) Report {
	report := Report{Outcome: OK}
	for _, c := range checks {
		r := Result{Check: c.name, Outcome: OK}
		if reason := c.need.skipReason(&f); reason != "" {
			r.Outcome, r.Detail = Skipped, "not checked, because "+reason
		} else {
			c.run(&f, &r)
		}
		for _, p := range r.Problems {
			r.Outcome = worse(r.Outcome, p.Outcome)
			report.Outcome = worse(report.Outcome, p.Outcome)
		}
		report.Checks = append(report.Checks, r)
	}
	return report
}

// worse returns the more severe of two outcomes. The outcome b must be Warning or Failed.
func worse(a, b Outcome) Outcome {
	if a == Failed {
		return a
	}
	return b
}

// fail adds a Problem with the outcome Failed.
func (r *Result) fail(remedy, cause string, args ...any) { r.add(Failed, remedy, cause, args) }

// warn adds a Problem with the outcome Warning.
func (r *Result) warn(remedy, cause string, args ...any) { r.add(Warning, remedy, cause, args) }

func (r *Result) add(o Outcome, remedy, cause string, args []any) {
	r.Problems = append(r.Problems, Problem{Outcome: o, Cause: fmt.Sprintf(cause, args...), Remedy: remedy})
}
