//go:build e2e

package nodesuite

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"podd/cmd/podd/e2e/nodesuite/privatehost"
)

// A host is where the suite runs.
type host struct {
	// programs is the directory with podd, under the name kubelet, and the programs that the host
	// lacks. On the private host, these include all programs of package systemd.
	programs  string
	disk      string   // directory for the files of the suite and of the runtime
	config    string   // YAML that is added to the configuration of the kubelet
	flags     []string // additional flags of the kubelet
	processes int      // number of processes that run specs without the label Serial
	isMachine bool     // whether it is a virtual machine that is used for nothing else, with systemd and cgroup v2
}

// The private host may have cgroup v1, and root may have no CAP_SYS_RESOURCE.
const (
	privateHostConfig = "cgroupDriver: cgroupfs\nfailCgroupV1: false\noomScoreAdj: 0\n"
	machineConfig     = "cgroupDriver: systemd\n"
)

// On the virtual machine, podd may change the parameters of the kernel. This is a flag, because the suite
// omits fields that are false from the configuration.
var machineFlags = []string{"--protect-kernel-defaults=false", "--runtime-cgroups=/system.slice/containerd.service"}

// thisHost is a virtual machine if $PODD_NODE_SUITE_PROGRAMS is set. Otherwise it is the private host.
var thisHost = findHost(os.Getenv("PODD_NODE_SUITE_PROGRAMS"))

func findHost(machinePrograms string) host {
	if machinePrograms != "" {
		return host{programs: machinePrograms, disk: "/var/lib/node-suite", config: machineConfig, flags: machineFlags, processes: 1, isMachine: true}
	}
	return host{programs: filepath.Join(privatehost.Root, "bin"), disk: privatehost.Disk, config: privateHostConfig, processes: 4}
}

// crunScript runs crun of the virtual machine. Debian's version of crun rejects the version of the OCI
// configuration that containerd writes, so the script changes it. crunPath is the path of the script.
const (
	crunPath   = "/usr/local/bin/crun-for-containerd"
	crunScript = `#!/bin/sh
previous=
for arg; do
	[ "$previous" != --bundle ] || sed -i 's/"ociVersion":"[^"]*"/"ociVersion":"1.0.2"/' "$arg/config.json" || exit
	previous=$arg
done
exec crun "$@"
`
)

// findContainerProgram returns the path of the program that starts containers: runc, or a script for crun
// if $PODD_NODE_SUITE_CRUN is set. A container that may use 3 % of an emulated CPU starts within 7 s with
// crun and within 27 s with runc.
func findContainerProgram(runc string) (path string, err error) {
	if os.Getenv("PODD_NODE_SUITE_CRUN") == "" {
		return runc, nil
	}
	return crunPath, os.WriteFile(crunPath, []byte(crunScript), 0o755)
}

// prepareMachine gives the virtual machine what the specs require and its disk does not have: a
// network device and swap.
func prepareMachine() error {
	if err := os.Mkdir(thisHost.disk, 0o755); err != nil {
		return err
	}
	if err := privatehost.Connect(); err != nil {
		return err
	}
	for _, command := range []string{
		"fallocate --length 2G /swapfile", "chmod 600 /swapfile", "mkswap /swapfile", "swapon /swapfile",
		"systemctl start dbus",
	} {
		if err := system(command); err != nil {
			return err
		}
	}
	return nil
}

// system runs a command. The words of the command are separated by spaces.
func system(command string) error {
	words := strings.Fields(command)
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, out)
	}
	return nil
}

// runOnMachine runs the tests on the virtual machine, which keeps their changes.
func runOnMachine(m *testing.M) (exitCode int, err error) {
	if err := prepareMachine(); err != nil {
		return 1, fmt.Errorf("preparing the virtual machine: %w", err)
	}
	return m.Run(), nil
}
