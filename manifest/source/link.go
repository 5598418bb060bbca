package source

import (
	"io/fs"
	"os"
	"path/filepath"
)

// maxLinkSteps is the maximum number of links that lead to one file. The kernel has the same limit.
const maxLinkSteps = 40

// checkLink follows a link step by step. isUnsafe reports whether a user other than root can write to
// a directory through which the link leads. Such a user can choose the content of the file. The
// error is errUnsafeLink if every user can write to one of these directories. Otherwise it is the
// reason why the link cannot be followed; nil if the link can be followed. checkLink does not check
// the manifestDir itself, because checkAccess does.
func (d *manifestDir) checkLink(name string) (isUnsafe bool, err error) {
	path := filepath.Join(d.path, name)
	for range maxLinkSteps {
		target, err := os.Readlink(path)
		if err != nil {
			return isUnsafe, err
		}
		if !filepath.IsAbs(target) {
			// The path is not cleaned, because ".." after a link to a directory is the parent of
			// the target directory.
			target = dirOf(path) + target
		}
		path = target
		info, err := os.Lstat(path)
		if err != nil {
			return isUnsafe, err
		}
		othersCanWriteDir, err := d.checkStep(path, info)
		isUnsafe = isUnsafe || othersCanWriteDir
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return isUnsafe, err
		}
	}
	return isUnsafe, errUnsafeLink
}

// recheckAccess checks the directories that lead to a file a second time, after the file was read.
// This is necessary because the modes of these directories may have changed since the directory was
// listed. If every user can now replace the file, any user may have chosen the content that was
// read. recheckAccess returns the error of checkMode or checkLink.
func (d *manifestDir) recheckAccess(name string, isLink bool) error {
	info, err := d.root.Stat(".")
	if err != nil {
		return err
	}
	if err := d.checkMode(info.Mode()); err != nil || !isLink {
		return err
	}
	_, err = d.checkLink(name)
	return err
}

// checkStep checks the directory that contains the file at path, as checkAccess checks the
// manifestDir. file is the FileInfo of path. othersCanWriteDir reports whether a user other than
// root can write to the directory. checkStep returns no error for a file of root in a sticky
// directory, because other users cannot replace this file.
func (d *manifestDir) checkStep(path string, file fs.FileInfo) (othersCanWriteDir bool, err error) {
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
