package stack

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"

	"podd/runtime/runtimetest/stack/reservation"
)

// Reap destroys the stacks of processes that were killed, and detached stacks without a state
// file. Start calls Reap first. Several processes may call Reap concurrently: each stack is
// destroyed by only one of them.
func Reap(ctx context.Context, log *slog.Logger) error {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	reservations, err := reservationTable().All()
	if err != nil {
		return err
	}
	self, err := reservation.CurrentProcess()
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range reservations {
		isOwner, err := reservationTable().TakeOver(r, self)
		if isOwner && err == nil {
			err = destroyStale(ctx, r, log)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// destroyStale destroys the stack of a reservation that this process has taken over.
func destroyStale(ctx context.Context, r reservation.Reservation, log *slog.Logger) error {
	log.Info("removing the test runtime that an exited process has left behind", "dir", r.Dir, "subnet", r.Subnet)
	s, err := staleStack(r, log)
	if err != nil {
		return err
	}
	return s.Destroy(ctx)
}

// staleStack returns the stack of a stale reservation. If the stack has a state file, the result
// contains the state in this file. staleStack does not open the process of the runtime,
// because Destroy finds the process by its command line.
func staleStack(r reservation.Reservation, log *slog.Logger) (*Stack, error) {
	s := &Stack{state: state{Dir: r.Dir, Reservation: r}, log: log}
	saved, err := readState(r.Dir)
	if errors.Is(err, fs.ErrNotExist) { // Start was killed before it wrote the file, or the directory was removed
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	if saved.Reservation.Number == r.Number { // with another number, the file belongs to a later stack in the same directory
		s.state = saved
	}
	return s, nil
}
