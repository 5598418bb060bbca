package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"podd/runtime/runtimetest/stack/claim"
)

// processes finds the stack's containerd and shims: programs of that name
// that were started with the path of its configuration or its socket.
func (s *Stack) processes() ([]claim.Owner, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var own []claim.Owner
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		owner, err := claim.Process(pid)
		if err != nil { // it has ended meanwhile
			continue
		}
		cmdline, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && s.isOwn(strings.Split(string(cmdline), "\x00")) && owner.Alive() {
			own = append(own, owner)
		}
	}
	return own, nil
}

func (s *Stack) isOwn(args []string) bool {
	return strings.HasPrefix(filepath.Base(args[0]), "containerd") &&
		(slices.Contains(args, configIn(s.Dir)) || slices.Contains(args, s.Socket()))
}

// shims counts the stack's shims.
func (s *Stack) shims() (int, error) {
	own, err := s.processes()
	return len(slices.DeleteFunc(own, func(o claim.Owner) bool { return o == s.Containerd })), err
}

// endProcesses kills the stack's containerd and shims, with all that runs in
// the shims' containers, and waits for them. A shim may start while its
// containerd dies, so it looks until none is left.
func (s *Stack) endProcesses(ctx context.Context) error {
	for {
		own, err := s.processes()
		if err != nil || len(own) == 0 {
			return err
		}
		inside, err := descendants(own)
		if err != nil {
			return err
		}
		for _, o := range inside {
			s.noteContainers(o)
		}
		for _, o := range append(own, inside...) {
			if err := kill(ctx, o); err != nil {
				return fmt.Errorf("ending process %d of the stack in %s: %w", o.PID, s.Dir, err)
			}
		}
	}
}

// noteContainers remembers the containers of a process, which is in cgroups
// named after them, for when nothing on disk tells of them any more.
func (s *Stack) noteContainers(o claim.Owner) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", o.PID))
	if err != nil { // it has ended, and so removed nothing we look for
		return
	}
	if s.ended == nil {
		s.ended = map[string]bool{}
	}
	for _, id := range containerID.FindAllString(string(data), -1) {
		s.ended[id] = true
	}
}

// containerID is the form of containerd's names for sandboxes and containers.
var containerID = regexp.MustCompile(`\b[0-9a-f]{64}\b`)

func kill(ctx context.Context, o claim.Owner) error {
	p, err := adopt(o)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer p.close()
	return p.end(ctx, unix.SIGKILL, 10*time.Second)
}
