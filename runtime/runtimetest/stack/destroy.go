package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"podd/runtime/runtimetest/stack/claim"
)

// Destroy stops every pod, the runtime and its shims, and removes everything that the stack has
// created, also on the host. Other files in Dir remain, but nothing stays mounted below it. It
// continues after an error and can be called again.
func (s *Stack) Destroy(ctx context.Context) error {
	if err := s.attach(); err != nil {
		return err
	}
	var errs []error
	if s.Running() {
		// Remove pods through CRI first. Anything that this misses is removed below.
		graceful, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if err := s.RemovePods(graceful); err != nil {
			s.log.Warn("removing pods through CRI failed; killing their processes", "err", err)
		}
	}
	errs = append(errs, s.Stop(ctx), s.endProcesses(ctx), killIn(ctx, s.ownCgroups()))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing the stack in %s: %w", s.Dir, err) // the rest is still in use
	}
	errs = append(errs, removeCgroups(s.ownCgroups()), unmountBelow(s.Dir))
	if s.claimed() {
		errs = append(errs, removeBridge(s.Claim.Bridge()), removeRules(ctx, s.subnets()), removeElements(ctx, s.subnets()), s.removeShared())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing the stack in %s: %w", s.Dir, err)
	}
	return s.removeFiles()
}

// attach makes this process the owner of the claim, so that no other process considers the
// claim stale while the stack is being removed. If the claim was already released, nothing of
// the stack is left on the host.
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

// removeFiles removes the directories and then releases the claim, which comes last because
// Reap needs it to find the rest. Nothing is mounted below Dir.
func (s *Stack) removeFiles() error {
	paths := []string{s.own()}
	// CRI-O creates a directory next to its socket.
	paths = append(paths, filepath.Join(s.Dir, "seccomp"))
	for _, f := range flavors {
		paths = append(paths, socketIn(s.Dir, f), socketIn(s.Dir, f)+".ttrpc")
	}
	if s.claimed() {
		paths = append(paths, s.shimSockets())
	}
	for _, p := range paths {
		if err := os.RemoveAll(p); err != nil {
			return fmt.Errorf("removing the stack in %s: %w", s.Dir, err)
		}
	}
	_ = os.Remove(s.Dir) // fails if it has other files
	if !s.claimed() {
		return nil
	}
	return claims().Release(s.Claim)
}
