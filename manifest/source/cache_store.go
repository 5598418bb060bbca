package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"podd/runtime/atomicfile"
	"podd/runtime/safepath"
)

// store is the directory with the cached files of one source. Only podd chooses the names of the
// files. The store does not follow symbolic links out of the directory.
type store struct{ root *os.Root }

const (
	tempSuffix = ".tmp"
	// unreadableSuffix is appended to the name of a directory with an unusable index.
	unreadableSuffix = ".unreadable"
)

// openStore opens the directory dir/name. It creates missing directories, and sets mode 0700.
func openStore(dir, name string) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	parent, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	info, err := parent.Stat(".")
	if err == nil && info.Mode().Perm() != 0o700 {
		err = os.Chmod(dir, 0o700)
	}
	if err != nil {
		return nil, err
	}
	if err := parent.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if info, err = parent.Lstat(name); err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory; remove this file", filepath.Join(dir, name))
	}
	root, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &store{root}, nil
}

// read verifies the checksum of a file and returns the payload and its digest.
func (s *store) read(name string) (payload []byte, digest string, err error) {
	info, err := s.root.Lstat(name) // info stays correct until OpenFile, because only root can replace the file
	if err != nil {
		return nil, "", err
	}
	if !info.Mode().IsRegular() {
		return nil, "", newNotRegularError(info.Mode())
	}
	f, err := s.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	const maxSize = 2 * MaxSize
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, "", err
	}
	if len(data) > maxSize {
		return nil, "", errTooLarge
	}
	return removeChecksum(data)
}

// write writes or replaces a file with a checksum and the payload. If it fails, an existing file is
// unchanged.
func (s *store) write(name string, payload []byte) error {
	if info, err := s.root.Lstat(name); err == nil && info.IsDir() { // remove a directory first, because a rename does not replace it
		if err := removeAll(s.root, name); err != nil {
			return err
		}
	}
	return atomicfile.WriteInNoDirSync(s.root, name, name+tempSuffix, addChecksum(payload))
}

// sweep removes all files with names that are not in retained. These are contents to which no record
// refers, and temporary files of a podd that has crashed.
func (s *store) sweep(retained map[string]bool) error {
	entries, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !retained[e.Name()] {
			if err := removeAll(s.root, e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeAll removes a file or directory in root. It does not remove mount points and returns an error
// for them, unlike os.Root.RemoveAll, which would remove the files of the mounted file system.
func removeAll(root *os.Root, name string) error {
	dir, err := safepath.Open(root.Name())
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.RemoveAll(context.Background(), name)
}

// setAside appends unreadableSuffix to the name of the directory dir/name, whose index cannot be
// used. It does not remove the directory, because the user or a newer podd may need its contents. It
// removes an earlier directory with this suffix, so that the disk use is bounded.
func setAside(dir, name string) error {
	parent, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer parent.Close()
	if err := removeAll(parent, name+unreadableSuffix); err != nil {
		return err
	}
	if err := parent.Rename(name, name+unreadableSuffix); err != nil {
		return err
	}
	return atomicfile.SyncDir(parent)
}

var errSetAside = errors.New("the index is missing, and an earlier index could not be read")

// checkSetAside returns errSetAside if a directory of the source was set aside.
func (c *cache) checkSetAside() error {
	path := filepath.Join(c.dir, hashOf(c.source)+unreadableSuffix)
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return fmt.Errorf("%w; podd keeps the earlier index in %q", errSetAside, path)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// Prune removes all cached contents except those of the given sources, because the content of a
// source that is no longer configured may contain secrets. It must not be called while a source
// runs.
func Prune(dir string, sources ...Source) error {
	names := map[string]bool{}
	for _, s := range sources {
		names[hashOf(s.Name())] = true
	}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("pruning the cache of manifests %q: %w", dir, err)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		if name := strings.TrimSuffix(e.Name(), unreadableSuffix); !names[name] && isHash(name) {
			err = errors.Join(err, removeAll(root, e.Name()))
		}
	}
	if err != nil {
		return fmt.Errorf("pruning the cache of manifests %q: %w", dir, err)
	}
	return nil
}

// isHash reports whether name has the form that hashOf returns.
func isHash(name string) bool {
	return len(name) == 32 && strings.Trim(name, "0123456789abcdef") == ""
}
