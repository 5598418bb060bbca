package node

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"k8s.io/utils/cpuset"
)

// onlineCPUsPath is the file with the CPUs of the host that are online, such as "0-3,6".
const onlineCPUsPath = "/sys/devices/system/cpu/online"

// OnlineCPUs returns the CPUs of the host that are online, in the format of the kernel, such as
// "0-3,6".
func OnlineCPUs() (string, error) { return onlineCPUs(onlineCPUsPath) }

// onlineCPUs implements OnlineCPUs. path is the file with the CPUs that are online.
func onlineCPUs(path string) (string, error) {
	cpus, err := readCPUs(path)
	return cpus.String(), err
}

// CountCPUs returns the number of CPUs of the host that are online. runtime.NumCPU may return fewer,
// because it counts only the CPUs on which podd may run. This restriction (CPUAffinity= in podd's
// systemd unit, taskset, or the cgroup of podd) does not apply to pods.
func CountCPUs() int64 { return countCPUs(onlineCPUsPath) }

// countCPUs implements CountCPUs. path is the file with the CPUs that are online. If the file cannot be
// used, countCPUs returns runtime.NumCPU().
func countCPUs(path string) int64 {
	if cpus, err := readCPUs(path); err == nil {
		return int64(cpus.Size())
	}
	return int64(runtime.NumCPU())
}

// readCPUs returns the CPUs in a file of the kernel. It is an error if the file contains no CPUs.
func readCPUs(path string) (cpuset.CPUSet, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return cpuset.CPUSet{}, err
	}
	cpus, err := cpuset.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		return cpuset.CPUSet{}, fmt.Errorf("reading %s: %w", path, err)
	}
	if cpus.IsEmpty() {
		return cpuset.CPUSet{}, fmt.Errorf("reading %s: the file contains no CPUs", path)
	}
	return cpus, nil
}
