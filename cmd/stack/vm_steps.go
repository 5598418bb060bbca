package main

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"podd/runtime/runtimetest/stack/tools"
	"podd/runtime/runtimetest/vm"
)

// A step is one run of a test binary in the machine.
type step struct {
	name, description string
	binary            string // file name in the payload
	runtime           string // "" means the pinned containerd
	env               string // environment variables, as "NAME=value …"
	tests             string // value of -test.run
	kernel            string // additional parameters of the kernel; the machine boots for this step and again after it
	memory            string // memory of the machine, like "4G"; the machine boots for this step and again after it; "" means defaultMemory
	cutsPower         bool   // the power is cut after the step
	needsNewDisk      bool   // the step runs on a new disk, which is discarded after the step
}

const defaultMemory = "2G"

// cgroupTests selects the end-to-end tests that depend on cgroups or the init system.
const cgroupTests = "^(TestCgroups|TestFullNode|TestPodResources|TestEnv.*|TestSystemdNotify)$"

// stateOnXFS and stateOnExt4 are environment variables for a root directory of podd on a separate
// disk. With the mount options in stateOnExt4, ext4 can commit the rename of a file over another
// file before it writes the data of the file. With the default options, ext4 writes the data first.
const (
	stateOnXFS  = "PODD_STATE_DEVICE=" + vm.XFSDevice
	stateOnExt4 = "PODD_STATE_DEVICE=" + vm.Ext4Device + " PODD_STATE_OPTIONS=noauto_da_alloc,commit=300"
)

// crashTests selects the tests that kill containers, sandboxes and podd.
const crashTests = "^(TestKilledContainerRestarts|TestLostSandboxIsReplaced|TestTermination_KilledDaemon)$"

// nodeSuiteTests is the test binary of package nodesuite, which needs the files in nodeSuiteDir.
const (
	nodeSuiteTests = "nodesuite.test"
	nodeSuiteDir   = "node-suite"
)

// nodeStep returns a step that runs the specs of Kubernetes' tests of a kubelet that match an expression.
func nodeStep(name, description, specs string) step {
	dir := path.Join(payloadMountPoint, nodeSuiteDir)
	return step{
		name: "node-" + name, description: "Kubernetes' tests of a kubelet: " + description,
		binary: nodeSuiteTests, tests: "^TestNodeSuite$", memory: "4G", needsNewDisk: true,
		env: fmt.Sprintf("PODD_NODE_SUITE_PROGRAMS=%[1]s %[2]s=%[1]s/tools.json PODD_NODE_SUITE='%[3]s'", dir, tools.NodeSuiteFileEnv, specs),
	}
}

