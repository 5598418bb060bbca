package check

import (
	"strings"

	"golang.org/x/sys/unix"
)

// NotRootProblem is the problem of a podd that does not run as root.
var NotRootProblem = Problem{Outcome: Failed, Cause: "podd is not running as root, so it cannot run pods", Remedy: "start podd with sudo"}

// neededCapabilities contains the capabilities that podd uses and the effect of their absence.
var neededCapabilities = []struct {
	bit     int
	name    string
	outcome Outcome
	effect  string
}{
	{unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN", Failed, "podd cannot mount volumes and cannot enter the network of pods"},
	{unix.CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE", Failed, "podd cannot read and write the files of pods"},
	{unix.CAP_CHOWN, "CAP_CHOWN", Failed, "podd cannot change the owner and group of files in volumes"},
	{unix.CAP_FOWNER, "CAP_FOWNER", Failed, "podd cannot set the modes of files in volumes"},
	{unix.CAP_KILL, "CAP_KILL", Failed, "podd cannot kill processes of containers that the runtime no longer manages"},
	{unix.CAP_NET_ADMIN, "CAP_NET_ADMIN", Warning, "a runtime with the same capabilities cannot create the network of pods"},
	{unix.CAP_SYS_RESOURCE, "CAP_SYS_RESOURCE", Warning, "a runtime with the same capabilities cannot lower oom_score_adj (containerd needs restrict_oom_score_adj = true) and cannot raise limits"},
	{unix.CAP_SYS_PTRACE, "CAP_SYS_PTRACE", Warning, "podd cannot find the process that uses a port or a volume"},
}

func (p Privileges) isRoot() bool { return p.UID == 0 }

// has reports whether the process has a capability.
func (p Privileges) has(capability int) bool { return p.Capabilities&(1<<capability) != 0 }

func checkPrivileges(f *Facts, r *Result) {
	p := f.Privileges
	if !p.isRoot() {
		r.Detail = "not root"
		r.Problems = append(r.Problems, NotRootProblem)
		return
	}
	var missingCapabilities []string
	for _, c := range neededCapabilities {
		if p.has(c.bit) {
			continue
		}
		missingCapabilities = append(missingCapabilities, c.name)
		r.add(c.outcome, "run podd on the host or in a privileged container; in a systemd unit, add the capability to CapabilityBoundingSet=", "%s is missing: %s", []any{c.name, c.effect})
	}
	r.Detail = "root"
	if len(missingCapabilities) > 0 {
		r.Detail += " without " + strings.Join(missingCapabilities, ", ")
	}
}
