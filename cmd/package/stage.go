package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// stageDirs contains the directories of the repository that fillStage copies. The keys are the
// names of the copies.
var stageDirs = map[string]string{
	"files":      "cmd/package/files",
	"completion": "cmd/podd/internal/offline/completion",
}

// manDir is the directory of the man pages in the repository. fillStage compresses the man pages
// into the directory man.
const manDir = "cmd/podd/docs/man"

// fillStage creates in dir all files from which the packages of an architecture are made. The time
// of the files is the time of the commit, because nfpm copies the times of some files to the
// packages.
func (b builder) fillStage(ctx context.Context, a arch, dir string) error {
	binary := filepath.Join(dir, "podd")
	if err := b.buildBinary(ctx, a, binary); err != nil {
		return err
	}
	if err := b.writeSBOM(ctx, binary, filepath.Join(dir, "sbom.cdx.json")); err != nil {
		return err
	}
	for target, source := range stageDirs {
		if err := os.CopyFS(filepath.Join(dir, target), os.DirFS(filepath.Join(b.root, source))); err != nil {
			return fmt.Errorf("copying %s: %w", source, err)
		}
	}
	if err := compressFiles(filepath.Join(b.root, manDir), filepath.Join(dir, "man")); err != nil {
		return fmt.Errorf("compressing the man pages: %w", err)
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, b.created, b.created)
	})
}

// compressFiles compresses each file in a directory into another directory, with the suffix .gz.
// sourceDir and targetDir are the paths of the two directories.
func compressFiles(sourceDir, targetDir string) error {
	entries, err := os.ReadDir(sourceDir)
	if err != nil {
		return err
	}
	if err := os.Mkdir(targetDir, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(sourceDir, e.Name()))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(targetDir, e.Name()+".gz"), compress(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compress returns text in the format of gzip. Its header contains neither a name nor a time.
func compress(text []byte) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(text)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		panic(fmt.Sprintf("compressing in memory: %v", err)) // impossible, because the level is valid
	}
	return out.Bytes()
}
