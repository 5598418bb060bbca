package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// Open takes over a stack in dir that another process has started. log may be nil. The error is
// fs.ErrNotExist if dir contains no stack. It is also fs.ErrNotExist if the host was rebooted since
// the stack was started; in this case, Start removes the files.
func Open(dir string, log *slog.Logger) (*Stack, error) {
	if err := requireRoot(); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the stack: %w", err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Stack{log: log}
	if s.state, err = readState(dir); err != nil {
		return nil, err
	}
	isReserved, err := reservationTable().Contains(s.Reservation)
	if err != nil {
		return nil, err
	}
	if !isReserved {
		return nil, fmt.Errorf("opening the stack in %s: no stack has run there since the host was booted: %w", dir, fs.ErrNotExist)
	}
	if s.Daemon.IsAlive() {
		s.process, err = openProcess(s.Daemon)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return s, nil
}

// readState reads the state file of the stack in dir. The error is fs.ErrNotExist if there is no
// file.
func readState(dir string) (state, error) {
	data, err := os.ReadFile(stateFile(dir))
	if err != nil {
		return state{}, fmt.Errorf("reading the state of the stack in %s: %w", dir, err)
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return state{}, fmt.Errorf("decoding %s: %w", stateFile(dir), err)
	}
	if s.Dir != dir {
		return state{}, fmt.Errorf("reading the state of the stack in %s: the stack was started in %s and cannot be moved", dir, s.Dir)
	}
	return s, nil
}

// removeOldStack removes the files of a stack in dir that was started before a reboot. If the stack
// still exists, removeOldStack returns an error.
func removeOldStack(ctx context.Context, dir string, log *slog.Logger) error {
	_, err := Open(dir, log)
	if err == nil {
		return fmt.Errorf("starting a stack in %s: a stack exists; open or destroy it", dir)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Reservations do not survive a reboot. If there is a reservation with the number of the old
	// stack, it belongs to another stack. Therefore the Stack below has no reservation.
	return (&Stack{state: state{Dir: dir}, log: log}).Destroy(ctx)
}

// IsRunning reports whether the runtime runs.
func (s *Stack) IsRunning() bool { return s.process != nil && s.Daemon.IsAlive() }
