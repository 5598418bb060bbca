package stats

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/cadvisor/lib/container/libcontainer"
	"github.com/google/cadvisor/lib/model"
)

// TestProcesses checks the processes of a cgroup and of its child, and that both are in the list of all
// processes. A process can choose a name that looks like other fields in /proc/PID/stat.
func TestProcesses(t *testing.T) {
	mounts, err := libcontainer.GetCgroupSubsystems(basicMetrics)
	if err != nil {
		t.Fatal(err)
	}
	parent := fmt.Sprintf("/podd-processes-%d", os.Getpid())
	child := parent + "/child"
	for _, name := range []string{parent, child} {
		for _, mount := range mounts {
			dir := filepath.Join(mount, name)
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := os.Remove(dir); err != nil {
					t.Error(err)
				}
			})
		}
	}
	program := filepath.Join(t.TempDir(), "a) S 1 \xff")
	if err := os.Symlink("/bin/cat", program); err != nil {
		t.Fatal(err)
	}
	pids := map[string]int{}
	for _, name := range []string{parent, child} {
		c := exec.Command(program)
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			c.Process.Kill()
			c.Wait()
		})
		pids[name] = c.Process.Pid
		// A process that has just started has no RSS yet, so wait until it has copied its input.
		if _, err := in.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		for _, mount := range mounts {
			if err := os.WriteFile(filepath.Join(mount, name, "cgroup.procs"), []byte(strconv.Itoa(c.Process.Pid)), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := New(Options{})
	check := func(p *model.ProcessInfo, pid int, path string) {
		t.Helper()
		if p.Pid != pid || p.Ppid != os.Getpid() || p.Cmd != `a) S 1 \xff` || p.User != "root" || p.RSS == 0 || p.VirtualSize < p.RSS || p.FdCount < 3 || p.CgroupPath != path {
			t.Errorf("got %+v, want process %d of root in cgroup %q, with its name and its memory", p, pid, path)
		}
		if _, err := time.Parse("15:04", p.StartTime); err != nil || p.RunningTime != "00:00:00" {
			t.Errorf("got start time %s and running time %s; want a time of today and no time", p.StartTime, p.RunningTime)
		}
	}
	for name, pid := range pids {
		got, err := s.Processes(t.Context(), name)
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: got %+v, error %v; want one process", name, got, err)
		}
		check(&got[0], pid, "")
	}
	all, err := s.Processes(t.Context(), "/")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for i := range all {
		for name, pid := range pids {
			if all[i].Pid == pid {
				check(&all[i], pid, name)
				found++
			}
		}
	}
	if found != 2 {
		t.Errorf("all processes: got %d of the started processes among them, want 2", found)
	}
	if _, err := s.Processes(t.Context(), parent+"/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing cgroup: got error %v, want not exist", err)
	}
}

// TestProcesses_Format compares times and shares with the columns of ps.
func TestProcesses_Format(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 30, 0, 0, time.UTC)
	for at, want := range map[time.Time]string{
		now.Add(-time.Hour): "11:30", now.Add(-24 * time.Hour): "Mar03", now.AddDate(-1, 0, 0): "2025",
	} {
		if got := startTime(at, now); got != want {
			t.Errorf("process started at %v: got %s, want %s", at, got, want)
		}
	}
	for used, want := range map[time.Duration]string{
		1999 * time.Millisecond: "00:00:01", 3*time.Hour + 4*time.Minute + 5*time.Second: "03:04:05", 49 * time.Hour: "02-01:00:00",
	} {
		if got := runningTime(used); got != want {
			t.Errorf("processor time %v: got %s, want %s", used, got, want)
		}
	}
	if a, b, c := percent(1, 3), percent(5, 1), percent(1, 0); a != 33.3 || b != 500 || c != 0 {
		t.Errorf("shares in percent: got %v, %v and %v; want 33.3, 500 and 0", a, b, c)
	}
	r := processReader{users: map[uint32]string{}}
	if root, unknown := r.userName(0), r.userName(4123456789); root != "root" || unknown != "4123456789" {
		t.Errorf("users 0 and 4123456789: got %s and %s; want \"root\" and \"4123456789\"", root, unknown)
	}
}

// TestFilesystems checks that every file system has a mount point, and that a UUID selects one file
// system.
func TestFilesystems(t *testing.T) {
	s := New(Options{})
	all, err := s.Filesystems("")
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range all {
		if f.Device == "" || f.Mountpoint == "" || f.Capacity < f.Usage || i > 0 && all[i-1].Device >= f.Device {
			t.Errorf("got %+v after %+v; want a device with a mount point and its usage, sorted by device", f, all[max(i-1, 0)])
		}
		for _, label := range f.Labels {
			if label == "root" && f.Mountpoint != "/" {
				t.Errorf("file system with the label root: got mount point %s, want /", f.Mountpoint)
			}
		}
	}
	for _, uuid := range []string{"none", "../by-uuid", "\x00"} {
		if got, err := s.Filesystems(uuid); err != nil || len(got) > 0 {
			t.Errorf("UUID %q: got %+v, error %v; want no file system", uuid, got, err)
		}
	}
}
