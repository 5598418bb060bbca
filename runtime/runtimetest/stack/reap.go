package stack

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"

	"podd/runtime/runtimetest/stack/claim"
)

// Reap destroys the stacks of processes that were killed, and detached stacks without a state
// file. Start calls Reap first. Several processes may call Reap concurrently: each stack is
// destroyed by only one of them.
func Reap(ctx context.Context, log *slog.Logger) error {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	all, err := claimTable().All()
	if err != nil {
		return err
	}
	self, err := claim.CurrentProcess()
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range all {
		mine, err := claimTable().TakeOver(c, self)
		if mine && err == nil {
			err = destroyStale(ctx, c, log)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// destroyStale destroys the stack of a claim that this process has taken over.
func destroyStale(ctx context.Context, c claim.Claim, log *slog.Logger) error {
	log.Info("removing the stack of a process that has exited", "dir", c.Dir, "subnet", c.Subnet)
	s, err := staleStack(c, log)
	if err != nil {
		return err
	}
	return s.Destroy(ctx)
}

// staleStack returns the stack of a stale claim. If the stack has a state file, the result
// contains the state in this file. staleStack does not open the process of the runtime,
// because Destroy finds the process by its command line.
func staleStack(c claim.Claim, log *slog.Logger) (*Stack, error) {
	s := &Stack{state: state{Dir: c.Dir, Claim: c}, log: log}
	saved, err := readState(c.Dir)
	if errors.Is(err, fs.ErrNotExist) { // Start was killed before it wrote the file, or the directory was removed
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	if saved.Claim.Number == c.Number { // with another number, the file belongs to a later stack in the same directory
		s.state = saved
	}
	return s, nil
}
