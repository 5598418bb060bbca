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

// isTooLarge reports whether a file is more than twice as large as the limit. shrink removes the
// beginning of such a file.
func (r *Rotator) isTooLarge(f *file) bool { return f.size > 2*r.o.MaxSize }

// temporarySuffix is the suffix of files that this package is still writing.
const temporarySuffix = ".tmp"

// shrink compresses rotated files. It does not compress the newest rotated file of each attempt,
// because log agents may still read this file. If a file is too large, shrink keeps only the end
// of the file. isIncomplete reports whether shrink skipped a file to which the runtime may still
// write.
func (r *Rotator) shrink(ctx context.Context, d *directory, l Log) (isIncomplete bool, err error) {
	var errs []error
	for i := range d.files {
		f := &d.files[i]
		hasEnded := f.Attempt < l.Attempt || l.ID == ""
		switch {
		case f.Compressed, f.RotatedAt == "" && (!hasEnded || !r.isTooLarge(f)):
			continue
		case d.isNewestRotated(i) && !r.isTooLarge(f):
			continue
		case time.Since(f.modifiedAt) < settleTime:
			isIncomplete = true
			continue
		}
		skip := int64(0)
		if r.isTooLarge(f) {
			skip = f.size - r.o.MaxSize
		}
		errs = append(errs, d.rewrite(ctx, f, skip, f.RotatedAt != "" && !d.isNewestRotated(i)))
	}
	return isIncomplete, errors.Join(errs...)
}

// isNewestRotated reports whether d.files[i] is the newest rotated file of its attempt.
func (d *directory) isNewestRotated(i int) bool {
	return d.files[i].RotatedAt != "" && (i+1 == len(d.files) || d.files[i+1].Attempt != d.files[i].Attempt || d.files[i+1].RotatedAt == "")
}

// rewrite replaces a file with a part of its content. This part starts with the first line that
// begins at or after skip, an offset in bytes. If compress is true, the new file is compressed.
func (d *directory) rewrite(ctx context.Context, f *file, skip int64, compress bool) error {
	src, err := d.OpenFile(f.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer src.Close()
	dst := f.File
	dst.Compressed = compress
	temp := dst.Name() + temporarySuffix
	size, err := d.writeTail(ctx, temp, src, skip, dst.Compressed)
	if err == nil {
		err = d.Rename(temp, dst.Name())
	}
	if err != nil {
		return errors.Join(err, d.Remove(temp))
	}
	if dst.Compressed {
		err = d.Remove(f.Name())
	}
	f.File, f.size = dst, size
	return err
}

// writeTail creates a file with the given name. The new file contains all lines of src that begin
// at or after skip, an offset in bytes. writeTail returns the size of the new file in bytes.
func (d *directory) writeTail(ctx context.Context, name string, src *os.File, skip int64, compress bool) (size int64, err error) {
	info, err := src.Stat()
	if err != nil {
		return 0, err
	}
	dst, err := d.Create(name, uint32(info.Mode().Perm()))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	buffered := bufio.NewReaderSize(contextReader{ctx, src}, 64<<10)
	if skip > 0 {
		if _, err := src.Seek(skip-1, io.SeekStart); err != nil {
			return 0, err
		}
		if err := skipLine(buffered); err != nil {
			return 0, err
		}
	}
	if err := copyTo(dst, buffered, compress); err != nil {
		return 0, err
	}
	return dst.Seek(0, io.SeekCurrent)
}

// copyTo copies data from src to dst. If compress is true, it writes in gzip format.
func copyTo(dst io.Writer, src io.Reader, compress bool) error {
	if !compress {
		_, err := io.Copy(dst, src)
		return err
	}
	z, err := gzip.NewWriterLevel(dst, gzip.BestSpeed)
	if err != nil {
		return err
	}
	_, err = io.Copy(z, src)
	return errors.Join(err, z.Close())
}

// skipLine reads from r up to and including the next newline.
func skipLine(r *bufio.Reader) error {
	for {
		_, err := r.ReadSlice('\n')
		switch {
		case err == nil, errors.Is(err, io.EOF):
			return nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

// A contextReader is a reader. Its Read fails after its context is done.
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
