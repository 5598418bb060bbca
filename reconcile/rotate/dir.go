package rotate

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"podd/runtime/beneath"
	"podd/runtime/logs"
)

// quiet is how long a file was not written to before it counts as complete: the
// runtime may still drain the pipe of a container that has ended.
const quiet = 2 * time.Second

// directory is an open log directory with its files, oldest first.
type directory struct {
	*beneath.Dir
	files []file
}

type file struct {
	logs.File
	size     int64
	modified time.Time
}

// cause tells the size of the newest file and whether there is something to do:
// it is too large, it is missing though the container runs, or an earlier
// attempt left something. It opens nothing.
func (r *Rotator) cause(l Log) (size int64, cause bool) {
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

// tend brings one log directory within its bounds. again says that something is
// not complete yet.
func (r *Rotator) tend(ctx context.Context, l Log) (again bool, err error) {
	root, err := beneath.Open(r.o.Root)
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
		if err := r.putAside(ctx, d, l); err != nil {
			return false, err
		}
	}
	again, err = r.shrink(ctx, d, l)
	return again, errors.Join(err, r.drop(d, l, again))
}

// read lists the log files, and removes what an interrupted rotation left.
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
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, beneath.ErrLink) || errors.Is(err, beneath.ErrNotRegular) {
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

// putAside has the runtime begin a new file when the one it writes to is too
// large, or was put aside by a podd that then died.
func (r *Rotator) putAside(ctx context.Context, d *directory, l Log) error {
	writing := logs.File{Attempt: l.Attempt}
	aside := logs.File{Attempt: l.Attempt, Rotated: d.stamp(l.Attempt, time.Now())}
	now := d.find(writing)
	if now != nil && now.size < r.o.MaxSize {
		return nil
	}
	if now != nil {
		if err := d.Rename(writing.Name(), aside.Name()); err != nil {
			return err
		}
	}
	if err := r.o.Reopen(ctx, l.ID); err != nil {
		if now != nil {
			err = errors.Join(err, d.Rename(aside.Name(), writing.Name()))
		}
		return err
	}
	return d.read()
}

// stamp is a time for a name, later than that of every file put aside before:
// names have whole seconds.
func (d *directory) stamp(attempt uint32, now time.Time) string {
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

// drop removes the oldest files until the rest is within the bounds. The one
// that is written to, or was last, stays; and none is too large before all are
// as small as they will be.
func (r *Rotator) drop(d *directory, l Log, again bool) error {
	total := int64(0)
	for i := range d.files {
		total += d.files[i].size
	}
	limit := r.o.MaxSize * int64(r.o.MaxFiles)
	var failed []error
	for len(d.files) > 1 {
		oldest := &d.files[0]
		tooMuch := total > limit && !again
		if oldest.File == (logs.File{Attempt: l.Attempt}) || len(d.files) <= r.o.MaxFiles && !tooMuch {
			break
		}
		total -= oldest.size
		failed = append(failed, d.Remove(d.files[0].Name()))
		d.files = d.files[1:]
	}
	return errors.Join(failed...)
}
