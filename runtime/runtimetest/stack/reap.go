package stack

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"

	"podd/runtime/runtimetest/stack/claim"
)

// Reap destroys the stacks whose process was killed before it could, and
// detached ones whose state somebody removed. Start does it first. Any number
// of processes may do it at once: each stack is destroyed by one of them.
func Reap(ctx context.Context, log *slog.Logger) error {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	all, err := claims().All()
	if err != nil {
		return err
	}
	self, err := claim.Self()
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range all {
		mine, err := claims().TakeOver(c, self)
		if mine && err == nil {
			err = reap(ctx, c, log)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func reap(ctx context.Context, c claim.Claim, log *slog.Logger) error {
	log.Info("removing a stack that was left behind", "dir", c.Dir, "subnet", c.Subnet)
	s, err := leftBehind(c, log)
	if err != nil {
		return err
	}
	return s.Destroy(ctx)
}

// leftBehind is the stack of a stale claim, as much of it as is still known.
// Its process is not taken over: Destroy finds it among the others.
func leftBehind(c claim.Claim, log *slog.Logger) (*Stack, error) {
	s := &Stack{state: state{Dir: c.Dir, Claim: c}, log: log}
	saved, err := readState(c.Dir)
	if errors.Is(err, fs.ErrNotExist) { // killed before it started containerd, or removed
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	if saved.Claim.Number == c.Number { // else a later stack took the directory
		s.state = saved
	}
	return s, nil
}
