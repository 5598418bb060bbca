package rotate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"podd/runtime/logs"
	"podd/runtime/safepath"
)

// settleTime is the time after the last write until a file counts as complete, because
// the runtime may still drain the pipe of a container that has exited.
const settleTime = 2 * time.Second

// A directory is an open log directory with its files, the oldest first.
type directory struct {
	*safepath.Dir
	files []file
}

type file struct {
	logs.File
	size     int64
	modified time.Time
}

// needsWork returns the size of the newest file and whether the directory must be
// rotated: the file is too large or missing while the container runs, or there was an
// earlier attempt. It opens no files.
func (r *Rotator) needsWork(l Log) (size int64, needsWork bool) {
	newest := logs.File{Attempt: l.Attempt}
	info, err := os.Lstat(filepath.Join(r.o.Root, l.Dir, newest.Name()))
	switch {
	case err == nil:
		return info.Size(), info.Size() >= r.o.MaxSize || l.Attempt > 0
	case errors.Is(err, fs.ErrNotExist):
		return 0, l.ID != ""
	}
	return 0, true
}

// rotate rotates the logs in a directory and applies the limits. incomplete reports
// whether a file may still be written, so that the directory must be checked again.
func (r *Rotator) rotate(ctx context.Context, l Log) (incomplete bool, err error) {
	root, err := safepath.Open(r.o.Root)
	if err != nil {
		return false, err
	}
	defer root.Close()
	sub, err := root.Sub(l.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer sub.Close()
	d := &directory{Dir: sub}
	if err := d.read(); err != nil {
		return false, err
	}
	if l.ID != "" {
		if err := r.rotateNewest(ctx, d, l); err != nil {
			return false, err
		}
	}
	select {
	case r.files <- struct{}{}:
		defer func() { <-r.files }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	incomplete, err = r.shrink(ctx, d, l)
	return incomplete, errors.Join(err, r.drop(d, l, incomplete))
}

// read lists the log files and removes temporary files of an interrupted rotation.
func (d *directory) read() error {
	names, err := d.Names()
	if err != nil {
		return err
	}
	d.files = nil
	for _, name := range names {
		if _, ok := logs.AttemptOf(name); ok && strings.HasSuffix(name, temporary) {
			if err := d.Remove(name); err != nil {
				return err
			}
			continue
		}
		f, ok := logs.ParseName(name)
		if !ok {
			continue
		}
		size, modified, err := d.Stat(name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, safepath.ErrLink) || errors.Is(err, safepath.ErrNotRegular) {
			continue
		}
		if err != nil {
			return err
		}
		d.files = append(d.files, file{f, size, modified})
	}
	slices.SortFunc(d.files, func(a, b file) int { return a.Compare(b.File) })
	return nil
}

func (d *directory) find(f logs.File) *file {
	i := slices.IndexFunc(d.files, func(have file) bool { return have.File == f })
	if i < 0 {
		return nil
	}
	return &d.files[i]
}

// rotateNewest renames the newest file and makes the runtime open a new one if the file
// is too large or if an earlier podd renamed it and exited before the runtime reopened
// it. If the runtime fails, the file gets its name back, unless a new file shows that the
// runtime has reopened it.
func (r *Rotator) rotateNewest(ctx context.Context, d *directory, l Log) error {
	writing := logs.File{Attempt: l.Attempt}
	aside := logs.File{Attempt: l.Attempt, Rotated: d.uniqueTime(l.Attempt, time.Now())}
	now := d.find(writing)
	if now != nil && now.size < r.o.MaxSize {
		return nil
	}
	if now != nil {
		if err := d.Rename(writing.Name(), aside.Name()); err != nil {
			return err
		}
	}
	if err := r.reopen(ctx, l.ID); err != nil {
		if now == nil {
			return err
		}
		restored := d.RenameNew(aside.Name(), writing.Name())
		if errors.Is(restored, fs.ErrExist) {
			restored = nil
		}
		return errors.Join(err, restored)
	}
	return d.read()
}

// reopen makes the runtime reopen the log of a container, with a timeout.
func (r *Rotator) reopen(ctx context.Context, id string) error {
	limited, cancel := context.WithTimeout(ctx, reopenTimeout)
	defer cancel()
	err := r.o.Reopen(limited, id)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("the runtime did not reopen the log within %v: %w", reopenTimeout, err)
	}
	return err
}

// uniqueTime returns now in the format of file names. If necessary it returns a later
// time, because the times of file names have whole seconds and must be unique.
func (d *directory) uniqueTime(attempt uint32, now time.Time) string {
	for i := range d.files {
		f := &d.files[i]
		if f.Attempt != attempt || f.Rotated == "" {
			continue
		}
		if last, err := time.ParseInLocation(logs.RotatedLayout, f.Rotated, time.Local); err == nil && !now.After(last.Add(time.Second)) {
			now = last.Add(time.Second)
		}
	}
	return now.Format(logs.RotatedLayout)
}

// drop removes the oldest files until the limits are met. It keeps the newest file, and
// applies the limit of the total size only if incomplete is false, because files that are
// not compressed yet will become smaller.
func (r *Rotator) drop(d *directory, l Log, incomplete bool) error {
	total := int64(0)
	for i := range d.files {
		total += d.files[i].size
	}
	limit := r.o.MaxSize * int64(r.o.MaxFiles)
	var failed []error
	for len(d.files) > 1 {
		oldest := &d.files[0]
		tooMuch := total > limit && !incomplete
		if oldest.File == (logs.File{Attempt: l.Attempt}) || len(d.files) <= r.o.MaxFiles && !tooMuch {
			break
		}
		total -= oldest.size
		failed = append(failed, d.Remove(d.files[0].Name()))
		d.files = d.files[1:]
	}
	return errors.Join(failed...)
}
