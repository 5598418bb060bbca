//go:build e2e

package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// label returns the SELinux label of the files of a container with this level.
func label(level string) string { return "system_u:object_r:container_file_t:" + level }

// labeledPod returns a pod with a claim at /data and an SELinux level. The pod writes the file /data/NAME,
// and the label of its process to the file NAME-process in notes.
func labeledPod(name, claim, level, more string) string {
	text := diskPod(name, "persistentVolumeClaim: {claimName: "+claim+"}", "echo kept >/data/"+name+" && cat /proc/self/attr/current >/notes/"+name+"-process && "+forever)
	return strings.Replace(text, "securityContext: {", fmt.Sprintf("securityContext: {seLinuxOptions: {level: %q}, %s", level, more), 1)
}

// volumePath returns the path of the volume "disk" of a pod.
func volumePath(uid string) string {
	return filepath.Join("/var/lib/podd/pods", uid, "volumes/kubernetes.io~iscsi/disk")
}

// checkContext checks the SELinux label with which a volume is mounted. If want is "", the mount must
// have no label.
func checkContext(t *testing.T, path, want string) {
	t.Helper()
	table, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(path))
	if err != nil || len(table) != 1 {
		t.Fatalf("mounts at %s: got %v, error %v; want one", path, table, err)
	}
	options := table[0].VFSOptions
	if want == "" && strings.Contains(options, "seclabel") || want != "" && strings.Contains(options, `context="`+want+`"`) {
		return
	}
	t.Errorf("%s: got the options %s, want the label %q", path, options, want)
}

// checkFileLabel checks the SELinux label of a file.
func checkFileLabel(t *testing.T, path, want string) {
	t.Helper()
	buffer := make([]byte, 256)
	n, err := unix.Getxattr(path, "security.selinux", buffer)
	if got := strings.TrimRight(string(buffer[:max(n, 0)]), "\x00"); err != nil || got != want {
		t.Errorf("%s: got the label %q, error %v; want %q", path, got, err, want)
	}
}

// TestSELinux checks the SELinux labels of a PersistentVolume on an iSCSI disk: podd mounts the volume
// with the label of the first pod, refuses a pod with another label until the first pod is removed, and
// keeps the mount when it restarts. With seLinuxChangePolicy: Recursive, the container runtime labels
// the files.
func TestSELinux(t *testing.T) {
	if mode, err := os.ReadFile("/sys/fs/selinux/enforce"); err != nil {
		t.Fatalf("got SELinux mode %q, error %v; want a kernel with SELinux", mode, err)
	}
	run(t, "systemctl stop multipathd multipathd.socket")
	run(t, "systemctl start podd")
	serveISCSI(t)
	apply(t, map[string]string{"disks": claimed("disk", "Filesystem", "mountOptions: [noatime], "+iscsi(0, "")), "first": labeledPod("first", "disk", "s0:c2,c1", "")})
	eventually(t, "podd why shows that the policy does not contain the label", func() error {
		return checkWhy("first", label("s0:c1,c2"), "container-selinux")
	})
	policy, err := testdata.ReadFile("testdata/container.cil")
	if err != nil {
		t.Fatal(err)
	}
	write(t, [2]string{"/root/container.cil", string(policy)})
	run(t, "semodule -i /root/container.cil")
	path := volumePath(string(untilReady(t, "first")["first"].Pod.UID))
	checkContext(t, path, label("s0:c1,c2"))
	checkFileLabel(t, filepath.Join(path, "first"), label("s0:c1,c2"))
	process, err := os.ReadFile(notes + "/first-process")
	if err != nil || !strings.Contains(string(process), "container_t:s0:c1,c2") {
		t.Errorf("got the process label %q, error %v; want the level s0:c1,c2", process, err)
	}

	apply(t, map[string]string{"second": labeledPod("second", "disk", "s0:c3,c4", ""), "same": labeledPod("same", "disk", "s0:c1,c2", "")})
	eventually(t, "a pod with the same label is ready", func() error { return areReady("first", "same") })
	eventually(t, "podd why explains the conflict", func() error {
		return checkWhy("second", label("s0:c1,c2"), label("s0:c3,c4"), "seLinuxChangePolicy")
	})
	killPodd(t)
	eventually(t, "podd shows the pods again", func() error { return areReady("first", "same") })
	checkContext(t, path, label("s0:c1,c2"))
	remove(t, "first", "same")
	path = volumePath(string(untilReady(t, "second")["second"].Pod.UID))
	checkContext(t, path, label("s0:c3,c4"))
	checkFileLabel(t, filepath.Join(path, "first"), label("s0:c3,c4"))
	remove(t, "second")
	untilClean(t)

	apply(t, map[string]string{"recursive": labeledPod("recursive", "disk", "s0:c5,c6", "seLinuxChangePolicy: Recursive, ")})
	path = volumePath(string(untilReady(t, "recursive")["recursive"].Pod.UID))
	checkContext(t, path, "")
	checkFileLabel(t, filepath.Join(path, "first"), label("s0:c5,c6"))
	remove(t, "recursive", "disks")
	untilNoDisks(t)
}
