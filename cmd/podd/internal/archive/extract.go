// Package archive copies files in and out of containers as tar streams.
//
//	Extract  the tar output of a container ──▶ files below a directory
//	Write    a local file or directory     ──▶ a tar stream
//
// The output of a container is untrusted. Extract therefore writes nothing outside the
// target, neither follows nor creates symlinks, and holds only one entry in memory.
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

// Extract writes the entry name of a tar archive, and everything below it, to the path to
// in root. It skips entries other than files, directories and hard links, and calls skipped
// for them. It replaces existing files, but not directories. Permissions are kept, but not
// owners, setuid and setgid.
func Extract(from io.Reader, name string, root *os.Root, to string, skipped func(entry, why string)) error {
	isEmpty := true
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF) && isEmpty:
			return ErrEmpty
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading the archive: %w", err)
		}
		isEmpty = false
		target, err := targetPath(h.Name, name, to)
		if err == nil {
			err = extract(r, h, root, target, func(link string) (string, error) { return targetPath(link, name, to) }, skipped)
		}
		if err != nil {
			return fmt.Errorf("extracting %.200q: %w", h.Name, err)
		}
	}
}

// targetPath returns the path of an entry, which must be name or below it.
func targetPath(entry, name, to string) (string, error) {
	if strings.HasPrefix(entry, "/") {
		return "", errors.New("the path is absolute")
	}
	for part := range strings.SplitSeq(entry, "/") {
		if part == ".." {
			return "", errors.New(`the path contains ".."`)
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
		return "", fmt.Errorf("the path is not below the requested %s", name)
	}
	return path.Join(to, below), nil
}

// extract writes one entry to target. linkTarget returns the path in root of the entry that
// a hard link refers to.
func extract(r io.Reader, h *tar.Header, root *os.Root, target string, linkTarget func(string) (string, error), skipped func(entry, why string)) error {
	mode := h.FileInfo().Mode().Perm() // without setuid, setgid and owner
	switch h.Typeflag {
	case tar.TypeDir:
		return makeDir(root, target, mode|0o700)
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeCont:
		if err := removeExisting(root, target); err != nil {
			return err
		}
		return writeFile(r, root, target, mode)
	case tar.TypeLink: // a hard link to an earlier entry
		old, err := linkTarget(h.Linkname)
		if err != nil {
			return err
		}
		if info, err := root.Lstat(old); err != nil || !info.Mode().IsRegular() || old == target {
			skipped(h.Name, "hard link to a file that was not extracted")
			return nil
		}
		if err := removeExisting(root, target); err != nil {
			return err
		}
		return root.Link(old, target)
	case tar.TypeSymlink:
		skipped(h.Name, "symbolic link")
	default:
		skipped(h.Name, "neither a file nor a directory")
	}
	return nil
}

// makeDir creates a directory and its parents. If name exists and is not a directory, or is
// a symlink to one, that is an error.
func makeDir(root *os.Root, name string, mode fs.FileMode) error {
	if err := root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return err
	}
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return root.Mkdir(name, mode)
	case err == nil && !info.IsDir():
		return errors.New("the target exists and is not a directory")
	}
	return err
}

// removeExisting removes a file or symlink, so that a new file can replace it, and creates
// the parent directories.
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
		return errors.New("the target is a directory")
	}
	return root.Remove(name)
}

// writeFile creates a file. If name exists, for example as a symlink, that is an error.
func writeFile(r io.Reader, root *os.Root, name string, mode fs.FileMode) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
