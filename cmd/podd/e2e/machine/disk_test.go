//go:build e2e

package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	targets = "/sys/kernel/config/target" // configuration of the kernel's iSCSI target
	iqn     = "iqn.2003-01.test.podd:disks"
	chapIQN = "iqn.2003-01.test.podd:chap"
	// initiator is the name that the target requires for CHAP.
	initiator = "iqn.2003-01.test.podd:initiator"
	password  = "swordfish-of-the-test"
)

// write writes files in the given order, and creates their directories. It adds no line breaks, because
// the kernel's target would treat them as a part of names and passwords.
func write(t testing.TB, files ...[2]string) {
	t.Helper()
	for _, f := range files {
		if err := errors.Join(os.MkdirAll(filepath.Dir(f[0]), 0o755), os.WriteFile(f[0], []byte(f[1]), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// link creates a link and the directory of the link.
func link(t testing.TB, target, path string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(target, path)); err != nil {
		t.Fatal(err)
	}
}

// createDisk creates a disk of the kernel's target and returns the directory of the disk.
func createDisk(t testing.TB, name string) string {
	t.Helper()
	const size = 96 << 20
	image, dir := filepath.Join(t.TempDir(), name), filepath.Join(targets, "core/fileio_0", name)
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, size)); err != nil {
		t.Fatal(err)
	}
	write(t,
		[2]string{dir + "/control", fmt.Sprintf("fd_dev_name=%s,fd_dev_size=%d", image, size)},
		[2]string{dir + "/wwn/vpd_unit_serial", name},
		[2]string{dir + "/enable", "1"})
	t.Cleanup(func() { run(t, "rmdir "+dir) })
	return dir
}

// serveISCSI creates two targets on loopback. The first has two disks, two portals and no
// authentication. The second has one disk and requires CHAP for the session and for the discovery.
func serveISCSI(t testing.TB) {
	t.Helper()
	run(t, "modprobe -a iscsi_target_mod target_core_file")
	first := filepath.Join(targets, "iscsi", iqn, "tpgt_1")
	for i := range 2 {
		link(t, createDisk(t, fmt.Sprintf("disk-%d", i)), fmt.Sprintf("%s/lun/lun_%d/disk", first, i))
	}
	second := filepath.Join(targets, "iscsi", chapIQN, "tpgt_1")
	link(t, createDisk(t, "chap"), second+"/lun/lun_0/disk")
	for _, portal := range []string{first + "/np/127.0.0.1:3260", first + "/np/127.0.0.1:3261", second + "/np/127.0.0.1:3260", second + "/acls/" + initiator} {
		if err := os.MkdirAll(portal, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link(t, second+"/lun/lun_0", second+"/acls/"+initiator+"/lun_0/disk")
	discovery := filepath.Join(targets, "iscsi/discovery_auth")
	write(t,
		[2]string{first + "/attrib/authentication", "0"}, [2]string{first + "/attrib/generate_node_acls", "1"},
		[2]string{first + "/attrib/cache_dynamic_acls", "1"}, [2]string{first + "/attrib/demo_mode_write_protect", "0"},
		[2]string{second + "/acls/" + initiator + "/auth/userid", "user"}, [2]string{second + "/acls/" + initiator + "/auth/password", password},
		[2]string{second + "/attrib/authentication", "1"},
		[2]string{first + "/enable", "1"}, [2]string{second + "/enable", "1"},
		[2]string{discovery + "/userid", "finder"}, [2]string{discovery + "/password", password})
	t.Cleanup(func() {
		write(t, [2]string{discovery + "/enforce_discovery_auth", "0"}, [2]string{first + "/enable", "0"}, [2]string{second + "/enable", "0"})
		for _, path := range []string{second + "/acls/" + initiator + "/lun_0/disk", second + "/lun/lun_0/disk", first + "/lun/lun_0/disk", first + "/lun/lun_1/disk"} {
			run(t, "rm "+path)
		}
		for _, dir := range []string{second + "/acls/" + initiator + "/lun_0", second + "/acls/" + initiator, second + "/lun/lun_0", second + "/np/127.0.0.1:3260", first + "/lun/lun_0", first + "/lun/lun_1", first + "/np/127.0.0.1:3260", first + "/np/127.0.0.1:3261"} {
			run(t, "rmdir "+dir)
		}
		run(t, fmt.Sprintf("rmdir %s %s %s %s", first, filepath.Dir(first), second, filepath.Dir(second)))
	})
}

// diskPod returns a pod with a volume at /data.
func diskPod(name, volume, script string) string {
	text := pod(name, "  securityContext: {fsGroup: 4321}\n", container(name, script, ""))
	text = strings.Replace(text, "volumes: [", "volumes: [{name: disk, "+volume+"}, ", 1)
	return strings.Replace(text, "volumeMounts: [", "volumeMounts: [{name: disk, mountPath: /data}, ", 1)
}

// blockPod returns a pod with a claim for a block device at /dev/disk.
func blockPod(name, claim, script string) string {
	text := pod(name, "", container(name, script, ""))
	text = strings.Replace(text, "volumes: [", "volumes: [{name: disk, persistentVolumeClaim: {claimName: "+claim+"}}, ", 1)
	return strings.Replace(text, "volumeMounts: [", "volumeDevices: [{name: disk, devicePath: /dev/disk}], volumeMounts: [", 1)
}

// claimed returns the manifest of a PersistentVolume with the given source, and of the claim of this
// volume.
func claimed(name, mode, source string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec: {accessModes: [ReadWriteOnce], capacity: {storage: 64Mi}, storageClassName: disks, volumeMode: %[2]s, %[3]s}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %[1]s}
spec: {accessModes: [ReadWriteOnce], volumeName: %[1]s, storageClassName: disks, volumeMode: %[2]s, resources: {requests: {storage: 64Mi}}}
`, name, mode, source)
}

func iscsi(lun int, more string) string {
	return fmt.Sprintf("iscsi: {targetPortal: 127.0.0.1, iqn: %q, lun: %d%s}", iqn, lun, more)
}

// diskState returns the names of the iSCSI sessions, the SCSI disks, and the records of iscsiadm and of
// podd.
func diskState(t testing.TB) string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"/sys/class/iscsi_session/*", "/sys/block/sd*", "/etc/iscsi/nodes/*", "/etc/iscsi/send_targets/*", "/etc/iscsi/ifaces/podd-*", "/var/lib/podd/disks/*/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return strings.Join(all, " ")
}

// untilNoDisks waits until no pod exists and podd has detached all disks.
func untilNoDisks(t testing.TB) {
	t.Helper()
	untilClean(t)
	if left := diskState(t); left != "" {
		t.Errorf("after all pods were removed: got %s, want no sessions, disks and records", left)
	}
}

// untilText waits until a file has this content.
func untilText(t testing.TB, path, want string) {
	t.Helper()
	eventually(t, path+" has content", func() error {
		text, err := os.ReadFile(path)
		if got := strings.TrimSpace(string(text)); err != nil || got != want {
			return fmt.Errorf("content of the file: got %q, error %v; want %q", got, err, want)
		}
		return nil
	})
}

func sessions(t testing.TB) int {
	t.Helper()
	all, err := filepath.Glob("/sys/class/iscsi_session/*")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// killPodd kills podd and waits until systemd has started it again.
func killPodd(t testing.TB) {
	t.Helper()
	pid := property(t, "MainPID")
	run(t, "systemctl kill --signal=KILL podd")
	eventually(t, "podd runs again", func() error {
		if now := property(t, "MainPID"); now == pid || now == "0" {
			return errors.New("got process " + now)
		}
		return nil
	})
}

// TestISCSI checks iSCSI volumes with a target on loopback: podd must log in, format the disk, and log
// out when no pod uses the target. The data must be kept when a pod is replaced.
func TestISCSI(t *testing.T) {
	run(t, "systemctl stop multipathd multipathd.socket")
	run(t, "systemctl start podd")
	serveISCSI(t)
	for _, c := range []struct {
		name string
		test func(*testing.T)
	}{
		{"shared disk", testSharedDisk}, {"claims", testISCSIClaims}, {"removed while podd is stopped", testRemovedDisk},
		{"CHAP", testCHAP}, {"multipath", testMultipath}, {"failures", testISCSIFailures},
	} {
		if !t.Run(c.name, c.test) {
			return // the pods of a failed test would make the following tests wait
		}
	}
}

// testSharedDisk checks that the session of a disk that two pods use ends only when the second pod is
// removed.
func testSharedDisk(t *testing.T) {
	apply(t, map[string]string{"writer": diskPod("writer", iscsi(0, ""), "echo kept >/data/it && stat -c %g /data/it >/notes/group && "+forever)})
	untilReady(t, "writer")
	untilText(t, notes+"/group", "4321")
	apply(t, map[string]string{"second": diskPod("second", iscsi(0, ""), "cp /data/it /notes/second && "+forever)})
	pods := untilReady(t, "writer", "second")
	untilText(t, notes+"/second", "kept")
	killPodd(t)
	untilReady(t, "writer", "second")
	remove(t, "writer")
	eventually(t, "the first pod is removed", func() error { return areRemoved("writer") })
	eventually(t, "the directory of the first pod is removed", func() error {
		_, err := os.Stat("/var/lib/podd/pods/" + string(pods["writer"].Pod.UID))
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("got error %v, want an error because the directory does not exist", err)
		}
		return nil
	})
	if n := sessions(t); n != 1 {
		t.Errorf("got %d sessions while a pod uses the disk, want 1", n)
	}
	remove(t, "second")
	untilNoDisks(t)
}

// testISCSIClaims checks PersistentVolumes. The data of an earlier pod must be kept, a read-only volume
// must not be writable, and a block device must have the size of the disk.
func testISCSIClaims(t *testing.T) {
	apply(t, map[string]string{
		"disks": claimed("disk", "Filesystem", "mountOptions: [noatime], "+iscsi(0, "")) + "---\n" + claimed("raw", "Block", iscsi(1, "")),
		"reader": diskPod("reader", "persistentVolumeClaim: {claimName: disk, readOnly: true}",
			"! touch /data/no && cp /data/it /notes/reader && grep ' /data ' /proc/mounts | grep -o noatime >/notes/option && "+forever),
		"block": blockPod("block", "raw", "echo raw data | dd of=/dev/disk conv=fsync && blockdev --getsize64 /dev/disk >/notes/size && "+forever),
	})
	untilReady(t, "reader", "block")
	untilText(t, notes+"/reader", "kept")
	untilText(t, notes+"/option", "noatime")
	untilText(t, notes+"/size", fmt.Sprint(96<<20))
	if n := sessions(t); n != 1 {
		t.Errorf("got %d sessions for two disks of one target, want 1", n)
	}
	remove(t, "reader", "block", "disks")
	untilNoDisks(t)
}

// testRemovedDisk removes a pod while podd is not running.
func testRemovedDisk(t *testing.T) {
	apply(t, map[string]string{"gone": diskPod("gone", iscsi(0, ""), "cp /data/it /notes/gone && "+forever)})
	untilReady(t, "gone")
	run(t, "systemctl kill --signal=KILL podd")
	run(t, "systemctl stop podd")
	remove(t, "gone")
	if n := sessions(t); n != 1 {
		t.Errorf("got %d sessions while podd is stopped, want 1", n)
	}
	run(t, "systemctl start podd")
	untilNoDisks(t)
}

// testCHAP checks a target that requires CHAP and a certain initiator. The password must not be in the
// log, nor in a record after the logout.
func testCHAP(t *testing.T) {
	write(t, [2]string{filepath.Join(targets, "iscsi/discovery_auth/enforce_discovery_auth"), "1"})
	secret := func(password string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: chap}\ntype: kubernetes.io/iscsi-chap\nstringData:\n  discovery.sendtargets.auth.username: finder\n  discovery.sendtargets.auth.password: %[1]s\n  node.session.auth.username: user\n  node.session.auth.password: %[1]s\n", password)
	}
	volume := fmt.Sprintf("iscsi: {targetPortal: 127.0.0.1, iqn: %q, lun: 0, chapAuthDiscovery: true, chapAuthSession: true, secretRef: {name: chap}, initiatorName: %q}", chapIQN, initiator)
	apply(t, map[string]string{"chap": secret("wrong-" + password), "secured": diskPod("secured", volume, "echo secret >/data/it && "+forever)})
	eventually(t, "podd why shows that the login failed", func() error { return checkWhy("secured", chapIQN, "check the CHAP credentials") })
	apply(t, map[string]string{"chap": secret(password)})
	untilReady(t, "secured")
	used, err := os.ReadFile(first(t, "/sys/class/iscsi_session/*/initiatorname"))
	if got := strings.TrimSpace(string(used)); err != nil || got != initiator {
		t.Errorf("got initiator name %q, error %v; want %q", got, err, initiator)
	}
	node := first(t, "/etc/iscsi/nodes/*/*/*")
	if info, err := os.Stat(node); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file %s: got %v, error %v; want mode 0600", node, info, err)
	}
	remove(t, "secured", "chap")
	untilNoDisks(t)
	if out, err := system("journalctl --no-pager"); err != nil || strings.Contains(out, password) {
		t.Errorf("journal: got the password in it, or a read error (%v); want no password", err)
	}
	write(t, [2]string{filepath.Join(targets, "iscsi/discovery_auth/enforce_discovery_auth"), "0"})
}

// first returns the first path that matches a pattern.
func first(t testing.TB, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("paths that match %s: got %v, error %v; want at least one", pattern, found, err)
	}
	return found[0]
}

// testMultipath checks a disk with two portals. multipathd creates a device, which podd must use and
// then remove.
func testMultipath(t *testing.T) {
	write(t, [2]string{"/etc/multipath.conf", "defaults {\n\tfind_multipaths yes\n}\n"})
	run(t, "systemctl start multipathd")
	defer run(t, "systemctl stop multipathd multipathd.socket")
	apply(t, map[string]string{"paths": diskPod("paths", iscsi(0, `, portals: ["127.0.0.1:3261"]`), "cp /data/it /notes/paths && grep ' /data ' /proc/mounts | cut -d ' ' -f 1 >/notes/device && "+forever)})
	untilReady(t, "paths")
	untilText(t, notes+"/paths", "kept")
	if text, err := os.ReadFile(notes + "/device"); err != nil || !strings.HasPrefix(string(text), "/dev/mapper/") && !strings.HasPrefix(string(text), "/dev/dm-") {
		t.Errorf("got the device %q, error %v; want a multipath device", text, err)
	}
	if n := sessions(t); n != 2 {
		t.Errorf("got %d sessions, want one for each portal", n)
	}
	remove(t, "paths")
	untilNoDisks(t)
	if left, _ := filepath.Glob("/sys/block/dm-*"); len(left) > 0 {
		t.Errorf("got the multipath devices %v, want none", left)
	}
}

// testISCSIFailures checks the messages for a portal without a target, and for a LUN that does not
// exist. podd must be able to remove these pods.
func testISCSIFailures(t *testing.T) {
	apply(t, map[string]string{
		"unreachable": diskPod("unreachable", fmt.Sprintf("iscsi: {targetPortal: '127.0.0.1:3999', iqn: %q, lun: 0}", iqn), forever),
		"unknown":     diskPod("unknown", "iscsi: {targetPortal: 127.0.0.1, iqn: 'iqn.2003-01.test.podd:unknown', lun: 0}", forever),
		"absent":      diskPod("absent", iscsi(7, ""), forever),
	})
	eventually(t, "podd why explains the failures", func() error {
		return errors.Join(
			checkWhy("unreachable", "127.0.0.1:3999", "Connection refused"),
			checkWhy("unknown", "does not offer the target", iqn),
			checkWhy("absent", "no disk with LUN 7"))
	})
	remove(t, "unreachable", "unknown", "absent")
	untilNoDisks(t)
}

// fcRule gives the disk of the module scsi_debug the name of a Fibre Channel disk, because the machine
// has no Fibre Channel adapter.
const fcRule = `SUBSYSTEM=="block", KERNEL=="sd*", ENV{DEVTYPE}=="disk", ATTRS{model}=="scsi_debug*", SYMLINK+="disk/by-path/pci-0000:00:09.0-fc-0x500a0982991b8dc5-lun-0 disk/by-id/scsi-Linux_scsi_debug_1"`

// TestFC checks Fibre Channel volumes with the disk of the kernel module scsi_debug: podd must delete
// the device when the last pod is removed, and must find it again with a scan.
func TestFC(t *testing.T) {
	run(t, "systemctl stop multipathd multipathd.socket")
	run(t, "systemctl start podd")
	write(t, [2]string{"/etc/udev/rules.d/99-fc.rules", fcRule + "\n"})
	run(t, "udevadm control --reload")
	run(t, "modprobe scsi_debug dev_size_mb=64 delay=0")
	eventually(t, "the disk exists", func() error {
		if diskState(t) == "" {
			return errors.New("got no disk, want one")
		}
		return nil
	})
	const source = "fc: {targetWWNs: [500A0982991B8DC5], lun: 0}"
	apply(t, map[string]string{"writer": diskPod("writer", source, "echo kept >/data/it && "+forever)})
	untilReady(t, "writer")
	killPodd(t)
	untilReady(t, "writer")
	remove(t, "writer")
	untilNoDisks(t)
	apply(t, map[string]string{
		"disks":  claimed("fc-disk", "Filesystem", source),
		"reader": diskPod("reader", "persistentVolumeClaim: {claimName: fc-disk}", "cp /data/it /notes/fc && "+forever),
	})
	untilReady(t, "reader")
	untilText(t, notes+"/fc", "kept")
	remove(t, "reader", "disks")
	untilNoDisks(t)
	apply(t, map[string]string{
		"disks": claimed("fc-raw", "Block", `fc: {wwids: ["Linux scsi_debug 1"]}`),
		"block": blockPod("block", "fc-raw", "blockdev --getsize64 /dev/disk >/notes/fc-size && "+forever),
	})
	untilReady(t, "block")
	untilText(t, notes+"/fc-size", fmt.Sprint(64<<20))
	remove(t, "block", "disks")
	untilNoDisks(t)
	run(t, "modprobe -r scsi_debug")
	run(t, "rm /etc/udev/rules.d/99-fc.rules")
}
