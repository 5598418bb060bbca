package rotate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"podd/manifest/order"
	"podd/runtime/logs"
	"podd/runtime/safepath"
)

// settleTime is the time after which a file without further writes is complete. The time is
// necessary because the runtime may still read the last output of a container that has exited.
const settleTime = 2 * time.Second

// A directory is the open log directory of a container.
type directory struct {
	*safepath.Dir
	files []file // log files, the oldest first
}

// A file is a log file in a directory.
type file struct {
	logs.File
	size       int64
	modifiedAt time.Time
}

// needsWork returns the size in bytes of the newest file, and whether rotate must be called for
// the directory. rotate must be called if the file is too large, if the file is missing while
// the container runs, or if the container has earlier attempts. needsWork opens no files.
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

// rotate rotates the logs in a directory and applies the limits. isIncomplete reports whether the
// runtime may still write to a file that must be shrunk. If isIncomplete is true, the caller must
// call rotate again.
func (r *Rotator) rotate(ctx context.Context, l Log) (isIncomplete bool, err error) {
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
	if err := d.readFiles(); err != nil {
		return false, err
	}
	if l.ID != "" {
		if err := r.rotateNewest(ctx, d, l); err != nil {
			return false, err
		}
	}
	select {
	case r.filesSlot <- struct{}{}:
		defer func() { <-r.filesSlot }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	isIncomplete, err = r.shrink(ctx, d, l)
	maxBytes := r.o.MaxSize * int64(r.o.MaxFiles)
	if isIncomplete {
		maxBytes = math.MaxInt64 // files that are not compressed yet will become smaller
	}
	return isIncomplete, errors.Join(err, d.removeOldest(l, r.o.MaxFiles, maxBytes))
}

// readFiles sets d.files to the log files in the directory. It removes temporary files of an
// interrupted rotation, and ignores links and other files that are not regular.
func (d *directory) readFiles() error {
	names, err := d.Names()
	if err != nil {
		return err
	}
	d.files = nil
	for _, name := range names {
		if _, ok := logs.ParseAttempt(name); ok && strings.HasSuffix(name, temporarySuffix) {
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
	order.Slice(d.files, func(a, b file) int { return a.Compare(b.File) })
	return nil
}

// find returns the file f, or nil if the directory does not contain f.
func (d *directory) find(f logs.File) *file {
	i := slices.IndexFunc(d.files, func(other file) bool { return other.File == f })
	if i < 0 {
		return nil
	}
	return &d.files[i]
}

// rotateNewest renames the newest file if it is too large, and makes the runtime open a new file.
// First it removes the oldest files, so that the new file does not exceed MaxFiles. If there is no
// newest file, rotateNewest only calls the runtime, because podd may have exited between the rename
// and the call. If the call fails, rotateNewest restores the name of the file, unless the runtime has
// created a new file nevertheless.
func (r *Rotator) rotateNewest(ctx context.Context, d *directory, l Log) error {
	writing := logs.File{Attempt: l.Attempt}
	rotated := logs.File{Attempt: l.Attempt, RotatedAt: d.uniqueTime(l.Attempt, time.Now())}
	now := d.find(writing)
	if now != nil && now.size < r.o.MaxSize {
		return nil
	}
	// Make room for the new file now, because compressing the other files may take long. The error is
	// ignored, because removeOldest is called again after the compression.
	_ = d.removeOldest(l, r.o.MaxFiles-1, math.MaxInt64)
	if now != nil {
		if err := d.Rename(writing.Name(), rotated.Name()); err != nil {
			return err
		}
	}
	if err := r.reopen(ctx, l.ID); err != nil {
		if now == nil {
			return err
		}
		restored := d.RenameNoReplace(rotated.Name(), writing.Name())
		if errors.Is(restored, fs.ErrExist) {
			restored = nil
		}
		return errors.Join(err, restored)
	}
	return d.readFiles()
}

// reopen makes the runtime reopen the log of a container. It fails after reopenTimeout.
func (r *Rotator) reopen(ctx context.Context, id string) error {
	reopenCtx, cancel := context.WithTimeout(ctx, reopenTimeout)
	defer cancel()
	err := r.o.Reopen(reopenCtx, id)
	if err != nil && reopenCtx.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("the runtime did not reopen the log within %v: %w", reopenTimeout, err)
	}
	return err
}

// uniqueTime returns now, the present time, in the format of the names of rotated files. These
// times have whole seconds and must be unique. So if a rotated file of the attempt has this time or
// a later time, uniqueTime returns the second after the time of that file.
func (d *directory) uniqueTime(attempt uint32, now time.Time) string {
	for i := range d.files {
		f := &d.files[i]
		if f.Attempt != attempt || f.RotatedAt == "" {
			continue
		}
		if last, err := time.ParseInLocation(logs.RotatedLayout, f.RotatedAt, time.Local); err == nil && !now.After(last.Add(time.Second)) {
			now = last.Add(time.Second)
		}
	}
	return now.Format(logs.RotatedLayout)
}

// removeOldest removes the oldest files until the directory has at most maxFiles files with maxBytes
// bytes. It keeps the newest file.
func (d *directory) removeOldest(l Log, maxFiles int, maxBytes int64) error {
	total := int64(0)
	for i := range d.files {
		total += d.files[i].size
	}
	var errs []error
	for len(d.files) > 1 && (len(d.files) > maxFiles || total > maxBytes) {
		oldest := d.files[0]
		if oldest.File == (logs.File{Attempt: l.Attempt}) {
			break
		}
		total -= oldest.size
		errs = append(errs, d.Remove(oldest.Name()))
		d.files = d.files[1:]
	}
	return errors.Join(errs...)
}
