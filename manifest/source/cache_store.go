package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"podd/manifest/durable"
)

// store is one source's directory of sealed files. Its names are made by podd
// alone; nothing in it is followed out of it.
type store struct{ root *os.Root }

const tempSuffix = ".tmp"

// openStore makes and opens the directory name in dir, for root only.
func openStore(dir, name string) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	all, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	info, err := all.Stat(".")
	if err == nil && info.Mode().Perm() != 0o700 {
		err = os.Chmod(dir, 0o700)
	}
	if err != nil {
		return nil, err
	}
	if err := all.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if info, err = all.Lstat(name); err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is no directory; remove it", filepath.Join(dir, name))
	}
	root, err := all.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &store{root}, nil
}

// read returns what was sealed in a file, and its digest.
func (s *store) read(name string) (payload []byte, digest string, err error) {
	info, err := s.root.Lstat(name) // only root can put something else there
	if err != nil {
		return nil, "", err
	}
	if !info.Mode().IsRegular() {
		return nil, "", notRegular(info.Mode())
	}
	f, err := s.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	const most = 2 * MaxSize
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, "", err
	}
	if len(data) > most {
		return nil, "", errTooBig
	}
	return unseal(data)
}

// write puts a whole file into place, or leaves what was there.
func (s *store) write(name string, payload []byte) error {
	if info, err := s.root.Lstat(name); err == nil && info.IsDir() { // no rename replaces it
		if err := s.root.RemoveAll(name); err != nil {
			return err
		}
	}
	return durable.Put(s.root, name, name+tempSuffix, seal(payload))
}

// sweep removes all but the files to keep: contents that no record names and
// what a crash left behind.
func (s *store) sweep(keep map[string]bool) error {
	entries, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !keep[e.Name()] {
			if err := s.root.RemoveAll(e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// Prune removes from a cache directory what is kept of any source but those
// given: content of a source that is no longer configured may hold secrets. It
// is called while no source runs.
func Prune(dir string, keep ...Source) error {
	names := map[string]bool{}
	for _, s := range keep {
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
		if name := e.Name(); !names[name] && isHash(name) {
			err = errors.Join(err, root.RemoveAll(name))
		}
	}
	if err != nil {
		return fmt.Errorf("pruning the cache of manifests %q: %w", dir, err)
	}
	return nil
}

// isHash says that a name is one that hashOf makes.
func isHash(name string) bool {
	return len(name) == 32 && strings.Trim(name, "0123456789abcdef") == ""
}
