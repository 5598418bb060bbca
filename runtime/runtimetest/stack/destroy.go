package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"podd/runtime/runtimetest/stack/reservation"
)

// Destroy stops every pod, the runtime and its shims, and removes everything that the stack has
// created, also outside Dir. Other files in Dir remain, but nothing stays mounted below Dir.
// After an error, Destroy continues. Destroy can be called again.
func (s *Stack) Destroy(ctx context.Context) error {
	if err := s.becomeOwner(); err != nil {
		return err
	}
	var errs []error
	if s.IsRunning() {
		// Remove pods through CRI first. The steps below remove what remains.
		gracefulCtx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if err := s.RemovePods(gracefulCtx); err != nil {
			s.log.Warn("removing pods through CRI failed; killing their processes", "err", err)
		}
	}
	errs = append(errs, s.Stop(ctx), s.killProcesses(ctx), killInCgroups(ctx, s.matchOwnCgroups()))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing the stack in %s: %w", s.Dir, err) // keep the files, because they are still in use
	}
	errs = append(errs, removeCgroups(s.matchOwnCgroups()), unmountBelow(s.Dir))
	if s.hasReservation() {
		errs = append(errs, removeBridge(s.Reservation.Bridge()), removeRules(ctx, s.subnets()), removeElements(ctx, s.subnets()), s.removeShared())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing the stack in %s: %w", s.Dir, err)
	}
	return s.removeFiles()
}

// becomeOwner makes this process the owner of the reservation, so that no other process considers
// the reservation stale while this process removes the stack. If the reservation was already
// released, all objects of the stack outside Dir have been removed.
func (s *Stack) becomeOwner() error {
	self, err := reservation.CurrentProcess()
	if err != nil || !s.hasReservation() {
		return err
	}
	isReserved, err := reservationTable().SetOwner(s.Reservation, self)
	if err == nil && !isReserved {
		s.Reservation = reservation.Reservation{}
	}
	return err
}

// removeFiles removes the directories and then releases the reservation. The reservation is
// released last, because Reap needs the reservation to find directories that were not removed.
// Nothing may be mounted below Dir.
func (s *Stack) removeFiles() error {
	paths := []string{s.privateDir()}
	// Remove the directory that CRI-O creates next to its socket.
	paths = append(paths, filepath.Join(s.Dir, "seccomp"))
	for _, f := range flavors {
		paths = append(paths, socketIn(s.Dir, f), socketIn(s.Dir, f)+".ttrpc")
	}
	if s.hasReservation() {
		paths = append(paths, s.shimSockets())
	}
	for _, p := range paths {
		if err := os.RemoveAll(p); err != nil {
			return fmt.Errorf("removing the stack in %s: %w", s.Dir, err)
		}
	}
	_ = os.Remove(s.Dir) // ignore the error, because Remove fails if the directory contains other files, which must remain
	if !s.hasReservation() {
		return nil
	}
	return reservationTable().Release(s.Reservation)
}
