package cgroup

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// A member is a process in a cgroup of a test.
type member struct {
	pid    int
	exited chan struct{} // closed when the process has exited
}

// newMember starts a process and moves it to the cgroup dir in all hierarchies that accept it.
func newMember(t *testing.T, points []string, dir string) *member {
	t.Helper()
	mkdir(t, points, dir)
	program := exec.Command("sleep", "1000")
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	m := &member{pid: program.Process.Pid, exited: make(chan struct{})}
	go func() {
		_ = program.Wait() // returns an error, because the process is killed
		close(m.exited)
	}()
	t.Cleanup(func() {
		_ = program.Process.Kill() // fails if the process has exited
		<-m.exited
	})
	accepted := 0
	for _, p := range points {
		if os.WriteFile(filepath.Join(p, dir, "cgroup.procs"), []byte(strconv.Itoa(m.pid)), 0) == nil {
			accepted++
		}
	}
	if accepted == 0 {
		t.Fatalf("no hierarchy of %v accepts a process", points)
	}
	return m
}

// hasExited reports whether the process has exited.
func (m *member) hasExited() bool {
	select {
	case <-m.exited:
		return true
	default:
		return false
	}
}

// TestKillContainers checks with both versions of cgroups that only the processes of the given containers
// are killed, and that remaining processes in the cgroup of the pod are an error.
func TestKillContainers(t *testing.T) {
	root, all := newTestRoot(t)
	versions := map[string][]string{}
	for _, point := range all {
		version := "v1"
		if _, err := os.Stat(filepath.Join(point, root, "cgroup.kill")); err == nil {
			version = "v2"
		}
		versions[version] = append(versions[version], point)
	}
	for version, points := range versions {
		t.Run(version, func(t *testing.T) {
			podUID := types.UID(uid + version)
			pod := root + "/kubepods/burstable/pod" + string(podUID)
			own := []*member{
				newMember(t, points, pod+"/0123"), newMember(t, points, pod+"/cri-containerd-4567.scope"), newMember(t, points, pod+"/crio-4567/nested/deep"),
			}
			others := []*member{
				newMember(t, points, pod+"/89ab"), newMember(t, points, pod+"/crio-conmon-0123.scope"), newMember(t, points, pod+"/90123"),
				newMember(t, points, root+"/kubepods/burstable/podother/0123"), newMember(t, points, root+"/0123"),
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				for _, m := range own {
					<-m.exited
				}
				cancel()
			}()
			ids := []string{"0123", "4567", ""}
			if found, err := KillContainers(ctx, root, podUID, ids, false); !found || !errors.Is(err, context.Canceled) {
				t.Fatalf("a pod with other processes: got found %t, error %v; want found true, error %v", found, err, context.Canceled)
			}
			ctx, cancel = context.WithTimeout(t.Context(), 0)
			defer cancel()
			if _, err := KillContainers(ctx, root, podUID, ids, false); err == nil || !strings.Contains(err.Error(), ": 3 processes remain in ") {
				t.Errorf("a pod with 3 other processes, after the deadline: got error %v, want one that counts them", err)
			}
			for i, m := range others {
				if m.hasExited() {
					t.Errorf("process %d of others: got it killed, want it running", i)
				}
			}
			if _, err := KillContainers(t.Context(), root, podUID, []string{"89ab", "90123", "crio-conmon-0123"}, false); err != nil {
				t.Errorf("all processes of the pod: got error %v, want none", err)
			}
			for i, m := range others {
				if i < 3 {
					<-m.exited
				} else if m.hasExited() {
					t.Errorf("process %d outside the cgroup of the pod: got it killed, want it running", i)
				}
			}
			if found, err := KillContainers(t.Context(), root, podUID, ids, false); !found || err != nil {
				t.Errorf("a pod whose processes have exited: got found %t, error %v; want found true, no error", found, err)
			}
		})
	}
}

// TestKillContainers_NoCgroup checks the errors for a pod whose containers have no cgroup that podd can
// find, and for a UID that is not safe in a path. If an earlier call has found the containers, only the
// UID is an error.
func TestKillContainers_NoCgroup(t *testing.T) {
	root, points := newTestRoot(t)
	const emptyUID = "e" + uid
	mkdir(t, points, root+"/kubepods/burstable/pod"+emptyUID+"/4567")
	for podUID, want := range map[types.UID]string{uid: "the pod has no cgroup", emptyUID: "the cgroup of the pod contains no cgroup of a container", "../" + uid: "cannot be part of a cgroup name"} {
		if found, err := KillContainers(t.Context(), root, podUID, []string{"0123"}, false); found || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("pod %s: got found %t, error %v; want found false, error %q", podUID, found, err, want)
		}
		isValid := podUID == uid || podUID == emptyUID
		if found, err := KillContainers(t.Context(), root, podUID, []string{"0123"}, true); found || isValid != (err == nil) {
			t.Errorf("pod %s whose containers were found earlier: got found %t, error %v; want found false, error only for a UID that is not valid", podUID, found, err)
		}
	}
}