// steps run in this order. All of them share one disk, except those with needsNewDisk.
var steps = []step{
	{name: "package", description: "the .deb package is installed, upgraded, removed and purged", binary: "machine.test", env: "PODD_MACHINE_INSTALL=no", tests: "^TestPackage$", needsNewDisk: true},
	{name: "cgroupfs", description: "cgroup v2 with the cgroup driver cgroupfs", binary: "e2e.test", tests: cgroupTests},
	{name: "debian", description: "cgroup v2 with the cgroup driver cgroupfs, on Debian's containerd", binary: "e2e.test", runtime: "debian", tests: cgroupTests},
	{name: "crash", description: "killed containers, sandboxes and podd recover, on cgroup v2", binary: "e2e.test", tests: crashTests},
	{name: "service", description: "podd as a service of systemd", binary: "machine.test", tests: "^TestService$"},
	{name: "log-query", description: "queries for the logs of services in the journal", binary: "machine.test", tests: "^TestLogQuery$"},
	{name: "slices", description: "the cgroup driver systemd", binary: "machine.test", tests: "^TestSlices$"},
	{name: "swap", description: "Burstable pods get swap only with LimitedSwap", binary: "machine.test", tests: "^TestSwap$"},
	{name: "memory", description: "memory requests are protected and containers are throttled", binary: "machine.test", tests: "^Test(MemoryQoS|MemoryLimit)$"},
	{name: "reserved", description: "the slices of reserved resources are limited", binary: "machine.test", tests: "^TestReserved$"},
	{name: "hugepages", description: "huge pages in cgroups and volumes", binary: "machine.test", tests: "^TestHugePages$"},
	{name: "nfs", description: "NFS volumes, including those of an unresponsive server", binary: "machine.test", tests: "^TestNFS$"},
	{name: "iscsi", description: "iSCSI disks with CHAP and several paths", binary: "machine.test", tests: "^TestISCSI$"},
	{name: "fc", description: "Fibre Channel disks, simulated by another SCSI disk", binary: "machine.test", tests: "^TestFC$"},
	{name: "selinux", description: "volumes are mounted with an SELinux label", binary: "machine.test", kernel: "security=selinux", tests: "^TestSELinux$", cutsPower: true},
	{name: "shutdown", description: "logind waits until the pods are stopped in order", binary: "machine.test", tests: "^TestShutdown$", cutsPower: true},
	{name: "shutdown-after", description: "the pods run again after a node shutdown", binary: "machine.test", tests: "^TestAfterShutdown$"},
	{name: "ext4-finish", description: "jobs finish, with podd's state on ext4", binary: "machine.test", env: stateOnExt4, tests: "^TestFinish$", cutsPower: true},
	{name: "ext4-finished", description: "the jobs do not run again", binary: "machine.test", env: stateOnExt4, tests: "^TestAfterFinish$"},
	{name: "xfs-finish", description: "jobs finish, with podd's state on XFS", binary: "machine.test", env: stateOnXFS, tests: "^TestFinish$", cutsPower: true},
	{name: "xfs-finished", description: "the jobs do not run again", binary: "machine.test", env: stateOnXFS, tests: "^TestAfterFinish$"},
	{name: "clock", description: "changes of the clock stop no pod", binary: "machine.test", tests: "^TestClock$", cutsPower: true},
	{name: "clock-after", description: "a wrong clock after a boot stops no pod", binary: "machine.test", tests: "^TestClockAfterBoot$"},
	{name: "mount", description: "a manifest is on a mount", binary: "machine.test", tests: "^TestMountedManifests$", cutsPower: true},
	{name: "mount-after", description: "the pod of a manifest on a mount runs without and with the mount", binary: "machine.test", tests: "^TestManifestsNotMounted$"},
	{name: "start", description: "pods run, and one has finished", binary: "machine.test", tests: "^TestStart$", cutsPower: true},
	{name: "started", description: "the pods run again, and none is started twice", binary: "machine.test", tests: "^TestAfterCut$"},
	{name: "broken", description: "a manifest becomes invalid", binary: "machine.test", tests: "^TestBreakManifest$", cutsPower: true},
	{name: "unbroken", description: "the last valid version of the manifest runs", binary: "machine.test", tests: "^TestAfterCut$"},
	{name: "churn", description: "pods are added and removed", binary: "machine.test", tests: "^TestChurn$", cutsPower: true},
	{name: "settled", description: "exactly the desired pods run", binary: "machine.test", tests: "^TestAfterCut$"},
	nodeStep("memory", "MemoryQoS", "MemoryQoS"),
	nodeStep("swap", "swap", `\] Swap \[`),
	nodeStep("cgroups", "cgroups and OOM scores", `Cgroup reconciliation|Node Container Manager|\[Feature:OOMScoreAdj\]|OOMKiller for pod using more memory`),
	nodeStep("resize", "resizes of guaranteed pods", `InPlace Resize .*guaranteed qos .*(cpu & mem restart.* resizing (only pod-level )?(cpu|mem)|cpu restart resizing (only pod-level )?cpu|mem restart resizing (only pod-level mem|mem|cpu & mem))`).withEnv("PODD_NODE_SUITE_CRUN=yes"),
	nodeStep("pod-resources", "resources of pods", `\] Pod Level Resources`).withEnv("PODD_NODE_SUITE_CRUN=yes"),
	nodeStep("stats", "statistics and metrics", "Summary API|should report container metrics"),
	nodeStep("runtime", "stops of the runtime", "container runtime is temporarily down"),
	nodeStep("network", "network devices and protocols", `PrivilegedPod|\[Feature:SCTPConnectivity\]`),
}

// withEnv returns a copy of the step with an additional environment variable, as "NAME=value".
func (s step) withEnv(variable string) step {
	s.env += " " + variable
	return s
}

// needsNodeSuite reports whether the step runs Kubernetes' tests of a kubelet.
func (s step) needsNodeSuite() bool { return s.binary == nodeSuiteTests }

// selectSteps returns the steps whose names contain a text, starting with the step with the name from.
// If from is empty, it starts with the first step.
func selectSteps(text, from string) (selected []step, err error) {
	first := 0
	if from != "" {
		if first = slices.IndexFunc(steps, func(s step) bool { return s.name == from }); first < 0 {
			return nil, fmt.Errorf("--from=%s: there is no step with this name", from)
		}
	}
	for _, s := range steps[first:] {
		if strings.Contains(s.name, text) {
			selected = append(selected, s)
		}
	}
	if selected == nil {
		return nil, fmt.Errorf("--step=%s: no step has a name that contains this text", text)
	}
	return selected, nil
}

// shellCommand returns the shell command for a step. Timeouts are long, because emulation is slow.
func (s step) shellCommand(limit time.Duration) string {
	flavor := cmp.Or(s.runtime, "containerd")
	return fmt.Sprintf("cd %[1]s && env PODD_E2E_BINARY=%[1]s/podd PODD_E2E_PATIENCE=5m RUNTIME=%[2]s PODD_STACK_TOOLS=%[1]s/%[2]s.json %[3]s ./%[4]s -test.v -test.timeout %[5]s -test.run '%[6]s'",
		payloadMountPoint, flavor, s.env, s.binary, limit, s.tests)
}
