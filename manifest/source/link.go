package source

import (
	"io/fs"
	"os"
	"path/filepath"
)

// maxLinkSteps is the maximum number of links that lead to one file. The kernel has the same limit.
const maxLinkSteps = 40

// checkLink follows a link step by step. unsafe reports whether a user other than root can write to
// a directory through which the link leads. Such a user can choose the content of the file. The
// error is errUnsafeLink if every user can write to one of these directories. Otherwise it is the
// reason why the link cannot be followed, if any. checkLink does not check the manifestDir itself,
// because checkAccess does.
func (d *manifestDir) checkLink(name string) (unsafe bool, err error) {
	at := filepath.Join(d.path, name)
	for range maxLinkSteps {
		target, err := os.Readlink(at)
		if err != nil {
			return unsafe, err
		}
		if !filepath.IsAbs(target) {
			// The path is not cleaned, because ".." after a link to a directory is the parent of
			// the target directory.
			target = dirOf(at) + target
		}
		at = target
		info, err := os.Lstat(at)
		if err != nil {
			return unsafe, err
		}
		othersCan, err := d.checkStep(at, info)
		unsafe = unsafe || othersCan
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return unsafe, err
		}
	}
	return unsafe, errUnsafeLink
}

// recheckAccess checks the directories that lead to a file once more, after the file was read. The
// check is necessary because every user may have got the right to replace the file since the
// directory was listed. In this case any user may have chosen the content that was read. The error
// is that of checkMode or checkLink.
func (d *manifestDir) recheckAccess(name string, link bool) error {
	info, err := d.root.Stat(".")
	if err != nil {
		return err
	}
	if err := d.checkMode(info.Mode()); err != nil || !link {
		return err
	}
	_, err = d.checkLink(name)
	return err
}

// checkStep checks the directory that contains the file at path, as checkAccess checks the
// manifestDir. file is the FileInfo of path. othersCan reports whether a user other than root
// can write to the directory. In a sticky directory other users cannot replace a file of root.
func (d *manifestDir) checkStep(path string, file fs.FileInfo) (othersCan bool, err error) {
	dir, err := os.Stat(dirOf(path))
	if err != nil || os.SameFile(dir, d.info) {
		return false, err
	}
	if dir.Mode()&0o002 != 0 && (dir.Mode()&fs.ModeSticky == 0 || !isOwnedByRoot(file)) {
		return true, errUnsafeLink
	}
	return othersCanWrite(dir), nil
}

// dirOf returns the directory of a path without cleaning it.
func dirOf(path string) string {
	dir, _ := filepath.Split(path)
	return dir
}
