// Package atomicfile replaces files so that they survive a power cut, and reads them.
//
//   - A file is replaced as a whole. At any moment, also after a power cut, a reader
//     finds either the complete old content or the complete new content.
//   - If Write or WriteIn returned nil, the new content survives a power cut. Content
//     that WriteInNoDirSync wrote survives a power cut after SyncDir has returned nil.
//   - If a function returns an error, the file has the old content, or the new content
//     if only the sync failed. A temporary file can remain only after a power cut.
//   - SwapIn differs: it keeps the old file for the next write, and a reader that has the file
//     open during two writes may read parts of both contents.
//   - Files have mode 0600. A symbolic link at the path of the file or of the temporary
//     file is replaced and not followed.
//
// The temporary file is in the same directory as the file. Two concurrent writers must not use the
// same name for the temporary file. Apart from that, all functions are safe for concurrent use.
//
// The package imports only the standard library and x/sys/unix, so that all packages can import
// it.
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

// Write replaces the file at path so that the new content survives a power cut. It creates missing
// directories with mode 0700. After concurrent calls for one file, the file has the content of the
// call that renamed last.
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
// symbolic link at path and does not block on a FIFO. All errors are *fs.PathError values.
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

// WriteIn replaces the file with the given name in root so that the new content survives a power
// cut. temp is the name of the temporary file.
func WriteIn(root *os.Root, name, temp string, data []byte) error {
	if err := WriteInNoDirSync(root, name, temp, data); err != nil {
		return err
	}
	return SyncDir(root)
}

// WriteInNoDirSync works like WriteIn, but does not call SyncDir. Until the caller calls SyncDir, a
// power cut may restore the old content. A caller that writes many files in one directory needs
// only one SyncDir.
func WriteInNoDirSync(root *os.Root, name, temp string, data []byte) error {
	if err := root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
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

// SyncDir writes the directory entries of root to disk, so that created and renamed files
// survive a power cut.
func SyncDir(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// createDir creates a directory and its missing parents. It syncs every directory in which
// it created an entry.
func createDir(dir string) error {
	parents, err := missingParents(dir)
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
		if err := errors.Join(SyncDir(root), root.Close()); err != nil {
			return err
		}
	}
	return nil
}

// missingParents returns the directories to which createDir must add an entry so that dir exists,
// beginning with the parent of dir. If dir exists, it returns nil.
func missingParents(dir string) (parents []string, err error) {
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
