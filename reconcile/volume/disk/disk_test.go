package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest/disk"
	"podd/reconcile/volume/selinux"
	"podd/runtime/runtimetest/mountns"
	"podd/runtime/safepath"
)

const (
	targetName = "iqn.2001-04.com.example:disk"
	portalText = "192.0.2.1:3260"
)

// An exitError is the error of a program that exited with this exit code.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func (e exitError) ExitCode() int { return int(e) }

// A fakeHost is a host with an iSCSI target. Its programs change a directory that replaces /sys. It
// is used to test failures. The tests in a virtual machine use a real target.
type fakeHost struct {
	t        *testing.T
	dir      string
	commands []string // programs that ran, with their arguments
	// fail returns the output and error of a program, or nil to run it normally. It may be nil.
	fail func(command string) (string, error)
	busy bool // whether the devices are in use
}

func newFakeHost(t *testing.T) *fakeHost {
	h := &fakeHost{t: t, dir: t.TempDir()}
	for _, dir := range []string{"sys/class/scsi_host/host2", "dev", "pods", "iscsi"} {
		h.mkdir(dir)
	}
	return h
}

func (h *fakeHost) path(name string) string { return filepath.Join(h.dir, name) }

func (h *fakeHost) mkdir(name string) {
	h.t.Helper()
	if err := os.MkdirAll(h.path(name), 0o755); err != nil {
		h.t.Fatal(err)
	}
}

func (h *fakeHost) write(name, text string) {
	h.t.Helper()
	h.mkdir(filepath.Dir(name))
	if err := os.WriteFile(h.path(name), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// manager returns a Manager for the host.
func (h *fakeHost) manager() Manager {
	return Manager{Root: h.path("disks"), Pods: h.path("pods"), Host: Host{
		Run: h.run,
		Call: func(ctx context.Context, _ time.Duration, _ string, call func(context.Context) error) error {
			return call(ctx)
		},
		Flush: func(string) error {
			if h.busy {
				return unix.EBUSY
			}
			return nil
		},
		Sys: h.path("sys"), Dev: h.path("dev"), ISCSI: []string{h.path("iscsi")},
	}}
}

// run simulates a command of iscsiadm. All other programs do nothing and succeed.
func (h *fakeHost) run(_ context.Context, _ time.Duration, p Program, args ...string) (string, error) {
	command := p.Name + " " + strings.Join(args, " ")
	h.commands = append(h.commands, command)
	if h.fail != nil {
		if output, err := h.fail(command); err != nil {
			return output, err
		}
	}
	node := fmt.Sprintf("iscsi/nodes/%s/192.0.2.1,3260,1/default", targetName)
	switch {
	case strings.Contains(command, "-m discovery ") || strings.HasSuffix(command, "--discover"):
		return portalText + ",1 " + targetName + "\n", nil
	case strings.Contains(command, "-m discoverydb") && strings.HasSuffix(command, "-o new"):
		h.write("iscsi/send_targets/192.0.2.1,3260/st_config", "# BEGIN RECORD\n# END RECORD\n")
	case strings.Contains(command, "-m discoverydb") && strings.HasSuffix(command, "-o delete"):
		os.RemoveAll(h.path("iscsi/send_targets/192.0.2.1,3260"))
	case strings.Contains(command, "-m node") && strings.HasSuffix(command, "-o new"):
		h.write(node, "# BEGIN RECORD\nnode.session.auth.authmethod = None\n# END RECORD\n")
	case strings.Contains(command, "-m node") && strings.HasSuffix(command, "-o delete"):
		if os.Remove(h.path(node)) != nil {
			return "No records found", exitError(noRecord)
		}
	case strings.HasSuffix(command, "--login"):
		h.addSession("sda")
	case strings.HasSuffix(command, "--logout"):
		if os.Remove(h.path("sys/class/iscsi_session/session1")) != nil {
			return "No matching sessions found", exitError(noRecord)
		}
	}
	return "", nil
}

// addSession adds a session with a disk to sysfs.
func (h *fakeHost) addSession(device string) {
	h.t.Helper()
	const session = "sys/devices/platform/host2/session1"
	for name, text := range map[string]string{"targetname": targetName, "ifacename": "default", "state": "LOGGED_IN"} {
		h.write(session+"/iscsi_session/session1/"+name, text+"\n")
	}
	for name, text := range map[string]string{"address": "192.0.2.1", "port": "3260", "persistent_address": "192.0.2.1", "persistent_port": "3260"} {
		h.write(session+"/connection1:0/iscsi_connection/connection1:0/"+name, text+"\n")
	}
	h.mkdir(session + "/target2:0:0/2:0:0:0/block/" + device)
	h.write("sys/block/"+device+"/device/delete", "")
	h.write("dev/"+device, "")
	h.mkdir("sys/class/iscsi_session")
	_ = os.Symlink("../..", h.path(session+"/iscsi_session/session1/device")) // exists after the second login
	if err := os.Symlink("../../devices/platform/host2/session1/iscsi_session/session1", h.path("sys/class/iscsi_session/session1")); err != nil {
		h.t.Fatal(err)
	}
}

// attach attaches a disk for the volume "data" of a pod.
func (h *fakeHost) attach(pod types.UID, v Volume) (string, error) {
	h.t.Helper()
	return h.attachVolume(pod, "data", v)
}

// attachVolume attaches a disk for a volume of a pod.
func (h *fakeHost) attachVolume(pod types.UID, volume string, v Volume) (string, error) {
	h.t.Helper()
	dir := "pods/" + string(pod) + "/volumes/" + LinksDir
	h.mkdir(dir)
	links, err := safepath.Open(h.path(dir))
	if err != nil {
		h.t.Fatal(err)
	}
	defer links.Close()
	return h.manager().Attach(h.t.Context(), v, links, volume)
}

// mountTmpfs makes the programs mount and umount mount and unmount a tmpfs. The test then runs in its own
// mount namespace until it ends.
func (h *fakeHost) mountTmpfs() {
	h.t.Helper()
	if err := mountns.Enter(); err != nil {
		h.t.Skipf("mount namespaces are not permitted: %v", err)
	}
	h.fail = func(command string) (string, error) {
		path := command[strings.LastIndex(command, " ")+1:]
		switch program, _, _ := strings.Cut(command, " "); program {
		case mountTool.Name:
			h.t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) }) // before the directory is removed
			return "", unix.Mount("tmpfs", path, "tmpfs", 0, "")
		case umountTool.Name:
			return "", unix.Unmount(path, 0)
		}
		return "", nil
	}
}

