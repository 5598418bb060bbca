package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// place is the directory of the manifests, opened for one check. The caller must close it.
type place struct {
	path string // of the directory
	only string // the only name to read, for a single file; "" for all
	root *os.Root
	dir  fs.FileInfo
	id   identity // of the directory
	// remote reports whether other hosts can write here without an event.
	remote bool
	// trusted reports whether only root (or podd's own user) can create entries here. Then
	// symlinks may lead anywhere. Otherwise they must not leave the directory.
	trusted bool
}

// Reasons to refuse a place or a file in it.
var (
	errNeither  = errors.New("neither a directory nor a regular file")
	errAnyone   = errors.New("all users can write to it and so run any pod as root; remove that permission (chmod o-w)")
	errAstray   = errors.New("a link into a directory to which all users can write and so run any pod as root; remove that permission (chmod o-w)")
	errUnlisted = fmt.Errorf("too many entries (limit %d); move files that are not manifests to another directory", maxNames)
)

// openPlace opens a directory, or the directory of a single file. If single is true, a
// missing file is not an error as long as its directory can be read.
func openPlace(path string, single bool) (*place, error) {
	p := &place{path: path}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Mode().IsRegular(), errors.Is(err, fs.ErrNotExist) && single:
		p.path, p.only = filepath.Split(path)
		p.path = filepath.Clean(p.path)
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, errNeither
	}
	if p.root, err = os.OpenRoot(p.path); err != nil {
		return nil, err
	}
	if err := p.checkAccess(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// checkAccess checks which users can write to the place.
func (p *place) checkAccess() error {
	dir, err := p.root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	if p.dir, err = dir.Stat(); err != nil {
		return err
	}
	p.id, p.remote = identify(dir, p.dir), isRemote(dir)
	p.trusted = !othersWrite(p.dir)
	mode := p.dir.Mode()
	if mode&0o002 == 0 {
		return nil
	}
	// In a sticky directory such as /tmp no user can replace the file of another user, so a
	// single file of root is safe there.
	if p.only != "" && mode&fs.ModeSticky != 0 && p.ownFile() {
		return nil
	}
	return errAnyone
}

// ownFile reports whether the single file exists and belongs to root or podd's user.
func (p *place) ownFile() bool {
	info, err := p.root.Lstat(p.only)
	return err == nil && ownedByRoot(info)
}

// Close releases the directory.
func (p *place) Close() { p.root.Close() }

// ownedByRoot reports whether a file belongs to root or podd's own user.
func ownedByRoot(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 || int(st.Uid) == os.Geteuid())
}

// othersWrite reports whether a user other than root and podd's user can write a file.
// Group root counts as root.
func othersWrite(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || !ownedByRoot(info) || info.Mode()&0o002 != 0 || info.Mode()&0o020 != 0 && st.Gid != 0
}

// stat follows symlinks as far as the place is trusted.
func (p *place) stat(name string, link bool) (fs.FileInfo, error) {
	if link && p.trusted {
		return os.Stat(filepath.Join(p.path, name))
	}
	return p.root.Stat(name)
}

// open opens a regular file for reading. It does not block on a FIFO, and a terminal does
// not become podd's controlling terminal.
func (p *place) open(name string, link bool) (*os.File, fs.FileInfo, error) {
	const flags = os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY
	var f *os.File
	var err error
	if link && p.trusted {
		f, err = os.OpenFile(filepath.Join(p.path, name), flags, 0)
	} else {
		f, err = p.root.OpenFile(name, flags, 0)
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = irregularError(info.Mode())
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// irregularError returns the error for a file that is not regular, with its type.
func irregularError(mode fs.FileMode) error {
	kind := "something else"
	switch {
	case mode&fs.ModeSymlink != 0:
		kind = "a link"
	case mode.IsDir():
		kind = "a directory"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a FIFO"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	}
	return fmt.Errorf("%w: it is %s", errIrregular, kind)
}

var errIrregular = errors.New("not a regular file")
