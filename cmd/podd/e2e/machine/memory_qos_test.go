//go:build e2e

package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// memoryFiles are the values of memory.min, memory.low and memory.high.
type memoryFiles struct{ min, low, high string }

// readMemoryFiles returns the values of memory.min, memory.low and memory.high. It calls read with
// the name of each file.
func readMemoryFiles(read func(file string) string) memoryFiles {
	return memoryFiles{read("memory.min"), read("memory.low"), read("memory.high")}
}

// qosFiles returns the memory settings of the cgroup of a QoS class.
func qosFiles(t testing.TB, class string) memoryFiles {
	t.Helper()
	return readMemoryFiles(func(file string) string {
		text, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", class, file))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	})
}

const (
	kubepods   = "kubepods.slice"
	burstable  = kubepods + "/kubepods-burstable.slice"
	bestEffort = kubepods + "/kubepods-besteffort.slice"
)

// mebibytes returns n MiB in bytes.
func mebibytes(n int) string { return strconv.Itoa(n << 20) }

// TestMemoryQoS checks that podd protects the memory requests of pods with memory.min and memory.low,
// and throttles containers with memory.high, if this is configured. A resize must change the values
// without a restart. By default nothing may be protected or throttled.
func TestMemoryQoS(t *testing.T) {
	t.Run("tiered", testTieredReservation)
	restart(t)
	eventually(t, "the QoS classes protect no memory", func() error {
		for _, class := range []string{kubepods, burstable, bestEffort} {
			if got, want := qosFiles(t, class), (memoryFiles{"0", "0", "max"}); got != want {
				return fmt.Errorf("memory settings of %s: got %v, want %v", class, got, want)
			}
		}
		return nil
	})
	apply(t, map[string]string{"share": pod("share", "", container("share", forever, "requests: {memory: 32Mi}, limits: {memory: 64Mi}"))})
	pods := untilReady(t, "share")
	for _, name := range []string{"share", ""} {
		got := readMemoryFiles(func(file string) string { return cgroupFile(t, "kubepods-burstable", pods["share"], name, file) })
		if want := (memoryFiles{"0", "0", "max"}); got != want {
			t.Errorf("by default, memory settings of container %q: got %v, want %v", name, got, want)
		}
	}
	remove(t, "share")
	untilClean(t)
}

func testTieredReservation(t *testing.T) {
	configure(t, "memoryReservationPolicy: TieredReservation\nmemoryThrottlingFactor: 0.5")
	manifest := pod("share", "", container("share", forever, "requests: {memory: 32Mi}, limits: {memory: 64Mi}"))
	apply(t, map[string]string{
		"exact": pod("exact", "", container("exact", forever, "limits: {cpu: 200m, memory: 24Mi}")),
		"idle":  pod("idle", "", container("idle", forever, "")),
		"share": manifest,
		"whole": pod("whole", "  resources: {requests: {memory: 40Mi}, limits: {memory: 80Mi}}\n", container("whole", forever, "")),
	})
	pods := untilReady(t, "exact", "idle", "share", "whole")
	run(t, "systemctl daemon-reload") // a reload may make systemd write its own values again, which must be equal to those of podd
	check := func(class, name, container string, want memoryFiles) {
		t.Helper()
		got := readMemoryFiles(func(file string) string { return cgroupFile(t, class, pods[name], container, file) })
		if got != want {
			t.Errorf("memory settings of pod %s, container %q: got %v, want %v", name, container, got, want)
		}
	}
	check("kubepods", "exact", "exact", memoryFiles{mebibytes(24), "0", "max"})
	check("kubepods", "exact", "", memoryFiles{mebibytes(24), "0", "max"})
	check("kubepods-burstable", "share", "share", memoryFiles{"0", mebibytes(32), mebibytes(48)})
	check("kubepods-burstable", "share", "", memoryFiles{"0", mebibytes(32), "max"})
	check("kubepods-burstable", "whole", "whole", memoryFiles{"0", "0", "max"})
	check("kubepods-burstable", "whole", "", memoryFiles{"0", mebibytes(40), mebibytes(60)})
	check("kubepods-besteffort", "idle", "", memoryFiles{"0", "0", "max"})
	high, err := strconv.ParseInt(cgroupFile(t, "kubepods-besteffort", pods["idle"], "idle", "memory.high"), 10, 64)
	if err != nil || high <= 0 || high > memInfo(t, "MemTotal")/2 {
		t.Errorf("container without a request: got memory.high %d (error %v), want half of the allocatable memory", high, err)
	}
	untilQOS(t, memoryFiles{mebibytes(24 + 32 + 40), mebibytes(32 + 40), "max"}, memoryFiles{"0", mebibytes(32 + 40), "max"})

	before, err := getInventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	apply(t, map[string]string{"share": strings.Replace(manifest, "requests: {memory: 32Mi}, limits: {memory: 64Mi}", "requests: {memory: 48Mi}, limits: {memory: 80Mi}", 1)})
	eventually(t, "the pod is resized", func() error {
		got := readMemoryFiles(func(file string) string { return cgroupFile(t, "kubepods-burstable", pods["share"], "", file) })
		if want := (memoryFiles{"0", mebibytes(48), "max"}); got != want {
			return fmt.Errorf("memory settings: got %v, want %v", got, want)
		}
		return nil
	})
	check("kubepods-burstable", "share", "share", memoryFiles{"0", mebibytes(48), mebibytes(64)})
	untilQOS(t, memoryFiles{mebibytes(24 + 48 + 40), mebibytes(48 + 40), "max"}, memoryFiles{"0", mebibytes(48 + 40), "max"})
	if after, err := getInventory(t.Context()); err != nil || after.running["share/share"] != before.running["share/share"] {
		t.Errorf("after the resize: got container %q (error %v), want %q", after.running["share/share"], err, before.running["share/share"])
	}
	remove(t, "exact", "idle", "share", "whole")
	untilClean(t)
	untilQOS(t, memoryFiles{"0", "0", "max"}, memoryFiles{"0", "0", "max"})
}

// untilQOS waits until the cgroup of all pods and the cgroup of Burstable pods have the given
// values.
func untilQOS(t *testing.T, all, ofBurstable memoryFiles) {
	t.Helper()
	eventually(t, "the QoS classes protect the requests of their pods", func() error {
		if got := qosFiles(t, kubepods); got != all {
			return fmt.Errorf("memory settings of all pods: got %v, want %v", got, all)
		}
		if got := qosFiles(t, burstable); got != ofBurstable {
			return fmt.Errorf("memory settings of Burstable pods: got %v, want %v", got, ofBurstable)
		}
		return nil
	})
}
