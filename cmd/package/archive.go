package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// archiveFiles contains the files of a tar.gz archive, except the man pages. Each file has a path
// in the staging directory and a mode.
var archiveFiles = []struct {
	name, source string
	mode         fs.FileMode
}{
	{"podd", "podd", 0o755},
	{"sbom.cdx.json", "sbom.cdx.json", 0o644},
	{"config.yaml", "files/config.yaml", 0o644},
	{"podd.conflist", "files/podd.conflist", 0o644},
	{"podd.openrc", "files/podd.openrc", 0o755},
	{"podd.service", "files/podd.service", 0o644},
	{"completion/podd.bash", "completion/podd.bash", 0o644},
	{"completion/podd.fish", "completion/podd.fish", 0o644},
	{"completion/podd.zsh", "completion/podd.zsh", 0o644},
}

// writeArchive creates a tar.gz archive of the files in the directory stage. The parameter file is
// the path of the archive. All paths in the archive begin with base.
func (b builder) writeArchive(file, base, stage string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(z)
	for _, a := range archiveFiles {
		if err := b.addFile(w, path.Join(base, a.name), filepath.Join(stage, a.source), a.mode); err != nil {
			return err
		}
	}
	pages, err := os.ReadDir(filepath.Join(stage, "man")) // sorted by name
	if err != nil {
		return err
	}
	for _, p := range pages {
		if err := b.addFile(w, path.Join(base, "man", p.Name()), filepath.Join(stage, "man", p.Name()), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), z.Close(), f.Close())
}

// addFile copies a file to an archive. The parameter name is the path in the archive, and source is
// the path of the file to copy. The owner of the file in the archive is root.
func (b builder) addFile(w *tar.Writer, name, source string, mode fs.FileMode) error {
	content, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	h := &tar.Header{
		Typeflag: tar.TypeReg, Name: name, Mode: int64(mode), Size: int64(len(content)),
		ModTime: b.created, Uname: "root", Gname: "root", Format: tar.FormatUSTAR,
	}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err = w.Write(content)
	return err
}

// checksumsFile is the name of the file with the checksums.
const checksumsFile = "SHA256SUMS"

// writeChecksums writes the checksums of the files in dir, for sha256sum --check.
func writeChecksums(dir string) error {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return fmt.Errorf("computing checksums: %w", err)
	}
	var sums strings.Builder
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return fmt.Errorf("computing checksums: %w", err)
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), e.Name())
	}
	return os.WriteFile(filepath.Join(dir, checksumsFile), []byte(sums.String()), 0o644)
}
