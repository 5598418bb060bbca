//go:build vm

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

// giveSwap gives the machine so much swap that the share of a small container
// does not fill, until the end of the test.
func giveSwap(t *testing.T) {
	t.Helper()
	const file = "/swapfile"
	run(t, "fallocate --length 2G "+file)
	t.Cleanup(func() { run(t, "rm "+file) })
	run(t, "chmod 600 "+file)
	run(t, "mkswap "+file)
	run(t, "swapon "+file)
	t.Cleanup(func() { run(t, "swapoff "+file) })
}

// has is an amount of the machine's, in bytes.
func has(t testing.TB, what string) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut("\n"+string(text), "\n"+what+":")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// swapShare is what a container that requests so much has of the machine's swap;
// the kernel counts in pages.
func swapShare(t testing.TB, request int64) string {
	t.Helper()
	share := int64(float64(request) / float64(has(t, "MemTotal")) * float64(has(t, "SwapTotal")))
	return strconv.FormatInt(share/4096*4096, 10)
}

// hungry touches more memory than its limit is, at once, and holds it.
const hungry = "trap 'exit 0' TERM; dd if=/dev/zero bs=88M count=1 | sleep 36000 & wait"

const (
	someSwap = "requests: {memory: 64Mi}, limits: {memory: 80Mi}"
	critical = "  priorityClassName: system-node-critical\n"
)

// TestSwap: with LimitedSwap containers of Burstable pods have their share of the
// machine's swap and use it, others have none; without, nobody has.
func TestSwap(t *testing.T) {
	giveSwap(t)
	t.Run("limited", limitedSwap)
	t.Run("none", noSwap)
}

func limitedSwap(t *testing.T) {
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
			t.Errorf("memory.swap.max of %s/%s is %s, want %s", tt.pod, tt.container, got, tt.want)
		}
	}
	eventually(t, "what has no room in memory is in swap", func() error {
		if n := cgroupFile(t, "kubepods-burstable", pods["share"], "some", "memory.swap.current"); n == "0" {
			return errors.New("nothing is")
		}
		return nil
	})
	before, err := look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	apply(t, map[string]string{"share": strings.Replace(manifest, "requests: {memory: 64Mi}", "requests: {memory: 48Mi}", 1)})
	eventually(t, "who requests less has less", func() error {
		if got, want := cgroupFile(t, "kubepods-burstable", pods["share"], "some", "memory.swap.max"), swapShare(t, 48<<20); got != want {
			return fmt.Errorf("memory.swap.max is %s, want %s", got, want)
		}
		return nil
	})
	if after, err := look(t.Context()); err != nil || after.runs["share/some"] != before.runs["share/some"] {
		t.Errorf("the container is another one, %v", err)
	}
	remove(t, "share", "whole", "least", "vital")
	untilClean(t)
}

// noSwap: podd's default.
func noSwap(t *testing.T) {
	restart(t)
	apply(t, map[string]string{
		"share": pod("share", "", container("some", forever, someSwap), container("none", forever, "requests: {cpu: 10m}")),
		"dies":  pod("dies", "  restartPolicy: Never\n", container("dies", hungry, someSwap)),
	})
	// The reason is not compared, because containerd reports Error instead of OOMKilled if the
	// container's cgroup is removed before it has read the kernel's event.
	eventually(t, "the kernel has killed the container that uses too much memory", func() error {
		pods, err := view()
		if err != nil || pods["dies"] == nil {
			return fmt.Errorf("there is no such pod, %w", err)
		}
		for _, c := range pods["dies"].Pod.Status.ContainerStatuses {
			if c.State.Terminated != nil && c.State.Terminated.ExitCode == 128+int32(unix.SIGKILL) {
				return nil
			}
		}
		return fmt.Errorf("%+v", pods["dies"].Pod.Status.ContainerStatuses)
	})
	var share *server.PodView
	eventually(t, "the other one runs", func() error {
		pods, err := view()
		if err != nil {
			return err
		}
		if share = pods["share"]; share == nil || share.Pod.Status.Phase != v1.PodRunning || !share.Ready {
			return fmt.Errorf("%+v", share)
		}
		return nil
	})
	for _, name := range []string{"some", "none"} {
		if got := cgroupFile(t, "kubepods-burstable", share, name, "memory.swap.max"); got != "0" {
			t.Errorf("memory.swap.max of %s is %s, want 0", name, got)
		}
	}
	remove(t, "share", "dies")
	untilClean(t)
}
