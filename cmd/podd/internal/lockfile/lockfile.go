// Package lockfile implements the flags --lock-file and --exit-on-lock-contention of the kubelet.
// With these flags, a podd that runs on the host can start the control plane and then give way to a
// node agent that runs in a pod: the agent opens the lock file, podd exits, and the agent obtains
// the lock.
package lockfile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"podd/runtime/flock"
)

// pollInterval is the interval at which Hold tries to lock a file that another process has locked.
const pollInterval = 100 * time.Millisecond

// Options are the options of Hold.
type Options struct {
	Path string // path of the lock file; "" means that there is none
	// ExitOnContention is set if Hold cancels the context of run when another process opens or
	// removes the lock file.
	ExitOnContention bool
	Log              *slog.Logger
}

// Hold creates the lock file if necessary, waits until no other process has locked it, and calls
// run. It holds the lock until run returns. Without a lock file, it only calls run. Hold returns the
// error of run, or ctx.Err() if ctx is done before run starts.
func Hold(ctx context.Context, o Options, run func(context.Context) error) error {
	if o.Path == "" {
		return run(ctx)
	}
	f, err := open(o.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	if !o.ExitOnContention {
		if err := o.lock(ctx, f); err != nil {
			return err
		}
		return run(ctx)
	}
	// The watch starts before the file is locked. Otherwise a process that opens the file in
	// between would wait for the lock forever.
	w, err := watch(f)
	if err != nil {
		return fmt.Errorf("watching the lock file %s: %w", o.Path, err)
	}
	defer w.close()
	if err := o.lock(ctx, f); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.start(func(err error) {
		if err != nil {
			o.Log.Error("watching the lock file failed; podd stops", "path", o.Path, "err", err)
		} else {
			o.Log.Info("another process opened or removed the lock file; podd stops", "path", o.Path)
		}
		cancel()
	})
	return run(ctx)
}

// open opens the lock file and creates it if necessary. It rejects a file of another user, because
// that user could keep podd from starting.
func open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock file of --lock-file: %w", err)
	}
	if err := checkFile(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("opening the lock file %s of --lock-file: %w", path, err)
	}
	return f, nil
}

// checkFile returns an error unless f is a regular file of the user that runs podd.
func checkFile(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file; use another path")
	}
	if uid := info.Sys().(*syscall.Stat_t).Uid; int(uid) != os.Geteuid() {
		return fmt.Errorf("owned by the user with UID %d; remove the file, or use another path", uid)
	}
	return nil
}

// lock waits until no other process has locked the file, and locks it. It returns ctx.Err() if ctx
// is done before that.
func (o *Options) lock(ctx context.Context, f *os.File) error {
	err := flock.Lock(ctx, int(f.Fd()), pollInterval, func() {
		o.Log.Info("another process has locked the lock file; waiting until it releases the lock", "path", o.Path)
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("locking the lock file %s: %w", o.Path, err)
	}
	return err
}
