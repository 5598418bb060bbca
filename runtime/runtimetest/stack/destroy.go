package stack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"podd/runtime/runtimetest/stack/claim"
)

// Destroy ends every pod, containerd and its shims and takes away all that
// the stack made, on the host too. What else lies in Dir stays, but nothing
// stays mounted below it. It goes on after an error and can be called again.
func (s *Stack) Destroy(ctx context.Context) error {
	if err := s.attach(); err != nil {
		return err
	}
	var errs []error
	if s.Running() {
		// Only the polite way: what it misses is swept below.
		if err := s.RemovePods(ctx); err != nil {
			s.log.Warn("removing pods through CRI", "err", err)
		}
	}
	errs = append(errs, s.Stop(ctx), s.deleteContainers(ctx), s.endProcesses(ctx))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing the stack in %s: %w", s.Dir, err) // the rest is still in use
	}
	errs = append(errs, removeCgroups(s.ownCgroups()), unmountBelow(s.Dir))
	if s.claimed() {
		errs = append(errs, removeBridge(s.Claim.Bridge()), removeRules(ctx, s.subnets()), s.removeShared())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing the stack in %s: %w", s.Dir, err)
	}
	return s.removeFiles()
}

// attach makes this process the owner of the claim, so that none takes it for
// stale while half of the stack is gone. Of a claim that was released already
// nothing on the host is the stack's any more.
func (s *Stack) attach() error {
	self, err := claim.Self()
	if err != nil || !s.claimed() {
		return err
	}
	held, err := claims().SetOwner(s.Claim, self)
	if err == nil && !held {
		s.Claim = claim.Claim{}
	}
	return err
}

// deleteContainers ends what runc still knows of, as when containerd was
// killed. It ends the containers' processes, however many they are.
func (s *Stack) deleteContainers(ctx context.Context) error {
	root := filepath.Join(s.own(), "runc", "k8s.io")
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing containers: %w", err)
	}
	var errs []error
	for _, e := range entries {
		out, err := exec.CommandContext(ctx, s.Tools.Runc, "--root", root, "delete", "--force", e.Name()).CombinedOutput()
		if err != nil && !strings.Contains(string(out), "does not exist") {
			errs = append(errs, fmt.Errorf("deleting container %s: %w: %s", e.Name(), err, out))
		}
	}
	return errors.Join(errs...)
}

// removeFiles removes the directories and gives the claim back, last, since
// the claim is what leads Reap to the rest. Nothing is mounted below Dir.
func (s *Stack) removeFiles() error {
	paths := []string{s.own(), s.Socket(), s.Socket() + ".ttrpc"}
	if s.claimed() {
		paths = append(paths, s.shimSockets())
	}
	for _, p := range paths {
		if err := os.RemoveAll(p); err != nil {
			return fmt.Errorf("removing the stack in %s: %w", s.Dir, err)
		}
	}
	_ = os.Remove(s.Dir) // stays if others keep something in it
	if !s.claimed() {
		return nil
	}
	return claims().Release(s.Claim)
}
