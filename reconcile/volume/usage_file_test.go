package volume

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// diskSpace returns the disk space of a file in bytes.
func diskSpace(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Lstat(path, &st))
	return st.Blocks * 512
}

// TestWriteHosts_Mounted checks that a container that has mounted the hosts file can read the text
// of a later WriteHosts. FileUsage must still measure the file to which the container writes.
func TestWriteHosts_Mounted(t *testing.T) {
	d := newDir(t)
	path, err := d.WriteHosts(uid, "127.0.0.1 localhost\n10.0.0.1 web\n")
	must(t, err)
	mounted := filepath.Join(t.TempDir(), "hosts")
	must(t, os.WriteFile(mounted, nil, 0o600))
	bindMount(t, path, mounted)
	must(t, os.WriteFile(mounted, make([]byte, 1<<20), 0))
	_, err = d.WriteHosts(uid, "10.0.0.2 web\n")
	must(t, err)
	if text, err := os.ReadFile(mounted); err != nil || string(text) != "10.0.0.2 web\n" {
		t.Errorf("mounted file: got %d bytes, error %v; want the new text", len(text), err)
	}
	must(t, os.WriteFile(mounted, make([]byte, 2<<20), 0))
	if u, err := d.FileUsage(uid); err != nil || u.Hosts.Bytes != diskSpace(t, mounted) || u.Hosts.Bytes < 2<<20 {
		t.Errorf("FileUsage: got %+v, error %v; want the 2 MiB that a container wrote", u, err)
	}
}

// TestFileUsage checks that FileUsage measures regular files and returns an error for links that a
// container may have created.
func TestFileUsage(t *testing.T) {
	d := newDir(t)
	if u, err := d.FileUsage(uid); err != nil || u.Hosts.Bytes != 0 || len(u.Messages) > 0 {
		t.Errorf("without a directory: got %+v, error %v; want no usage", u, err)
	}
	hosts, err := d.WriteHosts(uid, "127.0.0.1 localhost\n")
	must(t, err)
	for attempt, size := range []int{1 << 20, 2 << 20} {
		path, err := d.CreateMessageFile(uid, "main", uint32(attempt))
		must(t, err)
		must(t, os.WriteFile(path, make([]byte, size), 0))
	}
	sparse, err := d.CreateMessageFile(uid, "side", 0)
	must(t, err)
	must(t, os.Truncate(sparse, 1<<40))
	// A container with the pod's directory as a hostPath can create these files.
	planted := filepath.Join(d.Root, uid, containersDir, "planted")
	must(t, os.Mkdir(planted, 0o755))
	must(t, os.Symlink("/", filepath.Join(planted, "link")))
	must(t, unix.Mkfifo(filepath.Join(planted, "fifo"), 0o600))
	must(t, os.WriteFile(filepath.Join(planted, "file"), make([]byte, 1<<20), 0o600))
	must(t, os.Symlink("/", filepath.Join(d.Root, uid, containersDir, "dirlink")))
	u, err := d.FileUsage(uid)
	if err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("got error %v, want one about the link", err)
	}
	if u.Hosts.Bytes != diskSpace(t, hosts) || u.Messages["main"].Bytes != 3<<20 || u.Messages["main"].Inodes != 2 ||
		u.Messages["side"].Bytes > 64<<10 || u.Messages["planted"].Bytes != 1<<20 {
		t.Errorf("got %+v, want the space of the hosts file, 3 MiB in 2 files of main, little of side, and 1 MiB of planted", u)
	}
	if _, err := d.FileUsage("../x"); err == nil {
		t.Error("FileUsage with UID ../x: got no error, want one")
	}
}

// TestRelease_Files checks that Release frees the disk space of the hosts file and of termination
// messages, and keeps the end of each message.
func TestRelease_Files(t *testing.T) {
	d := newDir(t)
	hosts, err := d.WriteHosts(uid, "127.0.0.1 localhost\n")
	must(t, err)
	must(t, os.WriteFile(hosts, make([]byte, 4<<20), 0))
	long, err := d.CreateMessageFile(uid, "main", 7)
	must(t, err)
	must(t, os.WriteFile(long, []byte(strings.Repeat("x", 4<<20)+"the end"), 0))
	short, err := d.CreateMessageFile(uid, "side", 0)
	must(t, err)
	must(t, os.WriteFile(short, []byte("no disk"), 0))
	want, err := d.ReadMessage(uid, "main", 7)
	must(t, err)
	must(t, d.Release(t.Context(), uid))
	u, err := d.FileUsage(uid)
	if err != nil || u.Hosts.Bytes != 0 || u.Messages["main"].Bytes > 16<<10 {
		t.Errorf("FileUsage after Release: got %+v, error %v; want no hosts file and at most 16 KiB for main", u, err)
	}
	if got, err := d.ReadMessage(uid, "main", 7); err != nil || got != want || !strings.HasSuffix(got, "the end") {
		t.Errorf("long message after Release: got %d bytes, error %v; want %d", len(got), err, len(want))
	}
	if got, err := d.ReadMessage(uid, "side", 0); err != nil || got != "no disk" {
		t.Errorf("short message after Release: got %q, error %v; want \"no disk\"", got, err)
	}
}
