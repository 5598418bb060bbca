// Package archive copies files in and out of containers as tar streams.
//
//	Extract  the tar output of a container ──▶ files below a directory
//	Write    a local file or directory     ──▶ a tar stream
//
// The output of a container is untrusted. Extract therefore writes only files below the target,
// neither follows nor creates symlinks, and does not read a whole file into memory.
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

// ErrEmpty is the error of Extract if an archive contains no entries.
var ErrEmpty = errors.New("the archive is empty")

// Extract extracts the entry called name, and all entries below that entry, from the tar archive
// src. newPath is the new path of the entry, relative to root. Extract skips each entry that is not
// a file, a directory or a hard link, and calls onSkip for the entry. It replaces existing files,
// but not existing directories. It preserves permissions, but not owners and the setuid and setgid
// bits.
func Extract(src io.Reader, name string, root *os.Root, newPath string, onSkip func(entry, reason string)) error {
	isEmpty := true
	for r := tar.NewReader(src); ; {
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
		target, err := targetPath(h.Name, name, newPath)
		if err == nil {
			err = extractEntry(r, h, root, target, func(link string) (string, error) { return targetPath(link, name, newPath) }, onSkip)
		}
		if err != nil {
			return fmt.Errorf("extracting %.200q: %w", h.Name, err)
		}
	}
}

// targetPath returns the path of an entry in the root. It returns an error if the entry is neither
// called name nor below name.
func targetPath(entry, name, newPath string) (string, error) {
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
		return newPath, nil
	case name == ".":
		return path.Join(newPath, entry), nil
	case !ok:
		return "", fmt.Errorf("the path is not below the requested %s", name)
	}
	return path.Join(newPath, below), nil
}

// extractEntry writes one entry to the path target in root. linkTarget converts the entry name in a
// hard link to a path in root.
func extractEntry(r io.Reader, h *tar.Header, root *os.Root, target string, linkTarget func(string) (string, error), onSkip func(entry, reason string)) error {
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
		linkedPath, err := linkTarget(h.Linkname)
		if err != nil {
			return err
		}
		if info, err := root.Lstat(linkedPath); err != nil || !info.Mode().IsRegular() || linkedPath == target {
			onSkip(h.Name, "hard link to a file that was not extracted")
			return nil
		}
		if err := removeExisting(root, target); err != nil {
			return err
		}
		return root.Link(linkedPath, target)
	case tar.TypeSymlink:
		onSkip(h.Name, "symbolic link")
	default:
		onSkip(h.Name, "neither a regular file nor a directory")
	}
	return nil
}

// makeDir creates a directory and its parents. It returns an error if name exists and is not a
// directory. A symlink to a directory is an error, too.
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

// removeExisting removes the file or symlink called name, if it exists, so that a new file can
// replace it. It also creates the parent directories. It returns an error if name is a directory.
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

// writeFile creates a file and copies r to it. It returns an error if name exists, for example as a
// symlink.
func writeFile(r io.Reader, root *os.Root, name string, mode fs.FileMode) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
