// Package reload reads files that others replace while podd runs: certificates,
// tokens, a policy.
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
	"time"

	"golang.org/x/sys/unix"
)

// maxSize bounds a file: none of these is large.
const maxSize = 4 << 20

// File is what parse made of a file, or of several that belong together, anew
// whenever another file has such a name or one was written. What cannot be read
// or parsed any more changes nothing but the log: the last good content counts
// on. Safe for concurrent use.
type File[T any] struct {
	paths []string
	parse func([][]byte) (T, error)
	log   *slog.Logger

	mu    sync.Mutex // guards all following fields
	marks []mark     // of the files that were looked at last
	value T
}

// mark tells one writing of a file from another.
type mark struct {
	inode   uint64
	size    int64
	changed time.Time
}

// Open reads the files for the first time; what is wrong with them is an error.
// parse is given the content of each.
func Open[T any](log *slog.Logger, parse func([][]byte) (T, error), paths ...string) (*File[T], error) {
	f := &File[T]{paths: paths, parse: parse, log: log, marks: look(paths)}
	var err error
	f.value, err = f.read()
	return f, err
}

// Single makes a parse for Open of one that takes the content of the only file.
func Single[T any](parse func([]byte) (T, error)) func([][]byte) (T, error) {
	return func(files [][]byte) (T, error) { return parse(files[0]) }
}

// Get is the newest good content.
func (f *File[T]) Get() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := look(f.paths)
	if slices.Equal(now, f.marks) {
		return f.value
	}
	f.marks = now
	value, err := f.read()
	if err != nil {
		f.log.Error("the last good content counts on", "err", err)
		return f.value
	}
	f.value = value
	f.log.Info("read anew", "file", strings.Join(f.paths, ", "))
	return value
}

// look has a zero mark for a file that is not there.
func look(paths []string) []mark {
	marks := make([]mark, len(paths))
	for i, path := range paths {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil {
			marks[i] = mark{st.Ino, st.Size, time.Unix(st.Mtim.Unix())}
		}
	}
	return marks
}

func (f *File[T]) read() (value T, err error) {
	all := make([][]byte, len(f.paths))
	for i, path := range f.paths {
		if all[i], err = readFile(path); err != nil {
			return value, fmt.Errorf("reading %s: %w", path, err)
		}
	}
	if value, err = f.parse(all); err != nil {
		return value, fmt.Errorf("reading %s: %w", strings.Join(f.paths, ", "), err)
	}
	return value, nil
}

func readFile(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, errors.Unwrap(err) // the path is told by the caller
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	}
	text, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	if err == nil && len(text) > maxSize {
		err = fmt.Errorf("it has more than %d MiB", maxSize>>20)
	}
	return text, err
}
