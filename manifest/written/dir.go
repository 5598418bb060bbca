// Package written is the manifest directory that podd's own API writes: one file
// an object, named by its kind, namespace and name,
//
//	pod_default_web.json  secret_default_key.json  persistentvolume_data.json
//
// readable by root alone. A file is whole or not there, also after a power cut:
// it is written beside, synced and renamed. Links are never followed, and what
// has another name is never touched. Package manifest/source reads it as it
// reads every other directory.
package written

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

	"podd/manifest/durable"
)

// MaxSize bounds a file: more than an API takes at once.
const MaxSize = 4 << 20

// Files that are being written begin and end so; a crash can leave one.
const (
	unfinishedPrefix = ".podd-"
	unfinishedSuffix = ".tmp"
)

// Dir is such a directory. It may be used concurrently; who writes one object
// from several goroutines must say in which order.
type Dir struct{ path string }

// Open makes a directory where it is missing, refuses one that others than its
// owner, root or podd's own user, get into, and removes what an earlier podd did
// not finish. One that vanished is not made anew: it
// would be a complete listing without the pods that were in it.
func Open(path string, vanished bool) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("finding the directory of the API's manifests: %w", err)
	}
	d := &Dir{path}
	err = d.prepare(!vanished)
	if err != nil && !(vanished && errors.Is(err, fs.ErrNotExist)) {
		return nil, fmt.Errorf("preparing the directory of the API's manifests: %w", err)
	}
	return d, nil
}

func (d *Dir) prepare(missing bool) error {
	if missing {
		if err := os.MkdirAll(d.path, 0o700); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := private(root); err != nil {
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
		if strings.HasPrefix(name, unfinishedPrefix) && strings.HasSuffix(name, unfinishedSuffix) {
			root.Remove(name) // one that stays is never read
		}
	}
	return nil
}

// private says whether secrets may be written in a directory. A right is not taken
// away from others: it may be somebody else's directory that was named by mistake.
func private(root *os.Root) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s is not root's; give a directory of podd's own, or chown it", root.Name())
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s is open to others than root (%v); give a directory of podd's own, or chmod 700 it", root.Name(), info.Mode().Perm())
	}
	return nil
}

// Path is where an object is, or would be.
func (d *Dir) Path(o Object) string { return filepath.Join(d.path, o.file()) }

// Read returns a file's content; fs.ErrNotExist when there is none.
func (d *Dir) Read(o Object) ([]byte, error) {
	var text []byte
	err := d.in(o, func(root *os.Root, name string) error {
		f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			return errors.Join(err, errIrregular)
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
	errIrregular = errors.New("it is no regular file; remove it")
	errTooLarge  = fmt.Errorf("it has more than %d bytes", MaxSize)
)

// Write puts a content in place of the one that was there. After an error that
// one is still there.
func (d *Dir) Write(o Object, text []byte) error {
	if len(text) > MaxSize {
		return fmt.Errorf("writing %s: %w", d.Path(o), errTooLarge)
	}
	return d.in(o, func(root *os.Root, name string) error {
		if info, err := root.Lstat(name); err == nil && !info.Mode().IsRegular() {
			return errIrregular
		}
		beside := unfinishedPrefix + rand.Text() + unfinishedSuffix
		return durable.WriteIn(root, name, beside, text)
	})
}

// Remove takes a file away; one that is not there is success.
func (d *Dir) Remove(o Object) error {
	return d.in(o, func(root *os.Root, name string) error {
		info, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return errIrregular
		}
		if err := root.Remove(name); err != nil {
			return err
		}
		return durable.Sync(root)
	})
}

// in opens the directory anew for every use, as one that was replaced is.
func (d *Dir) in(o Object, do func(root *os.Root, name string) error) error {
	if err := o.check(); err != nil {
		return err
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return fmt.Errorf("opening the directory of the API's manifests: %w", err)
	}
	defer root.Close()
	if err := do(root, o.file()); err != nil {
		return fmt.Errorf("%s: %w", d.Path(o), err)
	}
	return nil
}
