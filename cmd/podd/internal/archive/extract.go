// Package archive copies files in and out of containers as tar streams.
//
//	Extract  the tar output of a container ──▶ files below a directory
//	Write    a local file or directory     ──▶ a tar stream
//
// The output of a container is untrusted: nothing is written outside the target, symlinks are
// neither followed nor created, and only one entry is held in memory.
package archive

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// ErrEmpty is the error of an archive without entries.
var ErrEmpty = errors.New("the archive is empty")

// Extract writes the entry name of an archive, and everything below it, into root as to.
// It skips entries other than files, directories and hard links, and calls skipped for
// them. It replaces existing files, but not directories.
func Extract(from io.Reader, name string, root *os.Root, to string, skipped func(entry, why string)) error {
	any := false
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF) && !any:
			return ErrEmpty
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading the archive: %w", err)
		}
		any = true
		target, err := targetPath(h.Name, name, to)
		if err == nil {
			err = extract(r, h, root, target, func(link string) (string, error) { return targetPath(link, name, to) }, skipped)
		}
		if err != nil {
			return fmt.Errorf("the archive's %.200q: %w", h.Name, err)
		}
	}
}

// targetPath returns the path of an entry, which must be name or below it.
func targetPath(entry, name, to string) (string, error) {
	if strings.HasPrefix(entry, "/") {
		return "", errors.New("refused: its path begins at the root")
	}
	for part := range strings.SplitSeq(entry, "/") {
		if part == ".." {
			return "", errors.New("refused: its path leads up")
		}
	}
	entry, name = path.Clean(entry), path.Clean(name)
	below, ok := strings.CutPrefix(entry, name+"/")
	switch {
	case entry == name:
		return to, nil
	case name == ".":
		return path.Join(to, entry), nil
	case !ok:
		return "", fmt.Errorf("refused: it is not below %s, which was asked for", name)
	}
	return path.Join(to, below), nil
}

func extract(r io.Reader, h *tar.Header, root *os.Root, target string, placed func(string) (string, error), skipped func(entry, why string)) error {
	mode := h.FileInfo().Mode().Perm() // without setuid, setgid and owner
	switch h.Typeflag {
	case tar.TypeDir:
		return makeDir(root, target, mode|0o700)
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeCont:
		if err := removeExisting(root, target); err != nil {
			return err
		}
		return writeFile(r, root, target, mode)
	case tar.TypeLink: // a second name of an earlier file
		old, err := placed(h.Linkname)
		if err != nil {
			return err
		}
		if info, err := root.Lstat(old); err != nil || !info.Mode().IsRegular() || old == target {
			skipped(h.Name, "a link to what is not there")
			return nil
		}
		if err := removeExisting(root, target); err != nil {
			return err
		}
		return root.Link(old, target)
	case tar.TypeSymlink:
		skipped(h.Name, "a link")
	default:
		skipped(h.Name, "no file")
	}
	return nil
}

// makeDir creates a directory and its parents. A symlink in its place is an error.
func makeDir(root *os.Root, name string, mode fs.FileMode) error {
	if err := root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return err
	}
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return root.Mkdir(name, mode)
	case err == nil && !info.IsDir():
		return errors.New("there is something here that is no directory")
	}
	return err
}

// removeExisting removes what is in the place of a file.
func removeExisting(root *os.Root, name string) error {
	if err := root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return err
	}
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("there is a directory here of that name")
	}
	return root.Remove(name)
}

// writeFile creates a new file, so that it does not write through a link.
func writeFile(r io.Reader, root *os.Root, name string, mode fs.FileMode) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
