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

// isTooLarge reports whether a file was rotated so late that only its end is kept.
func (r *Rotator) isTooLarge(f *file) bool { return f.size > 2*r.o.MaxSize }

// temporary is the suffix of files that are being written by this package.
const temporary = ".tmp"

// shrink compresses rotated files except the newest of each attempt, which may still be
// read, and truncates files that are too large to their end. incomplete reports whether
// it skipped a file that may still be written.
func (r *Rotator) shrink(ctx context.Context, d *directory, l Log) (incomplete bool, err error) {
	var failed []error
	for i := range d.files {
		f := &d.files[i]
		ended := f.Attempt < l.Attempt || l.ID == ""
		switch {
		case f.Compressed, f.Rotated == "" && (!ended || !r.isTooLarge(f)):
			continue
		case d.isNewestRotated(i) && !r.isTooLarge(f):
			continue
		case time.Since(f.modified) < settleTime:
			incomplete = true
			continue
		}
		skip := int64(0)
		if r.isTooLarge(f) {
			skip = f.size - r.o.MaxSize
		}
		failed = append(failed, d.rewrite(ctx, f, skip, f.Rotated != "" && !d.isNewestRotated(i)))
	}
	return incomplete, errors.Join(failed...)
}

// isNewestRotated reports whether a file is the newest rotated one of its attempt.
func (d *directory) isNewestRotated(i int) bool {
	return d.files[i].Rotated != "" && (i+1 == len(d.files) || d.files[i+1].Attempt != d.files[i].Attempt || d.files[i+1].Rotated == "")
}

// rewrite replaces a file with its content after an offset, beginning with a whole line.
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

// write copies a file from the first line that begins at or after an offset.
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
	in := bufio.NewReaderSize(contextReader{ctx, from}, 64<<10)
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

// A contextReader is a reader that fails when its context is done.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
