package podrunner

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"podd/cmd/podd/internal/rootdir"
)

// TestDirs_ListDead checks that ListDead returns the runs of processes that have exited, even if another
// process now has the same process ID, or the process is a zombie.
func TestDirs_ListDead(t *testing.T) {
	p := Dirs{Root: t.TempDir()}
	if dead, err := p.ListDead(); err != nil || dead != nil {
		t.Errorf("no runs: got %v, error %v; want nil", dead, err)
	}
	alive, err := p.CreateRun(NewSuffix())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.CreateRun(filepath.Base(alive)[len(filepath.Base(alive))-10:]); err == nil {
		t.Error("second CreateRun with the same suffix: got no error, want one")
	}
	start, err := processStartTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	zombie := exec.Command("true")
	out, err := zombie.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := zombie.Start(); err != nil {
		t.Fatal(err)
	}
	zombieStart, startErr := processStartTime(zombie.Process.Pid)
	if _, err := out.Read(make([]byte, 1)); err == nil {
		t.Fatal("true wrote to stdout")
	}
	for {
		if _, err := processStartTime(zombie.Process.Pid); err != nil {
			break // the process has exited and is a zombie, because Wait has not been called
		}
	}
	defer zombie.Wait()
	names := []string{
		fmt.Sprintf("%d-%d-other", os.Getpid(), start+1),
		"999999999-1-dead",
		"not-a-run",
		"1-x-y",
	}
	want := []string{filepath.Join(rootdir.RunsPath(p.Root), names[1]), filepath.Join(rootdir.RunsPath(p.Root), names[0])}
	if startErr == nil { // the process had not exited before its start time was read
		names = append(names, fmt.Sprintf("%d-%d-zombie", zombie.Process.Pid, zombieStart))
		want = append(want, filepath.Join(rootdir.RunsPath(p.Root), names[len(names)-1]))
	}
	for _, name := range names {
		if err := os.Mkdir(filepath.Join(rootdir.RunsPath(p.Root), name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(rootdir.RunsPath(p.Root), "999999998-1-file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := p.ListDead()
	slices.Sort(got)
	slices.Sort(want)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got dead runs %v, error %v; want %v", got, err, want)
	}
}
