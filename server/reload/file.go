// Package reload reads files that other programs replace while podd runs:
// certificates, tokens and policies.
package reload

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// maxSize is the maximum size of a file in bytes.
const maxSize = 4 << 20

// A File is the parsed content of a file, or of several files that belong together. The
// files are parsed again when any of them was replaced or written. If a file cannot be read
// or parsed, the error is logged and the previous content stays in use. A File is safe for
// concurrent use.
type File[T any] struct {
	paths []string
	parse func([][]byte) (T, error)
	log   *slog.Logger

	mu       sync.Mutex // guards all following fields
	versions []version  // versions of the files when they were last checked
	value    T
}

// A version contains the fields of stat that change when a file is replaced or written. It is zero
// if the file does not exist.
type version struct {
	dev, inode   uint64
	size         int64
	mtime, ctime int64 // Unix nanoseconds
}

// Open reads and parses the files. It returns an error if a file cannot be read or parsed.
// The argument of parse is the content of each file, in the order of paths.
func Open[T any](log *slog.Logger, parse func([][]byte) (T, error), paths ...string) (*File[T], error) {
	f := &File[T]{paths: paths, parse: parse, log: log, versions: statVersions(paths)}
	var err error
	f.value, err = f.read()
	return f, err
}

// ParseSingleFile converts a function that parses the content of a single file to a parse
// function for Open.
func ParseSingleFile[T any](parse func([]byte) (T, error)) func([][]byte) (T, error) {
	return func(files [][]byte) (T, error) { return parse(files[0]) }
}

// Get returns the parsed content of the files. It reads the files again if they have
// changed.
func (f *File[T]) Get() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	versions := statVersions(f.paths)
	if slices.Equal(versions, f.versions) {
		return f.value
	}
	f.versions = versions
	value, err := f.read()
	if err != nil {
		f.log.Error("reload failed; using previous content", "err", err)
		return f.value
	}
	f.value = value
	f.log.Info("file reloaded", "file", strings.Join(f.paths, ", "))
	return value
}

// statVersions returns the versions of the files.
func statVersions(paths []string) []version {
	versions := make([]version, len(paths))
	for i, path := range paths {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil {
			versions[i] = version{uint64(st.Dev), st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano()}
		}
	}
	return versions
}

func (f *File[T]) read() (value T, err error) {
	contents := make([][]byte, len(f.paths))
	for i, path := range f.paths {
		if contents[i], err = readFile(path); err != nil {
			return value, fmt.Errorf("reading %s: %w", path, err)
		}
	}
	if value, err = f.parse(contents); err != nil {
		return value, fmt.Errorf("reading %s: %w", strings.Join(f.paths, ", "), err)
	}
	return value, nil
}

func readFile(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, errors.Unwrap(err) // omit the path, because the caller adds it
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	}
	text, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	if err == nil && len(text) > maxSize {
		err = fmt.Errorf("larger than %d MiB", maxSize>>20)
	}
	return text, err
}
