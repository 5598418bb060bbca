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
	binary      string // in the payload
	runtime     string // "": the pinned containerd
	env         string // "NAME=value …"
	only        string // -test.run
	cut         bool   // whether to cut the power afterwards
}

// onCgroups selects the end-to-end tests that depend on cgroups or the init system.
const onCgroups = "^(TestCgroups|TestFullNode|TestPodResources|TestEnv.*|TestSystemdNotify)$"

// onXFS and onExt4 put podd's root directory on a separate disk. With its default options ext4
// writes the data of a file before it commits the rename of the file over another one.
const (
	onXFS  = "PODD_STATE_DEVICE=" + vm.XFSDevice
	onExt4 = "PODD_STATE_DEVICE=" + vm.Ext4Device + " PODD_STATE_OPTIONS=noauto_da_alloc,commit=300"
)

// onCrashes selects the tests that kill containers, sandboxes and podd.
const onCrashes = "^(TestKilledContainerRestarts|TestLostSandboxIsReplaced|TestTermination_KilledDaemon)$"

// steps run in this order on one disk.
var steps = []step{
	{name: "cgroupfs", about: "cgroup v2 with the cgroup driver cgroupfs", binary: "e2e.test", only: onCgroups},
	{name: "debian", about: "the same with Debian's containerd", binary: "e2e.test", runtime: "debian", only: onCgroups},
	{name: "crash", about: "killed containers, sandboxes and podd recover, on cgroup v2", binary: "e2e.test", only: onCrashes},
	{name: "service", about: "podd as a service of systemd", binary: "machine.test", only: "^TestService$"},
	{name: "slices", about: "the cgroup driver systemd", binary: "machine.test", only: "^TestSlices$"},
	{name: "swap", about: "Burstable pods get swap only with LimitedSwap", binary: "machine.test", only: "^TestSwap$"},
	{name: "hugepages", about: "huge pages in cgroups and volumes", binary: "machine.test", only: "^TestHugePages$"},
	{name: "nfs", about: "NFS volumes, also of an unresponsive server", binary: "machine.test", only: "^TestNFS$"},
	{name: "shutdown", about: "logind waits until the pods are stopped in order", binary: "machine.test", only: "^TestShutdown$", cut: true},
	{name: "shutdown-after", about: "the pods run again", binary: "machine.test", only: "^TestAfterShutdown$"},
	{name: "ext4-finish", about: "jobs finish, with podd's state on ext4", binary: "machine.test", env: onExt4, only: "^TestFinish$", cut: true},
	{name: "ext4-finished", about: "the jobs do not run again", binary: "machine.test", env: onExt4, only: "^TestAfterFinish$"},
	{name: "xfs-finish", about: "the same with podd's state on XFS", binary: "machine.test", env: onXFS, only: "^TestFinish$", cut: true},
	{name: "xfs-finished", about: "the jobs do not run again", binary: "machine.test", env: onXFS, only: "^TestAfterFinish$"},
	{name: "clock", about: "changes of the clock stop no pod", binary: "machine.test", only: "^TestClock$", cut: true},
	{name: "clock-after", about: "a wrong clock after a boot stops no pod", binary: "machine.test", only: "^TestClockAfterBoot$"},
	{name: "mount", about: "a manifest is on a mount", binary: "machine.test", only: "^TestMountedManifests$", cut: true},
	{name: "mount-after", about: "its pod runs without and with the mount", binary: "machine.test", only: "^TestManifestsNotMounted$"},
	{name: "start", about: "pods run, and one has finished", binary: "machine.test", only: "^TestStart$", cut: true},
	{name: "started", about: "the pods run again, none twice", binary: "machine.test", only: "^TestAfterCut$"},
	{name: "broken", about: "a manifest becomes invalid", binary: "machine.test", only: "^TestBreakManifest$", cut: true},
	{name: "unbroken", about: "its last valid version runs", binary: "machine.test", only: "^TestAfterCut$"},
	{name: "churn", about: "pods are added and removed", binary: "machine.test", only: "^TestChurn$", cut: true},
	{name: "settled", about: "the desired pods run", binary: "machine.test", only: "^TestAfterCut$"},
}

// command returns the shell command for a step. Timeouts are long, because emulation is slow.
func (s step) command(limit time.Duration) string {
	flavor := cmp.Or(s.runtime, "containerd")
	return fmt.Sprintf("cd %[1]s && env PODD_E2E_BINARY=%[1]s/podd PODD_E2E_PATIENCE=5m RUNTIME=%[2]s PODD_STACK_TOOLS=%[1]s/%[2]s.json %[3]s ./%[4]s -test.v -test.timeout %[5]s -test.run '%[6]s'",
		payload, flavor, s.env, s.binary, limit, s.only)
}
