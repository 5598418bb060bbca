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

	"podd/runtime/flock"
)

// A cache is the directory with the built programs and images. It is not safe for concurrent use.
type cache struct {
	dir      string
	log      *slog.Logger
	lockName string
	lockFile *os.File // open while the cache is locked
}

// Names of the lock files. There are two, so that the start of a runtime does not wait for the
// build of Kubernetes.
const (
	stackLock      = "lock"
	kubernetesLock = "lock-kubernetes"
)

// openCache returns the cache. lock is the name of the file that the methods lock.
func openCache(log *slog.Logger, lock string) (*cache, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("finding the cache directory: %w", err)
	}
	dir := filepath.Join(base, "podd-stack")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("creating the cache directory: %w", err)
	}
	return &cache{dir: dir, log: log, lockName: lock}, nil
}

// lockPollInterval is the interval at which lock tries to lock a cache that another process has locked.
const lockPollInterval = 50 * time.Millisecond

// lock waits until no other process has the lock of the cache.
func (c *cache) lock(ctx context.Context) error {
	f, err := os.OpenFile(filepath.Join(c.dir, c.lockName), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("opening the lock of the cache: %w", err)
	}
	err = flock.Lock(ctx, int(f.Fd()), lockPollInterval, func() {
		c.log.Info("another process is building; waiting for its lock", "lock", f.Name())
	})
	if err != nil {
		return errors.Join(fmt.Errorf("waiting for the lock %s of the cache: %w", f.Name(), err), f.Close())
	}
	c.lockFile = f
	return nil
}

// unlock releases the lock. It must be called once after each successful call of lock. Errors can
// be ignored, because closing the file releases the lock in any case.
func (c *cache) unlock() {
	_ = c.lockFile.Close()
	c.lockFile = nil
}

// ensureEntry returns the path of the directory called name in the cache. If the directory does not
// exist, fill creates its content. The caller must have locked the cache.
func (c *cache) ensureEntry(name string, fill func(dir string) error) (string, error) {
	dir := filepath.Join(c.dir, name)
	_, err := os.Stat(dir)
	if err == nil {
		return dir, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("looking up the cache entry %s: %w", dir, err)
	}
	unfinished := dir + ".tmp"
	if err := os.RemoveAll(unfinished); err != nil {
		return "", fmt.Errorf("removing the files of an interrupted build: %w", err)
	}
	if err := os.MkdirAll(unfinished, 0o755); err != nil {
		return "", fmt.Errorf("creating the cache entry %s: %w", unfinished, err)
	}
	if err := fill(unfinished); err != nil {
		return "", errors.Join(err, os.RemoveAll(unfinished))
	}
	if err := os.Rename(unfinished, dir); err != nil {
		return "", fmt.Errorf("renaming the finished cache entry to %s: %w", dir, err)
	}
	return dir, nil
}

// hashParts returns a hash of parts for the name of a cache entry.
func hashParts(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:", len(p))
		h.Write(p)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:6])
}
