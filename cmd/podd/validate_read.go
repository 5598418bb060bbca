package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"podd/manifest"
	"podd/manifest/source"
)

// textFile is one text to check, or why it could not be read.
type textFile struct {
	path string // as the user named it; of a URL without userinfo and query
	kind string // manifest.KindFile or KindURL
	data []byte
	err  error
}

// readTexts reads files, the manifests of directories, URLs and "-". It goes
// on after an error, so that all of them can be told.
func readTexts(ctx context.Context, names []string, stdin io.Reader) []textFile {
	var texts []textFile
	for _, name := range names {
		switch {
		case name == "-":
			data, err := readCapped(stdin)
			texts = append(texts, textFile{"<stdin>", manifest.KindFile, data, err})
		case strings.HasPrefix(name, "http://"), strings.HasPrefix(name, "https://"):
			texts = append(texts, fetchText(ctx, name))
		default:
			texts = append(texts, readPath(name)...)
		}
	}
	return texts
}

func readPath(path string) []textFile {
	info, err := os.Stat(path)
	if err != nil {
		return []textFile{{path: path, err: because(err)}}
	}
	if !info.IsDir() {
		return []textFile{readRegular(path)}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return []textFile{{path: path, err: because(err)}}
	}
	var texts []textFile
	for _, e := range entries { // sorted by name
		file := filepath.Join(path, e.Name())
		if source.IsManifest(e.Name()) && !isDir(file) {
			texts = append(texts, readRegular(file))
		}
	}
	if len(texts) == 0 {
		return []textFile{{path: path, err: errors.New("no manifests here; want names that end in .yaml, .yml or .json")}}
	}
	return texts
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// readRegular opens without waiting, so that a FIFO cannot hang the check.
func readRegular(path string) textFile {
	t := textFile{path: path, kind: manifest.KindFile}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.err = because(err)
		return t
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		t.err = errors.New("not a regular file")
		return t
	}
	t.data, t.err = readCapped(f)
	return t
}

func readCapped(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, source.MaxSize+1))
	if err != nil {
		return nil, because(err)
	}
	if len(data) > source.MaxSize {
		return nil, fmt.Errorf("larger than %d MiB; split it", source.MaxSize>>20)
	}
	return data, nil
}

// because drops the operation and path that the line names anyway.
func because(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("cannot be read: %w", p.Err)
	}
	return fmt.Errorf("cannot be read: %w", err)
}
