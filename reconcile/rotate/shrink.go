package rotate

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// tooLarge is a file that a look came too late for: only its end is kept.
func (r *Rotator) tooLarge(f *file) bool { return f.size > 2*r.o.MaxSize }

// temporary ends the names of files that are not complete.
const temporary = ".tmp"

// shrink compresses what was put aside, but for the last file of each attempt,
// which readers may be at or want the end of, and cuts to its end what is far too
// large. again says that something is not complete yet.
func (r *Rotator) shrink(ctx context.Context, d *directory, l Log) (again bool, err error) {
	var failed []error
	for i := range d.files {
		f := &d.files[i]
		ended := f.Attempt < l.Attempt || l.ID == ""
		switch {
		case f.Compressed, f.Rotated == "" && (!ended || !r.tooLarge(f)):
			continue
		case d.newestAside(i) && !r.tooLarge(f):
			continue
		case time.Since(f.modified) < quiet:
			again = true
			continue
		}
		skip := int64(0)
		if r.tooLarge(f) {
			skip = f.size - r.o.MaxSize
		}
		failed = append(failed, d.rewrite(ctx, f, skip, f.Rotated != "" && !d.newestAside(i)))
	}
	return again, errors.Join(failed...)
}

// newestAside tells whether a file was put aside and no later one of its attempt.
func (d *directory) newestAside(i int) bool {
	return d.files[i].Rotated != "" && (i+1 == len(d.files) || d.files[i+1].Attempt != d.files[i].Attempt || d.files[i+1].Rotated == "")
}

// rewrite puts what lies behind an offset of a file in its place, from a whole
// line on.
func (d *directory) rewrite(ctx context.Context, f *file, skip int64, compress bool) error {
	from, err := d.File(f.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer from.Close()
	to := f.File
	to.Compressed = compress
	temp := to.Name() + temporary
	size, err := d.write(ctx, temp, from, skip, to.Compressed)
	if err == nil {
		err = d.Rename(temp, to.Name())
	}
	if err != nil {
		return errors.Join(err, d.Remove(temp))
	}
	if to.Compressed {
		err = d.Remove(f.Name())
	}
	f.File, f.size = to, size
	return err
}

// write copies a file from the first line at or behind an offset.
func (d *directory) write(ctx context.Context, name string, from *os.File, skip int64, compress bool) (size int64, err error) {
	info, err := from.Stat()
	if err != nil {
		return 0, err
	}
	out, err := d.Create(name, uint32(info.Mode().Perm()))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	in := bufio.NewReaderSize(withContext{ctx, from}, 64<<10)
	if skip > 0 {
		if _, err := from.Seek(skip-1, io.SeekStart); err != nil {
			return 0, err
		}
		if err := skipLine(in); err != nil {
			return 0, err
		}
	}
	if err := copyTo(out, in, compress); err != nil {
		return 0, err
	}
	return out.Seek(0, io.SeekCurrent)
}

func copyTo(out io.Writer, in io.Reader, compress bool) error {
	if !compress {
		_, err := io.Copy(out, in)
		return err
	}
	z, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return err
	}
	_, err = io.Copy(z, in)
	return errors.Join(err, z.Close())
}

// skipLine reads past the next newline.
func skipLine(in *bufio.Reader) error {
	for {
		_, err := in.ReadSlice('\n')
		switch {
		case err == nil, errors.Is(err, io.EOF):
			return nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

// withContext ends a read with its context.
type withContext struct {
	ctx context.Context
	r   io.Reader
}

func (c withContext) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
