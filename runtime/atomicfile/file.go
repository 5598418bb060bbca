// Package atomicfile replaces files so that they survive a power cut, and reads them.
//
//   - A file is replaced as a whole. A reader finds either the old content or the new one, at
//     any moment and after a power cut.
//   - If Write or WriteIn returned nil, the new content survives a power cut. The content
//     written by Put does so once Sync has returned nil.
//   - After an error the old content is still there, or the new content if only the sync
//     failed. A temporary file can remain only after a power cut.
//   - Files have mode 0600. A symbolic link at the path of the file, or of its temporary file,
//     is replaced and not followed.
//
// The temporary file is in the same directory. Two concurrent writers must not use the same
// temporary name; otherwise the functions are safe for concurrent use.
//
// The package imports only the standard library, so that all packages can import it.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Write replaces a file. It creates missing directories with mode 0700. With concurrent
// calls for one file, the last rename decides.
func Write(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := createDir(dir); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return WriteIn(root, filepath.Base(path), ".podd-"+rand.Text(), data)
}

// Read returns the content of a regular file of at most limit bytes. It does not follow a
// symbolic link at path, and does not block on a FIFO. The error is an *fs.PathError.
func Read(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("more than %d bytes", limit)}
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// WriteIn replaces the file name in root. temp is the name of the temporary file.
func WriteIn(root *os.Root, name, temp string, data []byte) error {
	if err := Put(root, name, temp, data); err != nil {
		return err
	}
	return Sync(root)
}

// Put is WriteIn without Sync, so after a power cut the old content may be back. It is for
// many files in one directory, which need only one Sync.
func Put(root *os.Root, name, temp string, data []byte) error {
	return put(root, name, temp, data, true)
}

// Replace is WriteIn without any sync: after a power cut the file may have the old content,
// or none.
func Replace(root *os.Root, name, temp string, data []byte) error {
	return put(root, name, temp, data, false)
}

// Sync makes the names in a directory survive a power cut.
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

// createDir creates a directory and its missing parents, and syncs every directory that got a
// new entry.
func createDir(dir string) error {
	parents, err := missingIn(dir)
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

// missingIn returns the directories in which createDir has to create an entry, the deepest
// first.
func missingIn(dir string) (parents []string, err error) {
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
