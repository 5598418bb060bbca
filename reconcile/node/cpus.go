package node

import (
	"os"
	"runtime"
	"strings"

	"k8s.io/utils/cpuset"
)

// CountCPUs returns the number of CPUs of the host that are online. runtime.NumCPU may return fewer,
// because it counts only the CPUs on which podd may run. This restriction (CPUAffinity= in podd's
// systemd unit, taskset, or the cgroup of podd) does not apply to pods.
func CountCPUs() int64 { return countCPUs("/sys/devices/system/cpu/online") }

// countCPUs implements CountCPUs. path is the file with the CPUs that are online, such as "0-3,6". If
// the file cannot be used, countCPUs returns runtime.NumCPU().
func countCPUs(path string) int64 {
	text, err := os.ReadFile(path)
	if err == nil {
		var online cpuset.CPUSet
		if online, err = cpuset.Parse(strings.TrimSpace(string(text))); err == nil && online.Size() > 0 {
			return int64(online.Size())
		}
	}
	return int64(runtime.NumCPU())
}
