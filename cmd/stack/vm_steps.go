package main

import (
	"cmp"
	"fmt"
	"time"

	"podd/runtime/runtimetest/vm"
)

// A step is one run of a test binary in the machine.
type step struct {
	name, about string
	binary      string // of the payload
	runtime     string // "" means the pinned containerd
	env         string // "NAME=value …"
	only        string // -test.run
	cut         bool   // cut the power afterwards
}

// onCgroups selects the end-to-end tests that depend on cgroups or the init system.
const onCgroups = "^(TestCgroups|TestFullNode|TestPodResources|TestEnv.*|TestTellsSystemd)$"

// onXFS and onExt4 put podd's root directory on a separate disk. By default ext4 writes
// the data of a file before it commits the rename of it over another one.
const (
	onXFS  = "PODD_STATE_DEVICE=" + vm.XFSDevice
	onExt4 = "PODD_STATE_DEVICE=" + vm.Ext4Device + " PODD_STATE_OPTIONS=noauto_da_alloc,commit=300"
)

// onCrashes selects the tests in which containers, sandboxes and podd are killed.
const onCrashes = "^(TestKilledContainerRunsAgain|TestLostSandboxIsReplaced|TestTerminationGoesOnAfterKill)$"

// steps run in this order on one disk.
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
	{name: "ext4-finish", about: "jobs end, with podd's state on ext4", binary: "machine.test", env: onExt4, only: "^TestFinish$", cut: true},
	{name: "ext4-finished", about: "they do not run again", binary: "machine.test", env: onExt4, only: "^TestAfterFinish$"},
	{name: "xfs-finish", about: "the same with podd's state on XFS", binary: "machine.test", env: onXFS, only: "^TestFinish$", cut: true},
	{name: "xfs-finished", about: "they do not run again", binary: "machine.test", env: onXFS, only: "^TestAfterFinish$"},
	{name: "clock", about: "it is set, and no pod ends for that", binary: "machine.test", only: "^TestClock$", cut: true},
	{name: "clock-after", about: "it is wrong after a boot, and no pod ends for that", binary: "machine.test", only: "^TestClockAfterBoot$"},
	{name: "mount", about: "a manifest is on a mount", binary: "machine.test", only: "^TestMountedManifests$", cut: true},
	{name: "mount-after", about: "its pod runs before and after the mount is back", binary: "machine.test", only: "^TestManifestsNotMounted$"},
	{name: "start", about: "pods run, and one has finished", binary: "machine.test", only: "^TestStart$", cut: true},
	{name: "started", about: "they run again, none twice", binary: "machine.test", only: "^TestAfterCut$"},
	{name: "broken", about: "a manifest breaks", binary: "machine.test", only: "^TestBreakManifest$", cut: true},
	{name: "unbroken", about: "its last good version runs", binary: "machine.test", only: "^TestAfterCut$"},
	{name: "churn", about: "pods come and go", binary: "machine.test", only: "^TestChurn$", cut: true},
	{name: "settled", about: "what is wanted runs", binary: "machine.test", only: "^TestAfterCut$"},
}

// command returns the command for a shell in the machine. There is no short timeout,
// because emulation is slow.
func (s step) command(limit time.Duration) string {
	flavor := cmp.Or(s.runtime, "containerd")
	return fmt.Sprintf("cd %[1]s && env PODD_E2E_BINARY=%[1]s/podd PODD_E2E_PATIENCE=5m RUNTIME=%[2]s PODD_STACK_TOOLS=%[1]s/%[2]s.json %[3]s ./%[4]s -test.v -test.timeout %[5]s -test.run '%[6]s'",
		payload, flavor, s.env, s.binary, limit, s.only)
}