// count returns the number of commands that contain text.
func (h *fakeHost) count(text string) int {
	n := 0
	for _, c := range h.commands {
		if strings.Contains(c, text) {
			n++
		}
	}
	return n
}

// checkClean fails the test if a record or a session is left.
func (h *fakeHost) checkClean() {
	h.t.Helper()
	for _, pattern := range []string{"disks/*", "sys/class/iscsi_session/*", "iscsi/nodes/*/*/*", "iscsi/send_targets/*", "pods/*/volumes/" + LinksDir + "/*"} {
		if left, err := filepath.Glob(h.path(pattern)); len(left) > 0 || err != nil {
			h.t.Errorf("remaining records and sessions: got %v (error %v), want none", left, err)
		}
	}
}

// blockVolume returns a block volume, because a fake host cannot mount a filesystem.
func blockVolume() Volume {
	return Volume{Block: true, ISCSI: &disk.ISCSI{Portals: []disk.Portal{{Host: "192.0.2.1", Port: 3260}}, Target: targetName, Interface: "default"}}
}

func TestAttach(t *testing.T) {
	h := newFakeHost(t)
	checkInUse := func(want ...v1.UniqueVolumeName) {
		t.Helper()
		if got, err := h.manager().VolumesInUse(); err != nil || !slices.Equal(got, want) {
			t.Errorf("volumes in use: got %v (error %v), want %v", got, err, want)
		}
	}
	checkInUse()
	for _, pod := range []types.UID{"a", "b", "a"} {
		v := blockVolume()
		v.UniqueName = v1.UniqueVolumeName("volume of " + pod)
		if path, err := h.attach(pod, v); err != nil || path != h.path("dev/sda") {
			t.Fatalf("path: got %q (error %v), want that of the device", path, err)
		}
	}
	if n := h.count("--login"); n != 1 {
		t.Errorf("got %d logins, want 1; commands: %q", n, h.commands)
	}
	if err := h.manager().Release(t.Context(), "a"); err != nil || h.count("--logout") != 0 {
		t.Errorf("Release while another pod uses the disk: got error %v and %d logouts; want no error and no logout", err, h.count("--logout"))
	}
	checkInUse("volume of a", "volume of b") // a name remains until the disk is detached
	if err := h.manager().Release(t.Context(), "b"); err != nil || h.count("--logout") != 1 {
		t.Errorf("Release of the last pod: got error %v and %d logouts; want no error and 1 logout", err, h.count("--logout"))
	}
	if text, err := os.ReadFile(h.path("sys/block/sda/device/delete")); err != nil || string(text) != "1" {
		t.Errorf("content of the file delete of the device: got %q (error %v), want \"1\"", text, err)
	}
	h.checkClean()
	checkInUse()
	if err := h.manager().Release(t.Context(), "b"); err != nil {
		t.Errorf("second Release: got error %v, want none", err)
	}
}

