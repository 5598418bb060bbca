//go:build e2e

package machine

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// addSwap adds 2 GiB of swap until the end of the test.
func addSwap(t *testing.T) {
	t.Helper()
	const file = "/swapfile"
	run(t, "fallocate --length 2G "+file)
	t.Cleanup(func() { run(t, "rm "+file) })
	run(t, "chmod 600 "+file)
	run(t, "mkswap "+file)
	run(t, "swapon "+file)
	t.Cleanup(func() { run(t, "swapoff "+file) })
}

// memInfo returns a value of /proc/meminfo in bytes.
func memInfo(t testing.TB, key string) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut("\n"+string(text), "\n"+key+":")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// swapShare returns the amount of swap, in bytes, that LimitedSwap gives to a container with this memory
// request. The amount is rounded down to whole pages, as the kernel rounds memory.swap.max.
func swapShare(t testing.TB, request int64) string {
	t.Helper()
	share := int64(float64(request) / float64(memInfo(t, "MemTotal")) * float64(memInfo(t, "SwapTotal")))
	return strconv.FormatInt(share/4096*4096, 10)
}

// hungry is a script that uses 88 MiB of memory until it receives SIGTERM. This exceeds the memory limit
// in someSwap.
const hungry = "trap 'exit 0' TERM; dd if=/dev/zero bs=88M count=1 | sleep 36000 & wait"

const (
	someSwap = "requests: {memory: 64Mi}, limits: {memory: 80Mi}"
	critical = "  priorityClassName: system-node-critical\n"
)

// TestSwap checks that, with LimitedSwap, containers of Burstable pods get and use their share of
// the swap, and other containers get none. By default no container may get swap.
func TestSwap(t *testing.T) {
	addSwap(t)
	t.Run("limited", testLimitedSwap)
	t.Run("none", testNoSwap)
}

func testLimitedSwap(t *testing.T) {
	configure(t, "memorySwap: {swapBehavior: LimitedSwap}")
	manifest := pod("share", "", container("some", hungry, someSwap),
		container("equal", forever, "requests: {memory: 32Mi}, limits: {memory: 32Mi}"), container("none", forever, "requests: {cpu: 10m}"))
	apply(t, map[string]string{
		"share": manifest,
		"whole": pod("whole", "", container("whole", forever, "limits: {cpu: 200m, memory: 32Mi}")),
		"least": pod("least", "", container("least", forever, "")),
		"vital": pod("vital", critical, container("vital", forever, someSwap)),
	})
	pods := untilReady(t, "share", "whole", "least", "vital")
	share := swapShare(t, 64<<20)
	for _, tt := range []struct{ pod, class, container, want string }{
		{"share", "kubepods-burstable", "some", share},
		{"share", "kubepods-burstable", "equal", "0"},
		{"share", "kubepods-burstable", "none", "0"},
		{"share", "kubepods-burstable", "", "max"},
		{"whole", "kubepods", "whole", "0"},
		{"least", "kubepods-besteffort", "least", "0"},
		{"vital", "kubepods-burstable", "vital", "0"},
	} {
		if got := cgroupFile(t, tt.class, pods[tt.pod], tt.container, "memory.swap.max"); got != tt.want {
			t.Errorf("memory.swap.max of %s/%s: got %s, want %s", tt.pod, tt.container, got, tt.want)
		}
	}
	eventually(t, "memory above the limit is in swap", func() error {
		if n := cgroupFile(t, "kubepods-burstable", pods["share"], "some", "memory.swap.current"); n == "0" {
			return errors.New("got no swap usage, want some")
		}
		return nil
	})
	before, err := getInventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	apply(t, map[string]string{"share": strings.Replace(manifest, "requests: {memory: 64Mi}", "requests: {memory: 48Mi}", 1)})
	eventually(t, "a smaller request gets less swap", func() error {
		if got, want := cgroupFile(t, "kubepods-burstable", pods["share"], "some", "memory.swap.max"), swapShare(t, 48<<20); got != want {
			return fmt.Errorf("memory.swap.max: got %s, want %s", got, want)
		}
		return nil
	})
	if after, err := getInventory(t.Context()); err != nil || after.running["share/some"] != before.running["share/some"] {
		t.Errorf("after the request was reduced: got container %q, error %v; want %q", after.running["share/some"], err, before.running["share/some"])
	}
	remove(t, "share", "whole", "least", "vital")
	untilClean(t)
}

// testNoSwap checks that by default no container gets swap.
func testNoSwap(t *testing.T) {
	restart(t)
	apply(t, map[string]string{
		"share": pod("share", "", container("some", forever, someSwap), container("none", forever, "requests: {cpu: 10m}")),
		"dies":  pod("dies", "  restartPolicy: Never\n", container("dies", hungry, someSwap)),
	})
	// The reason is not compared, because containerd reports Error instead of OOMKilled if the
	// container's cgroup is removed before containerd has read the kernel's event.
	eventually(t, "the kernel has killed the container that exceeds its memory limit", func() error {
		pods, err := view()
		if err != nil || pods["dies"] == nil {
			return fmt.Errorf("podd does not show the pod: %w", err)
		}
		for _, c := range pods["dies"].Pod.Status.ContainerStatuses {
			if c.State.Terminated != nil && c.State.Terminated.ExitCode == 128+int32(unix.SIGKILL) {
				return nil
			}
		}
		return fmt.Errorf("pod dies: got %+v, want exit code 137", pods["dies"].Pod.Status.ContainerStatuses)
	})
	var share *server.PodView
	eventually(t, "the other pod runs", func() error {
		pods, err := view()
		if err != nil {
			return err
		}
		if share = pods["share"]; share == nil || share.Pod.Status.Phase != v1.PodRunning || !share.Ready {
			return fmt.Errorf("pod share: got %+v, want a running and ready pod", share)
		}
		return nil
	})
	for _, name := range []string{"some", "none"} {
		if got := cgroupFile(t, "kubepods-burstable", share, name, "memory.swap.max"); got != "0" {
			t.Errorf("memory.swap.max of %s: got %s, want 0", name, got)
		}
	}
	remove(t, "share", "dies")
	untilClean(t)
}
