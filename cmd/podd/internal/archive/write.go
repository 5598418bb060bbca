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

// Write writes the local file or directory, and everything below it, as a tar archive to w.
// The entry of local is called name. If local is a symlink, Write follows it; symlinks below
// are written as such. It skips other kinds of files and calls skipped for them.
func Write(w io.Writer, local, name string, skipped func(entry, why string)) error {
	archive := tar.NewWriter(w)
	info, err := os.Stat(local)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		err = writeEntry(archive, local, name, info, skipped)
	default:
		err = writeDir(archive, local, name, skipped)
	}
	if err != nil {
		return err
	}
	return archive.Close()
}

func writeDir(w *tar.Writer, local, name string, skipped func(entry, why string)) error {
	root, err := filepath.EvalSymlinks(local)
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
			return nil // deleted in the meantime
		}
		if err != nil {
			return err
		}
		return writeEntry(w, at, path.Join(name, filepath.ToSlash(below)), info, skipped)
	})
}

func writeEntry(w *tar.Writer, local, name string, info fs.FileInfo, skipped func(entry, why string)) error {
	link := ""
	switch mode := info.Mode(); {
	case mode.Type() == fs.ModeSymlink:
		var err error
		if link, err = os.Readlink(local); err != nil {
			return err
		}
	case !mode.IsRegular() && !mode.IsDir():
		skipped(local, "neither a file nor a directory")
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
	f, err := os.Open(local)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.CopyN(w, f, info.Size()); err != nil {
		return fmt.Errorf("reading %s, which changed meanwhile: %w", local, err)
	}
	return nil
}
