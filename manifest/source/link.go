package source

import (
	"io/fs"
	"os"
	"path/filepath"
)

// maxSteps bounds the links that lead to one file, as the kernel does.
const maxSteps = 40

// follow goes from a link to its file and says whether others than root can
// write a directory on the way, and so choose the content. The error is
// errAstray where everyone can, and else why a step cannot be taken. The place
// itself is judged once, by judge.
func (p *place) follow(name string) (astray bool, err error) {
	at := filepath.Join(p.path, name)
	for range maxSteps {
		target, err := os.Readlink(at)
		if err != nil {
			return astray, err
		}
		if !filepath.IsAbs(target) {
			// Not cleaned: the ".." after a link to a directory leaves that one.
			target = dirOf(at) + target
		}
		at = target
		info, err := os.Lstat(at)
		if err != nil {
			return astray, err
		}
		others, err := p.stray(at, info)
		astray = astray || others
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return astray, err
		}
	}
	return astray, errAstray
}

// stray judges the directory of one step as judge does the place's: a sticky one
// keeps what is root's from others.
func (p *place) stray(at string, step fs.FileInfo) (others bool, err error) {
	dir, err := os.Stat(dirOf(at))
	if err != nil || os.SameFile(dir, p.dir) {
		return false, err
	}
	if dir.Mode()&0o002 != 0 && (dir.Mode()&fs.ModeSticky == 0 || !ours(step)) {
		return true, errAstray
	}
	return othersWrite(dir), nil
}

// dirOf is the directory of a path, which is not cleaned.
func dirOf(path string) string {
	dir, _ := filepath.Split(path)
	return dir
}