// TestAttach_Names checks that a disk has at most maxNames names of volumes. A pod that is rejected does
// not keep the disk attached.
func TestAttach_Names(t *testing.T) {
	h := newFakeHost(t)
	attach := func(pod types.UID, name string) error {
		v := blockVolume()
		v.UniqueName = v1.UniqueVolumeName(name)
		_, err := h.attach(pod, v)
		return err
	}
	for i := range 64 {
		if err := attach("a", fmt.Sprint("name ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := attach("b", "another name"); err == nil || !strings.Contains(err.Error(), blockVolume().name().String()) || !strings.Contains(err.Error(), "limit 64") {
		t.Errorf("another name: got error %v, want one with the disk and the limit", err)
	}
	if err := attach("c", "name 1"); err != nil {
		t.Errorf("recorded name: got error %v, want none", err)
	}
	for _, pod := range []types.UID{"c", "a"} {
		if err := h.manager().Release(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	h.checkClean()
	if err := attach("b", "another name"); err != nil {
		t.Errorf("another name after the disk was detached: got error %v, want none", err)
	}
}

// TestVolumesInUse_Damaged checks that a file that cannot be read does not hide the volumes of other disks.
func TestVolumesInUse_Damaged(t *testing.T) {
	h := newFakeHost(t)
	v := blockVolume()
	v.UniqueName = "readable"
	if _, err := h.attach("a", v); err != nil {
		t.Fatal(err)
	}
	damaged := "disks/fc-" + strings.Repeat("0", 32) + "/disk/" + namesFile // before the other disk
	h.mkdir(damaged)
	names, err := h.manager().VolumesInUse()
	if !slices.Equal(names, []v1.UniqueVolumeName{"readable"}) || err == nil || !strings.Contains(err.Error(), damaged) {
		t.Errorf("got names %v and error %v, want the name \"readable\" and an error with %s", names, err, damaged)
	}
}

// TestAttach_OtherLabel checks that pods that wait for another SELinux label do not keep the mount of the
// first pod, and do not block each other after its removal. Two volumes of one pod do not block each other
// either, unless one of them is mounted. The fake mounts have no label.
func TestAttach_OtherLabel(t *testing.T) {
	h := newFakeHost(t)
	h.mountTmpfs()
	first, other := blockVolume(), blockVolume()
	first.Block, other.Block = false, false
	first.SELinux = selinux.Mount{NeedsSameContext: true}
	other.SELinux = selinux.Mount{Context: "u:r:t:s0:c1", NeedsSameContext: true}
	checkConflict := func(pod types.UID, volume string) {
		t.Helper()
		_, err := h.attachVolume(pod, volume, other)
		if e, is := errors.AsType[*selinux.Error](err); !is || e.Kind != selinux.Conflict {
			t.Errorf("pod %s, volume %s: got error %v, want a conflict of labels", pod, volume, err)
		}
	}
	if _, err := h.attach("a", first); err != nil {
		t.Fatal(err)
	}
	checkConflict("b", "data")
	checkConflict("c", "data")
	if err := h.manager().Release(t.Context(), "a"); err != nil || h.count("--logout") != 1 {
		t.Errorf("Release of the first pod: got error %v and %d logouts; want no error and 1 logout", err, h.count("--logout"))
	}
	var source string
	for _, volume := range []string{"data", "logs"} {
		var err error
		if source, err = h.attachVolume("b", volume, other); err != nil {
			t.Fatalf("volume %s after the removal of the first pod: got error %v, want none", volume, err)
		}
	}
	checkConflict("c", "data")
	h.mkdir("bind")
	if err := unix.Mount(source, h.path("bind"), "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	checkConflict("b", "data")
	if err := unix.Unmount(h.path("bind"), 0); err != nil {
		t.Fatal(err)
	}
	for _, pod := range []types.UID{"c", "b"} {
		if err := h.manager().Release(t.Context(), pod); err != nil {
			t.Errorf("Release of pod %s: got error %v, want none", pod, err)
		}
	}
	h.checkClean()
}

// TestRelease_Busy checks Release if another program uses the device. podd must neither delete the
// device nor log out of its session.
func TestRelease_Busy(t *testing.T) {
	h := newFakeHost(t)
	if _, err := h.attach("a", blockVolume()); err != nil {
		t.Fatal(err)
	}
	h.busy = true
	if err := h.manager().Release(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "in use by another program") || h.count("--logout") > 0 {
		t.Errorf("got error %v and %d logouts; want an error and no logout", err, h.count("--logout"))
	}
	h.busy = false
	if err := h.manager().Release(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	h.checkClean()
}

// TestRelease_Multipath checks that the dm-multipath device is used, and removed before its paths.
func TestRelease_Multipath(t *testing.T) {
	h := newFakeHost(t)
	h.mkdir("sys/block/sda/holders/dm-0")
	h.write("sys/block/dm-0/dm/uuid", "mpath-3600\n")
	h.write("dev/dm-0", "")
	if path, err := h.attach("a", blockVolume()); err != nil || path != h.path("dev/dm-0") {
		t.Fatalf("path: got %q (error %v), want that of the multipath device", path, err)
	}
	remove := "multipath -f " + h.path("dev/dm-0")
	h.fail = func(command string) (string, error) {
		if command == remove && h.count(remove) == 1 {
			return "map in use", exitError(1)
		}
		return "", nil
	}
	deleted := func() bool {
		text, _ := os.ReadFile(h.path("sys/block/sda/device/delete"))
		return len(text) > 0
	}
	if err := h.manager().Release(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "map in use") || deleted() {
		t.Errorf("Release while the multipath device is in use: got error %v, path deleted: %t; want an error, path deleted: false", err, deleted())
	}
	if err := h.manager().Release(t.Context(), "a"); err != nil || h.count(remove) != 2 || !deleted() {
		t.Errorf("second Release: got error %v, commands %q, path deleted: %t; want no error, a second command that removes the multipath device, path deleted: true", err, h.commands, deleted())
	}
	h.checkClean()
}

// TestAttach_ForeignSession checks a session that existed before Attach. podd must use it, but must
// not end it.
func TestAttach_ForeignSession(t *testing.T) {
	h := newFakeHost(t)
	h.addSession("sda")
	if _, err := h.attach("a", blockVolume()); err != nil {
		t.Fatal(err)
	}
	if err := h.manager().Release(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if len(h.commands) > 0 {
		t.Errorf("commands: got %q, want none", h.commands)
	}
	if text, err := os.ReadFile(h.path("sys/block/sda/device/delete")); err != nil || len(text) > 0 {
		t.Errorf("content of the file delete of the device: got %q (error %v), want \"\"", text, err)
	}
	if left, _ := filepath.Glob(h.path("disks/*")); len(left) > 0 {
		t.Errorf("records of attached disks: got %q, want none", left)
	}
}

// TestAttach_Interrupted makes each command fail once, as if podd was killed during the command. A
// second call of the failed Attach or Release must succeed. At the end, no record and no session may
// be left.
func TestAttach_Interrupted(t *testing.T) {
	h := newFakeHost(t)
	if _, err := h.attach("a", blockVolume()); err != nil {
		t.Fatal(err)
	}
	if err := h.manager().Release(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for i := range len(h.commands) {
		h := newFakeHost(t)
		h.fail = func(string) (string, error) {
			if len(h.commands) == i+1 {
				return "", errors.New("killed")
			}
			return "", nil
		}
		_, err := h.attach("a", blockVolume())
		if err != nil {
			if _, err := h.attach("a", blockVolume()); err != nil {
				t.Errorf("command %d, %s: second Attach: got error %v, want none", i, h.commands[i], err)
			}
		}
		if err := h.manager().Release(t.Context(), "a"); err != nil {
			if err := h.manager().Release(t.Context(), "a"); err != nil {
				t.Errorf("command %d, %s: second Release: got error %v, want none", i, h.commands[i], err)
			}
		}
		h.checkClean()
	}
}

// TestAttach_CHAP checks that credentials are written to files and are not passed as arguments of
// commands.
func TestAttach_CHAP(t *testing.T) {
	h := newFakeHost(t)
	v := blockVolume()
	v.ISCSI.DiscoveryCHAP, v.ISCSI.SessionCHAP = true, true
	v.Secret = map[string][]byte{
		disk.SessionUser: []byte("user"), disk.SessionPassword: []byte("secret of the session"),
		disk.DiscoveryUser: []byte("finder"), disk.DiscoveryPassword: []byte("secret-of-the-discovery"), "other": []byte("x"),
	}
	var discovery string
	h.fail = func(command string) (string, error) {
		if strings.HasSuffix(command, "--discover") {
			text, err := os.ReadFile(h.path("iscsi/send_targets/192.0.2.1,3260/st_config"))
			discovery = string(text)
			return "", err
		}
		return "", nil
	}
	if _, err := h.attach("a", v); err != nil {
		t.Fatal(err)
	}
	if want := "# BEGIN RECORD\ndiscovery.sendtargets.auth.authmethod = CHAP\ndiscovery.sendtargets.auth.password = secret-of-the-discovery\ndiscovery.sendtargets.auth.username = finder\n# END RECORD\n"; discovery != want {
		t.Errorf("discovery: got %q, want %q", discovery, want)
	}
	session, err := os.ReadFile(h.path("iscsi/nodes/" + targetName + "/192.0.2.1,3260,1/default"))
	if want := "# BEGIN RECORD\nnode.session.auth.authmethod = CHAP\nnode.session.auth.password = secret of the session\nnode.session.auth.username = user\n# END RECORD\n"; err != nil || string(session) != want {
		t.Errorf("session: got %q (error %v), want %q", session, err, want)
	}
	for _, c := range h.commands {
		if strings.Contains(c, "secret") {
			t.Errorf("command %q: got a secret in it, want none", c)
		}
	}
	record, err := filepath.Glob(h.path("disks/*/" + recordName))
	if err != nil || len(record) != 1 {
		t.Fatalf("records: got %v (error %v), want one", record, err)
	}
	if text, err := os.ReadFile(record[0]); err != nil || strings.Contains(string(text), "secret") {
		t.Errorf("record: got %s (error %v), want no secret in it", text, err)
	}
	if err := h.manager().Release(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	h.checkClean()
}

// TestAttach_InvalidCredential checks that a password cannot add settings to a record.
func TestAttach_InvalidCredential(t *testing.T) {
	for name, value := range map[string]string{"a line break": "a\nnode.startup = automatic", "too long": strings.Repeat("a", 256), "a space at the end": "swordfish "} {
		h := newFakeHost(t)
		v := blockVolume()
		v.ISCSI.SessionCHAP, v.Secret = true, map[string][]byte{disk.SessionUser: []byte("user"), disk.SessionPassword: []byte(value)}
		_, err := h.attach("a", v)
		if err == nil || !strings.Contains(err.Error(), disk.SessionPassword) || strings.Contains(err.Error(), value) {
			t.Errorf("%s: got error %v, want one about the key without the value", name, err)
		}
		if h.count("--login") > 0 {
			t.Errorf("%s: got a login, want none", name)
		}
	}
}

// TestAttach_OnePath checks that a disk is attached through one portal if the connection to another
// portal fails.
func TestAttach_OnePath(t *testing.T) {
	h := newFakeHost(t)
	v := blockVolume()
	v.ISCSI.Portals = append([]disk.Portal{{Host: "192.0.2.9", Port: 3260}}, v.ISCSI.Portals...)
	h.fail = func(command string) (string, error) {
		if strings.Contains(command, "192.0.2.9") && !strings.HasSuffix(command, "-o delete") {
			return "iscsiadm: cannot make connection to 192.0.2.9: No route to host", exitError(4)
		}
		return "", nil
	}
	if path, err := h.attach("a", v); err != nil || path != h.path("dev/sda") {
		t.Errorf("path: got %q (error %v), want that of the device at the second portal", path, err)
	}
}

func TestAttach_Errors(t *testing.T) {
	for name, c := range map[string]struct {
		command, output string
		code            int
		want            string
	}{
		"no daemon":         {"--login", "iscsiadm: can not connect to iSCSI daemon (111)!", noDaemon, "start the service iscsid"},
		"wrong credentials": {"--login", "iscsiadm: initiator reported error (24)", authFailed, "check the CHAP credentials"},
		"unknown target":    {"-m discovery ", "192.0.2.1:3260,1 iqn.2001-04.com.example:other\n", 0, "does not offer the target to this initiator, but: 192.0.2.1:3260,1 iqn.2001-04.com.example:other"},
	} {
		h := newFakeHost(t)
		run := h.manager()
		run.Host.Run = func(ctx context.Context, limit time.Duration, p Program, args ...string) (string, error) {
			command := p.Name + " " + strings.Join(args, " ")
			switch {
			case !strings.Contains(command, c.command):
				return h.run(ctx, limit, p, args...)
			case c.code == 0:
				return c.output, nil
			}
			return c.output, exitError(c.code)
		}
		h.mkdir("links")
		links, err := safepath.Open(h.path("links"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = run.Attach(t.Context(), blockVolume(), links, "data")
		links.Close()
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), portalText) {
			t.Errorf("%s: got error %v, want one with %q and the portal", name, err, c.want)
		}
		if left, _ := filepath.Glob(h.path("iscsi/nodes/*/*/*")); len(left) > 0 {
			t.Errorf("%s: got the records %q, want none", name, left)
		}
	}
}

// TestAttach_FC checks that podd scans the Fibre Channel adapters if the disk has no link in
// /dev/disk/by-path yet. It must not scan the adapters of iSCSI sessions.
func TestAttach_FC(t *testing.T) {
	h := newFakeHost(t)
	for _, host := range []string{"host0", "host2"} {
		h.write("sys/class/scsi_host/"+host+"/scan", "")
	}
	h.mkdir("sys/class/iscsi_host/host2")
	h.write("dev/sdb", "")
	h.write("sys/block/sdb/device/delete", "")
	m := h.manager()
	m.Host.Call = func(ctx context.Context, _ time.Duration, subject string, call func(context.Context) error) error {
		if strings.HasSuffix(subject, "/host0/scan") { // the kernel and udev find the disk
			h.mkdir("dev/disk/by-path")
			if err := os.Symlink("../../sdb", h.path("dev/disk/by-path/pci-0000:01:00.0-fc-0x500a0982991b8dc5-lun-2")); err != nil {
				t.Error(err)
			}
		}
		return call(ctx)
	}
	h.mkdir("pods/a/volumes/" + LinksDir)
	links, err := safepath.Open(h.path("pods/a/volumes/" + LinksDir))
	if err != nil {
		t.Fatal(err)
	}
	defer links.Close()
	v := Volume{Block: true, FC: &disk.FC{Targets: []string{"500a0982991b8dc5"}, LUN: 2}}
	if path, err := m.Attach(t.Context(), v, links, "data"); err != nil || path != h.path("dev/sdb") {
		t.Fatalf("path: got %q (error %v), want that of the device", path, err)
	}
	for host, want := range map[string]string{"host0": "- - -", "host2": ""} {
		if text, err := os.ReadFile(h.path("sys/class/scsi_host/" + host + "/scan")); err != nil || string(text) != want {
			t.Errorf("scan of %s: got %q (error %v), want %q", host, text, err, want)
		}
	}
	if err := m.Release(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(h.path("sys/block/sdb/device/delete")); err != nil || string(text) != "1" {
		t.Errorf("content of the file delete of the device: got %q (error %v), want \"1\"", text, err)
	}
	h.checkClean()
}

func TestSelectDevice(t *testing.T) {
	h := newFakeHost(t)
	for _, device := range []string{"sda", "sdb", "dm-0", "dm-1"} {
		h.write("dev/"+device, "")
	}
	h.mkdir("sys/block/sda/holders/dm-0")
	h.write("sys/block/dm-0/dm/uuid", "LVM-x\n")
	h.mkdir("sys/block/sdb/holders/dm-1")
	for uuid, want := range map[string]string{"CRYPT-x": "dev/sda", "mpath-x": "dev/dm-1"} {
		h.write("sys/block/dm-1/dm/uuid", uuid+"\n")
		if got, err := h.manager().Host.selectDevice(t.Context(), []string{"sda", "sdb"}, false); err != nil || got != h.path(want) {
			t.Errorf("device mapper UUID %s: got device %q (error %v), want %s", uuid, got, err, want)
		}
	}
}

func TestMount_Rules(t *testing.T) {
	const mkfs, check, mounted = "mkfs.ext4 -F -m0 /dev/x", "fsck -a /dev/x", "mount -i -t ext4 "
	for name, c := range map[string]struct {
		blkid    string
		code     int // exit code of blkid
		fsckCode int
		volume   Volume
		want     []string // commands after blkid
		err      string
	}{
		"empty disk":            {code: 2, want: []string{mkfs, mounted + "-- /dev/x /mnt"}},
		"empty read-only disk":  {code: 2, volume: Volume{ReadOnly: true}, err: "contains no filesystem"},
		"filesystem":            {blkid: "DEVNAME=/dev/x\nTYPE=ext4\n", want: []string{check, mounted + "-- /dev/x /mnt"}},
		"read-only filesystem":  {blkid: "TYPE=ext4\n", volume: Volume{ReadOnly: true}, want: []string{mounted + "-o ro -- /dev/x /mnt"}},
		"option ro":             {blkid: "TYPE=ext4\n", volume: Volume{MountOptions: []string{"noatime,ro"}}, want: []string{mounted + "-o noatime,ro,ro -- /dev/x /mnt"}},
		"corrected errors":      {blkid: "TYPE=ext4\n", fsckCode: 1, want: []string{check, mounted + "-- /dev/x /mnt"}},
		"uncorrected errors":    {blkid: "TYPE=ext4\n", fsckCode: 4, want: []string{check}, err: "could not correct"},
		"xfs":                   {code: 2, volume: Volume{FSType: "xfs"}, want: []string{"mkfs.xfs -f /dev/x", "mount -i -t xfs -- /dev/x /mnt"}},
		"partitions":            {blkid: "PTTYPE=dos\n", want: []string{check, mounted + "-- /dev/x /mnt"}},
		"unknown data":          {blkid: "DEVNAME=/dev/x\n", want: []string{check, mounted + "-- /dev/x /mnt"}},
		"blkid fails":           {code: 8, err: "detecting the filesystem"},
		"invalid filesystem":    {volume: Volume{FSType: "../x"}, err: "supported values"},
		"invalid mount options": {volume: Volume{MountOptions: []string{"loop"}}, err: "must not contain"},
	} {
		var commands []string
		h := Host{Run: func(_ context.Context, _ time.Duration, p Program, args ...string) (string, error) {
			if p.Name == "blkid" {
				if c.code != 0 {
					return "", exitError(c.code)
				}
				return c.blkid, nil
			}
			commands = append(commands, p.Name+" "+strings.Join(args, " "))
			if p.Name == "fsck" && c.fsckCode != 0 {
				return "", exitError(c.fsckCode)
			}
			return "", nil
		}}
		err := h.mount(t.Context(), "/dev/x", "/mnt", c.volume)
		if !slices.Equal(commands, c.want) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got commands %q and error %v; want commands %q and error %q (\"\": none)", name, commands, err, c.want, c.err)
		}
	}
}

func TestParseName(t *testing.T) {
	for _, v := range []Volume{blockVolume(), {FC: &disk.FC{Targets: []string{"500a0982991b8dc5"}, LUN: 255}}, {FC: &disk.FC{WWIDs: []string{"x"}}}} {
		if n, ok := parseName(v.name().String()); !ok || n != v.name() {
			t.Errorf("got name %v, valid: %t; want %v, valid: true", n, ok, v.name())
		}
	}
	for _, text := range []string{"", "default/claim", "../x", "iscsi-0123/lun-0", "iscsi-" + strings.Repeat("0", 32) + "/../x", "iscsi-" + strings.Repeat("0", 32) + "/lun-0/x"} {
		if n, ok := parseName(text); ok {
			t.Errorf("%q: got %v, want no name", text, n)
		}
	}
}

func TestParseDiscovery(t *testing.T) {
	p := disk.Portal{Host: "2001:db8::1", Port: 3260}
	for output, want := range map[string]string{
		"[2001:db8::1]:3260,2 " + targetName:       "2 true",
		"[2001:DB8:0::1]:3260,2 " + targetName:     "2 true",
		"[2001:db8::2]:3260,2 " + targetName:       " true",
		"[2001:db8::1]:3261,2 " + targetName:       " true",
		"[2001:db8::1]:3260,2;x " + targetName:     " true",
		"[2001:db8::1]:3260,2 " + targetName + "2": " false",
		"":                             " false",
		strings.Repeat("x", maxParsed): " true",
	} {
		group, isOffered := parseDiscovery(output, targetName, p)
		if got := fmt.Sprint(group, " ", isOffered); got != want {
			t.Errorf("%.60q: got %q, want %q", output, got, want)
		}
	}
}

// TestAttach_SELinux checks the label of a mount. The label becomes a mount option. Other pods may
// not use a mount with another label. A mount with another label is replaced if no other pod uses
// it.
func TestAttach_SELinux(t *testing.T) {
	h := newFakeHost(t)
	v := blockVolume()
	v.Block, v.MountOptions, v.SELinux = false, []string{"noatime"}, selinux.Mount{Context: "u:r:t:s0:c1,c2", NeedsSameContext: true}
	path, err := h.attach("a", v)
	if want := `mount -i -t ext4 -o noatime,context="u:r:t:s0:c1,c2" -- ` + h.path("dev/sda") + " " + path; err != nil || h.count(want) != 1 {
		t.Fatalf("got error %v and commands %q; want no error and the command %s once", err, h.commands, want)
	}
	if err := unix.Mount("tmpfs", path, "tmpfs", 0, "size=1m"); err != nil { // a mount without a label
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })
	h.fail = func(command string) (string, error) {
		if strings.HasPrefix(command, "umount ") {
			return "", unix.Unmount(path, 0)
		}
		return "", nil
	}
	plain := v
	plain.SELinux = selinux.Mount{NeedsSameContext: true}
	for _, pod := range []types.UID{"b", "c"} {
		if _, err := h.attach(pod, plain); err != nil {
			t.Errorf("pod without a label: got error %v, want none", err)
		}
	}
	for _, pod := range []types.UID{"a", "d"} {
		if _, err := h.attach(pod, v); err == nil || !strings.Contains(err.Error(), "u:r:t:s0:c1,c2") || h.count("umount ") > 0 {
			t.Errorf("pod %s: got error %v and commands %q; want a conflict and no umount", pod, err, h.commands)
		}
	}
	h.commands = nil
	for _, pod := range []types.UID{"b", "c", "d"} {
		if err := h.manager().Release(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.attach("a", v); err != nil || h.count("umount ") != 1 || h.count(`context="u:r:t:s0:c1,c2"`) != 1 {
		t.Errorf("Attach for the only pod: got error %v and commands %q; want no error, one umount and one mount with the label", err, h.commands)
	}
}
