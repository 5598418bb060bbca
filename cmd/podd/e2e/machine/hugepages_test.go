//go:build e2e

package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const hugePagesDir = "/sys/kernel/mm/hugepages"

// reservePages reserves n huge pages of 2 MiB until the end of the test.
func reservePages(t *testing.T, n int) {
	t.Helper()
	file := filepath.Join(hugePagesDir, "hugepages-2048kB/nr_hugepages")
	write := func(n int) error { return os.WriteFile(file, []byte(strconv.Itoa(n)), 0) }
	t.Cleanup(func() {
		if err := write(0); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "huge pages are reserved", func() error {
		if err := errors.Join(os.WriteFile("/proc/sys/vm/compact_memory", []byte("1"), 0), write(n)); err != nil {
			return err
		}
		if got := hugePages(t, "nr_hugepages"); got != n {
			return fmt.Errorf("got %d reserved pages, want %d", got, n)
		}
		return nil
	})
}

// hugePages reads a number from a file in the kernel's directory about huge pages of 2 MiB.
func hugePages(t testing.TB, file string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(hugePagesDir, "hugepages-2048kB", file))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestHugePages checks that a pod gets exactly the huge pages that it requests, in its cgroups
// and in an emptyDir of medium HugePages. A pod that requests more huge pages than are free must
// be rejected. A limit of the cgroup of all pods, as a kubelet sets it if it starts before the huge pages are
// reserved, must not apply.
func TestHugePages(t *testing.T) {
	const pages = 16
	const allPods = "/sys/fs/cgroup/kubepods.slice"
	restart(t) // podd creates the cgroup
	eventually(t, "no pod can use huge pages", func() error {
		return errors.Join(os.WriteFile(filepath.Join(allPods, "hugetlb.2MB.max"), []byte("0"), 0), os.WriteFile(filepath.Join(allPods, "hugetlb.2MB.rsvd.max"), []byte("0"), 0))
	})
	reservePages(t, pages)
	restart(t) // podd counts huge pages at its start
	script := "{ grep ' /huge ' /proc/mounts; fallocate -l 4194304 /huge/x && echo fits; fallocate -l 8388608 /huge/y || echo too much; rm /huge/y; } >/notes/mounted 2>/dev/null; mv /notes/mounted /notes/output; "
	limits := func(amount string) string { return "limits: {memory: 32Mi, hugepages-2Mi: " + amount + "}" }
	text := pod("pages", "", container("pages", script+forever, limits("8Mi")), container("other", forever, ""))
	text = strings.Replace(text, "volumes: [", "volumes: [{name: huge, emptyDir: {medium: HugePages}}, ", 1)
	text = strings.Replace(text, "volumeMounts: [", "volumeMounts: [{name: huge, mountPath: /huge}, ", 1)
	apply(t, map[string]string{"pages": text})
	p := untilReady(t, "pages")["pages"]
	var output string
	eventually(t, "the pod has taken its pages", func() error {
		text, err := os.ReadFile(filepath.Join(notes, "output"))
		output = string(text)
		return err
	})
	if !strings.Contains(output, " hugetlbfs rw,") || !strings.Contains(output, "pagesize=2M") || !strings.HasSuffix(output, "\nfits\ntoo much\n") {
		t.Errorf("output of the container: got %q; want output with %q, with %q and that ends with %q", output, " hugetlbfs rw,", "pagesize=2M", "\nfits\ntoo much\n")
	}
	for _, tt := range []struct{ container, file, want string }{
		{"pages", "hugetlb.2MB.max", "8388608"},
		{"pages", "hugetlb.2MB.current", "4194304"},
		{"other", "hugetlb.2MB.max", "0"},
		{"", "hugetlb.2MB.max", "8388608"},
	} {
		if got := cgroupFile(t, "kubepods-burstable", p, tt.container, tt.file); got != tt.want {
			t.Errorf("%s of %q: got %s, want %s", tt.file, tt.container, got, tt.want)
		}
	}
	apply(t, map[string]string{
		"greedy": pod("greedy", "", container("greedy", forever, limits("64Mi"))),
		"rest":   pod("rest", "", container("rest", forever, limits("24Mi"))),
	})
	eventually(t, "the pod that requests too much is rejected, and another pod gets the remaining pages", func() error {
		pods, err := view()
		if err != nil || pods["greedy"] == nil || pods["rest"] == nil {
			return fmt.Errorf("podd does not show the pods: %w", err)
		}
		if s := pods["greedy"].Pod.Status; s.Reason != "OutOfhugepages-2Mi" || !strings.Contains(s.Message, "64Mi of hugepages-2Mi; the node has 32Mi") {
			return fmt.Errorf("pod greedy: got phase %s, reason %s, message %q, podd's reason %q; want reason OutOfhugepages-2Mi", s.Phase, s.Reason, s.Message, pods["greedy"].Why)
		}
		if !pods["rest"].Ready {
			return fmt.Errorf("pod rest: got %+v, want a running pod", pods["rest"])
		}
		return nil
	})
	remove(t, "pages", "greedy", "rest")
	untilClean(t)
	if free := hugePages(t, "free_hugepages"); free != pages {
		t.Errorf("after the pods were removed: got %d free huge pages, want %d", free, pages)
	}
}
