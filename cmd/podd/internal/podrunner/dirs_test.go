package podrunner

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestDirs_Dead checks that a run is dead if its process has ended, even if another
// process has the same ID.
func TestDirs_Dead(t *testing.T) {
	p := Dirs{Root: t.TempDir()}
	if dead, err := p.Dead(); err != nil || dead != nil {
		t.Errorf("no runs: got %v, %v", dead, err)
	}
	alive, err := p.Create(NewSuffix())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Create(filepath.Base(alive)[len(filepath.Base(alive))-10:]); err == nil {
		t.Error("second create with the same suffix: got no error")
	}
	start, err := startTime(os.Getpid())
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
	began, beganErr := startTime(zombie.Process.Pid)
	if _, err := out.Read(make([]byte, 1)); err == nil {
		t.Fatal("true wrote to stdout")
	}
	for {
		if _, err := startTime(zombie.Process.Pid); err != nil {
			break // the process has ended, and Wait has not been called
		}
	}
	defer zombie.Wait()
	names := []string{
		fmt.Sprintf("%d-%d-other", os.Getpid(), start+1),
		"999999999-1-dead",
		"not-a-run",
		"1-x-y",
	}
	want := []string{filepath.Join(p.dir(), names[1]), filepath.Join(p.dir(), names[0])}
	if beganErr == nil { // the process had not ended yet
		names = append(names, fmt.Sprintf("%d-%d-zombie", zombie.Process.Pid, began))
		want = append(want, filepath.Join(p.dir(), names[len(names)-1]))
	}
	for _, name := range names {
		if err := os.Mkdir(filepath.Join(p.dir(), name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(p.dir(), "999999998-1-file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := p.Dead()
	slices.Sort(got)
	slices.Sort(want)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}
