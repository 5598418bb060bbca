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

// manifestDir is the directory of the manifests of a Dir, opened for one check. The caller must
// close it.
type manifestDir struct {
	path     string // path of the directory
	onlyFile string // name of the single file to read; "" if all files are read
	root     *os.Root
	info     fs.FileInfo // FileInfo of the directory
	id       identity    // identity of the directory
	// isRemote reports whether other hosts can write to the directory without an event.
	isRemote bool
	// isTrusted reports whether only root (or podd's own user) can create entries in the
	// directory. If so, symlinks may lead to any file. Otherwise they must not lead out of the
	// directory.
	isTrusted bool
}

// Reasons to refuse a directory or a file in it.
var (
	errNotDirOrFile   = errors.New("neither a directory nor a regular file")
	errWorldWritable  = errors.New("all users can write to it and so run any pod as root; remove that permission (chmod o-w)")
	errUnsafeLink     = errors.New("a link into a directory to which all users can write and so run any pod as root; remove that permission (chmod o-w)")
	errTooManyEntries = fmt.Errorf("too many entries (limit %d); move files that are not manifests to another directory", maxEntries)
)

// openManifestDir opens the directory at path, or the directory that contains the file at path.
// If isSingleFile is true, path is a file, and a missing file is not an error if its directory can
// be read.
func openManifestDir(path string, isSingleFile bool) (*manifestDir, error) {
	d := &manifestDir{path: path}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Mode().IsRegular(), errors.Is(err, fs.ErrNotExist) && isSingleFile:
		d.path, d.onlyFile = filepath.Split(path)
		d.path = filepath.Clean(d.path)
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, errNotDirOrFile
	}
	if d.root, err = os.OpenRoot(d.path); err != nil {
		return nil, err
	}
	if err := d.checkAccess(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// checkAccess sets info, id, isRemote and isTrusted. It returns errWorldWritable if every user can
// write to the directory.
func (d *manifestDir) checkAccess() error {
	dir, err := d.root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	if d.info, err = dir.Stat(); err != nil {
		return err
	}
	d.id, d.isRemote = identify(dir, d.info), isRemote(dir)
	d.isTrusted = !othersCanWrite(d.info)
	return d.checkMode(d.info.Mode())
}

// checkMode returns errWorldWritable if mode, the mode of the directory, allows every user to
// replace the files that podd reads.
func (d *manifestDir) checkMode(mode fs.FileMode) error {
	if mode&0o002 == 0 {
		return nil
	}
	// In a sticky directory such as /tmp no user can replace the file of another user. So a
	// single file of root is safe in such a directory.
	if d.onlyFile != "" && mode&fs.ModeSticky != 0 && d.isFileOwnedByRoot() {
		return nil
	}
	return errWorldWritable
}

// isFileOwnedByRoot reports whether onlyFile exists and belongs to root or podd's user.
func (d *manifestDir) isFileOwnedByRoot() bool {
	info, err := d.root.Lstat(d.onlyFile)
	return err == nil && isOwnedByRoot(info)
}

// Close closes the directory.
func (d *manifestDir) Close() { d.root.Close() }

// isOwnedByRoot reports whether a file belongs to root or podd's own user.
func isOwnedByRoot(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 || int(st.Uid) == os.Geteuid())
}

// othersCanWrite reports whether a user other than root and podd's user can write to the file or
// directory. Group root counts as root.
func othersCanWrite(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || !isOwnedByRoot(info) || info.Mode()&0o002 != 0 || info.Mode()&0o020 != 0 && st.Gid != 0
}

// stat returns the FileInfo of an entry. isLink reports whether the entry is a symlink. stat
// follows a symlink out of the directory only if the directory is trusted.
func (d *manifestDir) stat(name string, isLink bool) (fs.FileInfo, error) {
	if isLink && d.isTrusted {
		return os.Stat(filepath.Join(d.path, name))
	}
	return d.root.Stat(name)
}

// open opens a regular file for reading. It follows symlinks like stat. It does not block on a
// FIFO, and a terminal does not become podd's controlling terminal.
func (d *manifestDir) open(name string, isLink bool) (*os.File, fs.FileInfo, error) {
	const flags = os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY
	var f *os.File
	var err error
	if isLink && d.isTrusted {
		f, err = os.OpenFile(filepath.Join(d.path, name), flags, 0)
	} else {
		f, err = d.root.OpenFile(name, flags, 0)
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = newNotRegularError(info.Mode())
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// newNotRegularError returns the error for a file that is not regular, with its type.
func newNotRegularError(mode fs.FileMode) error {
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
	return fmt.Errorf("%w: it is %s", errNotRegular, kind)
}

var errNotRegular = errors.New("not a regular file")
