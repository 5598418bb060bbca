package source

import (
	"io/fs"
	"os"
	"path/filepath"
)

// maxSteps limits the number of links that lead to one file, as the kernel does.
const maxSteps = 40

// follow resolves a link and reports whether a user other than root can write a directory
// on the way, and so choose the content. The error is errAstray if every user can, or else
// the reason why a step cannot be taken. The place itself is checked by checkAccess.
func (p *place) follow(name string) (astray bool, err error) {
	at := filepath.Join(p.path, name)
	for range maxSteps {
		target, err := os.Readlink(at)
		if err != nil {
			return astray, err
		}
		if !filepath.IsAbs(target) {
			// Not cleaned, because ".." after a link to a directory is the parent of that
			// directory.
			target = dirOf(at) + target
		}
		at = target
		info, err := os.Lstat(at)
		if err != nil {
			return astray, err
		}
		others, err := p.checkStep(at, info)
		astray = astray || others
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return astray, err
		}
	}
	return astray, errAstray
}

// checkStep checks the directory of one step as checkAccess checks the place. In a sticky
// directory other users cannot replace a file of root.
func (p *place) checkStep(at string, step fs.FileInfo) (others bool, err error) {
	dir, err := os.Stat(dirOf(at))
	if err != nil || os.SameFile(dir, p.dir) {
		return false, err
	}
	if dir.Mode()&0o002 != 0 && (dir.Mode()&fs.ModeSticky == 0 || !ownedByRoot(step)) {
		return true, errAstray
	}
	return othersWrite(dir), nil
}

// dirOf returns the directory of a path without cleaning it.
func dirOf(path string) string {
	dir, _ := filepath.Split(path)
	return dir
}
