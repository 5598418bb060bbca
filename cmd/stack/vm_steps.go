package main

import (
	"cmp"
	"fmt"
	"time"
)

// step is one test run in the machine.
type step struct {
	name, about string
	binary      string // of the payload
	runtime     string // "" is the pinned containerd
	env         string // "NAME=value …"
	only        string // -test.run
	cut         bool   // the power, afterwards
}

// onCgroups are the end-to-end tests whose outcome cgroups or init decide.
const onCgroups = "^(TestCgroups|TestFullNode|TestPodResources|TestEnv.*|TestTellsSystemd)$"

// onCrashes are those in which containers, sandboxes and podd die.
const onCrashes = "^(TestKilledContainerRunsAgain|TestLostSandboxIsReplaced|TestTerminationGoesOnAfterKill)$"

// steps are taken in this order, on one disk.
var steps = []step{
	{name: "cgroupfs", about: "cgroup v2 with the driver cgroupfs", binary: "e2e.test", only: onCgroups},
	{name: "debian", about: "the same on Debian's containerd", binary: "e2e.test", runtime: "debian", only: onCgroups},
	{name: "crash", about: "what dies comes back, on cgroup v2", binary: "e2e.test", only: onCrashes},
	{name: "service", about: "podd as a service of systemd", binary: "machine.test", only: "^TestService$"},
	{name: "slices", about: "the driver systemd", binary: "machine.test", only: "^TestSlices$"},
	{name: "swap", about: "Burstable pods share the machine's, and none without LimitedSwap", binary: "machine.test", only: "^TestSwap$"},
	{name: "hugepages", about: "in cgroups and volumes, and who asks too much", binary: "machine.test", only: "^TestHugePages$"},
	{name: "nfs", about: "volumes of a server, which falls silent", binary: "machine.test", only: "^TestNFS$"},
	{name: "shutdown", about: "logind waits for the pods, which end in their order", binary: "machine.test", only: "^TestShutdown$", cut: true},
	{name: "shutdown-after", about: "they run again", binary: "machine.test", only: "^TestAfterShutdown$"},
	{name: "start", about: "pods run, and one has finished", binary: "machine.test", only: "^TestStart$", cut: true},
	{name: "started", about: "they run again, none twice", binary: "machine.test", only: "^TestAfterCut$"},
	{name: "broken", about: "a manifest breaks", binary: "machine.test", only: "^TestBreakManifest$", cut: true},
	{name: "unbroken", about: "its last good version runs", binary: "machine.test", only: "^TestAfterCut$"},
	{name: "churn", about: "pods come and go", binary: "machine.test", only: "^TestChurn$", cut: true},
	{name: "settled", about: "what is wanted runs", binary: "machine.test", only: "^TestAfterCut$"},
}

// command is what a shell in the machine runs. Emulation is slow: nothing gives
// up early.
func (s step) command(limit time.Duration) string {
	flavor := cmp.Or(s.runtime, "containerd")
	return fmt.Sprintf("cd %[1]s && env PODD_E2E_BINARY=%[1]s/podd PODD_E2E_PATIENCE=5m RUNTIME=%[2]s PODD_STACK_TOOLS=%[1]s/%[2]s.json %[3]s ./%[4]s -test.v -test.timeout %[5]s -test.run '%[6]s'",
		payload, flavor, s.env, s.binary, limit, s.only)
}
