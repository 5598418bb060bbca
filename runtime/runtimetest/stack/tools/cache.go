package tools

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// cache is the directory that keeps what was built. One goroutine uses it.
type cache struct {
	dir      string
	log      *slog.Logger
	lockName string
	held     *os.File // the lock file while locked
}

// What is made under one of these locks may be made while the other is held: a
// runtime is not to wait for Kubernetes.
const (
	stackLock      = "lock"
	kubernetesLock = "lock-kubernetes"
)

func openCache(log *slog.Logger, lock string) (*cache, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("finding the cache directory: %w", err)
	}
	dir := filepath.Join(base, "podd-stack")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the cache directory: %w", err)
	}
	return &cache{dir: dir, log: log, lockName: lock}, nil
}

// lock waits until no other process makes anything under the cache's lock. flock has no
// wait with a context, so it asks again every 50 ms.
func (c *cache) lock(ctx context.Context) error {
	f, err := os.OpenFile(filepath.Join(c.dir, c.lockName), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("opening the lock of the cache: %w", err)
	}
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for said := false; ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			c.held = f
			return nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return errors.Join(fmt.Errorf("locking %s: %w", f.Name(), err), f.Close())
		}
		if !said {
			c.log.Info("waiting for another build of the stack", "lock", f.Name())
			said = true
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waiting for %s: %w", f.Name(), ctx.Err()), f.Close())
		case <-again.C:
		}
	}
}

// unlock may be called once after a lock that succeeded. Closing releases the
// flock; there is nothing to do about an error.
func (c *cache) unlock() {
	_ = c.held.Close()
	c.held = nil
}

// entry returns the directory called name, after letting fill make its
// content if it is not there yet. The caller holds the lock.
func (c *cache) entry(name string, fill func(dir string) error) (string, error) {
	dir := filepath.Join(c.dir, name)
	_, err := os.Stat(dir)
	if err == nil {
		return dir, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("looking for %s: %w", dir, err)
	}
	unfinished := dir + ".tmp"
	if err := os.RemoveAll(unfinished); err != nil {
		return "", fmt.Errorf("removing what an interrupted build left: %w", err)
	}
	if err := os.MkdirAll(unfinished, 0o755); err != nil {
		return "", fmt.Errorf("making %s: %w", unfinished, err)
	}
	if err := fill(unfinished); err != nil {
		return "", errors.Join(err, os.RemoveAll(unfinished))
	}
	if err := os.Rename(unfinished, dir); err != nil {
		return "", fmt.Errorf("finishing %s: %w", dir, err)
	}
	return dir, nil
}

// digest names a cache entry after everything its content depends on.
func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:", len(p))
		h.Write(p)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:6])
}
