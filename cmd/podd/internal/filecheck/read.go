package filecheck

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

// A Text is a file to check, or the error of reading it.
type Text struct {
	path string // as the user wrote it, but a URL without userinfo, query and fragment
	kind string // manifest.KindFile or KindURL
	data []byte
	err  error
}

// Read reads files, the manifests in directories, URLs and "-" (stdin). It continues
// after an error.
func Read(ctx context.Context, names []string, stdin io.Reader) []Text {
	var texts []Text
	for _, name := range names {
		switch {
		case name == "-":
			data, err := readCapped(stdin)
			texts = append(texts, Text{"<stdin>", manifest.KindFile, data, err})
		case strings.HasPrefix(name, "http://"), strings.HasPrefix(name, "https://"):
			texts = append(texts, fetchText(ctx, name))
		default:
			texts = append(texts, readPath(name)...)
		}
	}
	return texts
}

// readPath reads a file, or the manifests in a directory.
func readPath(path string) []Text {
	info, err := os.Stat(path)
	if err != nil {
		return []Text{{path: path, err: ReadError(err)}}
	}
	if !info.IsDir() {
		return []Text{readRegular(path)}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return []Text{{path: path, err: ReadError(err)}}
	}
	var texts []Text
	for _, e := range entries { // sorted by name
		file := filepath.Join(path, e.Name())
		if source.IsManifest(e.Name()) && !isDir(file) {
			texts = append(texts, readRegular(file))
		}
	}
	if len(texts) == 0 {
		return []Text{{path: path, err: errors.New("the directory has no manifests; their names must end in .yaml, .yml or .json")}}
	}
	return texts
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// readRegular reads a regular file. Another kind of file is an error. It does not block on a
// FIFO.
func readRegular(path string) Text {
	t := Text{path: path, kind: manifest.KindFile}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.err = ReadError(err)
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

// readCapped reads at most source.MaxSize bytes. More are an error.
func readCapped(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, source.MaxSize+1))
	if err != nil {
		return nil, ReadError(err)
	}
	if len(data) > source.MaxSize {
		return nil, fmt.Errorf("larger than %d MiB; split the file", source.MaxSize>>20)
	}
	return data, nil
}

// ReadError returns err without its operation and path, because the problem that contains
// the message names the file.
func ReadError(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("cannot be read: %w", p.Err)
	}
	return fmt.Errorf("cannot be read: %w", err)
}
