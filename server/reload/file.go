// Package reload reads files that others replace while podd runs: certificates,
// tokens, a policy.
package reload

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// maxSize bounds a file: none of these is large.
const maxSize = 4 << 20

// File is what parse made of a file, anew whenever another file has its name or
// it was written. One that cannot be read or parsed any more changes nothing but
// the log: its last good content counts on. Safe for concurrent use.
type File[T any] struct {
	path  string
	parse func([]byte) (T, error)
	log   *slog.Logger

	mu    sync.Mutex // guards all following fields
	mark  mark       // of the file that was looked at last
	value T
}

// mark tells one writing of a file from another.
type mark struct {
	inode   uint64
	size    int64
	changed time.Time
}

// Open reads the file for the first time; what is wrong with it is an error.
func Open[T any](path string, log *slog.Logger, parse func([]byte) (T, error)) (*File[T], error) {
	f := &File[T]{path: path, parse: parse, log: log}
	var err error
	if f.mark, err = look(path); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	f.value, err = f.read()
	return f, err
}

// Get is the newest good content.
func (f *File[T]) Get() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, err := look(f.path)
	if err == nil && now == f.mark {
		return f.value
	}
	if now == f.mark {
		return f.value // gone, and said so
	}
	f.mark = now
	value, err := f.read()
	if err != nil {
		f.log.Error("its last good content counts on", "file", f.path, "err", err)
		return f.value
	}
	f.value = value
	f.log.Info("read anew", "file", f.path)
	return value
}

// look is the zero mark where there is no such file.
func look(path string) (mark, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return mark{}, err
	}
	return mark{st.Ino, st.Size, time.Unix(st.Mtim.Unix())}, nil
}

func (f *File[T]) read() (value T, err error) {
	file, err := os.OpenFile(f.path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return value, fmt.Errorf("reading %s: %w", f.path, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("it is no regular file")
	}
	if err != nil {
		return value, fmt.Errorf("reading %s: %w", f.path, err)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	switch {
	case err != nil:
		return value, fmt.Errorf("reading %s: %w", f.path, err)
	case len(text) > maxSize:
		return value, fmt.Errorf("reading %s: it has more than %d MiB", f.path, maxSize>>20)
	}
	if value, err = f.parse(text); err != nil {
		return value, fmt.Errorf("reading %s: %w", f.path, err)
	}
	return value, nil
}
