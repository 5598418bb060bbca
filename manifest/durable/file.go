// Package durable replaces files. It is a leaf, of the standard library alone, that
// every package may import: what podd remembers is to come through a power cut
// whichever part of it remembers.
//
//   - A file is replaced whole or not at all: who reads it at any moment, or after a
//     power cut, finds the old content or the new one.
//   - What Write and WriteIn returned nil for outlives a power cut, and so does what
//     Put did once Sync has.
//   - After an error the old content is there still, or the new one where only to make
//     it last failed; nothing unfinished is, but after a power cut.
//   - A file is of mode 0600. A symbolic link in its place, or in that of the
//     unfinished one, is replaced and not followed.
//
// The unfinished file is beside it, by a name that one writer alone uses at a time.
// Safe for concurrent use but for that.
package durable

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces a file, and makes its directory, 0700, where there is none. Any
// number may write at once, and the last one counts.
func Write(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := makeDir(dir); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return WriteIn(root, filepath.Base(path), ".podd-"+rand.Text(), data)
}

// WriteIn replaces a file of a directory. temp is the name of the unfinished one.
func WriteIn(root *os.Root, name, temp string, data []byte) error {
	if err := Put(root, name, temp, data); err != nil {
		return err
	}
	return Sync(root)
}

// Put is WriteIn without Sync: after a power cut the old content may be there. Many
// files of one directory need one Sync.
func Put(root *os.Root, name, temp string, data []byte) error {
	return put(root, name, temp, data, true)
}

// Replace is WriteIn without any waiting for the disk: after a power cut there may be
// the old content, or none.
func Replace(root *os.Root, name, temp string, data []byte) error {
	return put(root, name, temp, data, false)
}

// Sync has the names in a directory outlive a power cut.
func Sync(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func put(root *os.Root, name, temp string, data []byte, sync bool) error {
	if err := root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if sync && err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	return nil
}

// makeDir makes a directory whose name, and those of the ones above it that it makes,
// outlive a power cut.
func makeDir(dir string) error {
	parents, err := missing(dir)
	if err != nil || len(parents) == 0 {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, parent := range parents {
		root, err := os.OpenRoot(parent)
		if err != nil {
			return err
		}
		if err := errors.Join(Sync(root), root.Close()); err != nil {
			return err
		}
	}
	return nil
}

// missing are the directories that lack one which dir needs, the deepest first.
func missing(dir string) (parents []string, err error) {
	for {
		switch _, err := os.Stat(dir); {
		case err == nil:
			return parents, nil
		case !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir):
			return nil, err
		}
		dir = filepath.Dir(dir)
		parents = append(parents, dir)
	}
}
