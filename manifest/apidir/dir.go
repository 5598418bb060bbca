// Package apidir manages the manifest directory that podd's API writes. Each object is one
// file, named by kind, namespace and name:
//
//	pod_default_web.json  secret_default_key.json  persistentvolume_data.json
//
// Only root can read the files. They are replaced atomically and survive a power cut (package
// runtime/atomicfile). Symbolic links are never followed, and files with other names are never
// changed. Package manifest/source reads the directory like other directories of manifests.
package apidir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"podd/runtime/atomicfile"
)

// MaxSize is the maximum size of a file in bytes. It is larger than the maximum body of a
// request to the API (3 MiB).
const MaxSize = 4 << 20

// Prefix and suffix of temporary files. A temporary file can remain after a crash.
const (
	tempPrefix = ".podd-"
	tempSuffix = ".tmp"
)

// A Dir is the manifest directory of podd's API. It is safe for concurrent use, but the caller
// must serialize writes of one object.
type Dir struct{ path string }

// Open creates the directory if it does not exist, and removes temporary files of an earlier podd
// process. Open fails if the owner of the directory is neither root nor podd's own user, or if
// other users have access to it.
//
// If existedBefore is true and the directory is missing, Open does not create the directory and
// returns no error. If Open created it, podd would read the empty directory as a complete listing,
// and would remove the pods of the missing manifests.
func Open(path string, existedBefore bool) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("resolving the API's manifest directory: %w", err)
	}
	d := &Dir{path}
	err = d.prepare(!existedBefore)
	if err != nil && !(existedBefore && errors.Is(err, fs.ErrNotExist)) {
		return nil, fmt.Errorf("preparing the API's manifest directory: %w", err)
	}
	return d, nil
}

func (d *Dir) prepare(create bool) error {
	if create {
		if err := os.MkdirAll(d.path, 0o700); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := checkPrivate(root); err != nil {
		return err
	}
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix) {
			root.Remove(name) // a failure is harmless, because podd never reads a temporary file
		}
	}
	return nil
}

// checkPrivate returns an error if users other than root and podd's own user could read or change
// the directory, because the directory contains Secrets. It does not correct the mode of the
// directory, because the user may have configured the path of a different directory by mistake.
func checkPrivate(root *os.Root) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s is not owned by root; use a directory that only podd uses, or change the owner to root", root.Name())
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s is accessible to users other than root (mode %v); use a directory that only podd uses, or set the mode to 0700", root.Name(), info.Mode().Perm())
	}
	return nil
}

// Path returns the path of an object's file, which need not exist.
func (d *Dir) Path(o ObjectID) string { return filepath.Join(d.path, o.fileName()) }

// Read returns the content of an object's file. The error is fs.ErrNotExist if the file does not
// exist.
func (d *Dir) Read(o ObjectID) ([]byte, error) {
	var text []byte
	err := d.withRoot(o, func(root *os.Root, name string) error {
		f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			return errors.Join(err, errNotRegular)
		}
		text, err = io.ReadAll(io.LimitReader(f, MaxSize+1))
		if err == nil && len(text) > MaxSize {
			return errTooLarge
		}
		return err
	})
	return text, err
}

var (
	errNotRegular = errors.New("not a regular file; remove this file")
	errTooLarge   = fmt.Errorf("file too large (limit %d bytes)", MaxSize)
)

// Write replaces the content of an object's file. If it fails, the file has its old content.
func (d *Dir) Write(o ObjectID, text []byte) error {
	if len(text) > MaxSize {
		return fmt.Errorf("writing %s: %w", d.Path(o), errTooLarge)
	}
	return d.withRoot(o, func(root *os.Root, name string) error {
		if info, err := root.Lstat(name); err == nil && !info.Mode().IsRegular() {
			return errNotRegular
		}
		temp := tempPrefix + rand.Text() + tempSuffix
		return atomicfile.WriteIn(root, name, temp, text)
	})
}

// Remove deletes an object's file. A missing file is not an error.
func (d *Dir) Remove(o ObjectID) error {
	return d.withRoot(o, func(root *os.Root, name string) error {
		info, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return errNotRegular
		}
		if err := root.Remove(name); err != nil {
			return err
		}
		return atomicfile.SyncDir(root)
	})
}

// withRoot opens the directory, calls the function do with it, and closes it again. It opens the
// directory for each call, because another directory may have replaced it.
func (d *Dir) withRoot(o ObjectID, do func(root *os.Root, name string) error) error {
	if err := o.check(); err != nil {
		return err
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return fmt.Errorf("opening the API's manifest directory: %w", err)
	}
	defer root.Close()
	if err := do(root, o.fileName()); err != nil {
		return fmt.Errorf("%s: %w", d.Path(o), err)
	}
	return nil
}
