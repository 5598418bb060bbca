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

// Destroy stops every pod, the runtime and its shims and removes everything that the stack
// has created, on the host too. Other files in Dir stay, but nothing stays mounted below
// it. It continues after an error and can be called again.
func (s *Stack) Destroy(ctx context.Context) error {
	if err := s.attach(); err != nil {
		return err
	}
	var errs []error
	if s.Running() {
		// A graceful removal. What it misses is removed below.
		polite, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if err := s.RemovePods(polite); err != nil {
			s.log.Warn("removing pods through CRI", "err", err)
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

// attach makes this process the owner of the claim, so that no other process takes it for
// stale while the stack is being removed. If the claim was released already, the stack has
// nothing on the host any more.
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
