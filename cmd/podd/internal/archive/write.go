package archive

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Write writes a tar archive to w. The archive contains the file or directory at localPath and, for
// a directory, everything below it. In the archive, name replaces this path. If the path is a
// symlink, Write follows the symlink. Symlinks below a directory are written as symlinks. Write
// skips each file that is not a regular file, a directory or a symlink, and calls onSkip for the
// file.
func Write(w io.Writer, localPath, name string, onSkip func(entry, reason string)) error {
	archive := tar.NewWriter(w)
	info, err := os.Stat(localPath)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		err = writeEntry(archive, localPath, name, info, onSkip)
	default:
		err = writeDir(archive, localPath, name, onSkip)
	}
	if err != nil {
		return err
	}
	return archive.Close()
}

// writeDir writes the directory at localPath and everything below it. In the archive, name replaces
// this path.
func writeDir(w *tar.Writer, localPath, name string, onSkip func(entry, reason string)) error {
	root, err := filepath.EvalSymlinks(localPath)
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, at)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the file was deleted after the directory was read
		}
		if err != nil {
			return err
		}
		return writeEntry(w, at, path.Join(name, filepath.ToSlash(below)), info, onSkip)
	})
}

// writeEntry writes one file, directory or symlink. name is its path in the archive. writeEntry
// does not write the files in a directory.
func writeEntry(w *tar.Writer, localPath, name string, info fs.FileInfo, onSkip func(entry, reason string)) error {
	link := ""
	switch mode := info.Mode(); {
	case mode.Type() == fs.ModeSymlink:
		var err error
		if link, err = os.Readlink(localPath); err != nil {
			return err
		}
	case !mode.IsRegular() && !mode.IsDir():
		onSkip(localPath, "neither a regular file nor a directory")
		return nil
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	h.Name = name
	if info.IsDir() {
		h.Name += "/"
	}
	if err := w.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(localPath)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.CopyN(w, f, info.Size()); err != nil {
		return fmt.Errorf("reading %s, which changed while it was copied: %w", localPath, err)
	}
	return nil
}
