package logs

import (
	"bytes"
	"io"
	"io/fs"
	"os"
)

// next opens the file that follows the current one; nil if there is none.
func (r *reader) next() (next *scanner, err error) {
	if len(r.queue) > 0 {
		next, r.queue = r.queue[0], r.queue[1:]
		return next, nil
	}
	return next, races(func() error {
		files, err := r.list(r.o.Restarts)
		if err != nil {
			return err
		}
		at, err := r.place(files)
		if err != nil {
			return err
		}
		for i, f := range files {
			if f.Compare(at) > 0 {
				next, err = r.openNth(files, i)
				return err
			}
		}
		return nil
	})
}

// place finds the current file in the listing: it may have been renamed, then compressed,
// then removed since it was opened.
func (r *reader) place(files []File) (File, error) {
	cur := r.cur
	if cur.file.Rotated != "" {
		return cur.file, nil // these names do not change
	}
	mine, err := cur.f.Stat()
	if err != nil {
		return File{}, err
	}
	for _, f := range files {
		if f.Attempt != cur.file.Attempt || f.Rotated != "" && f.Rotated <= cur.after {
			continue
		}
		other, err := r.openFile(f)
		if err != nil {
			return File{}, err
		}
		same := other.is(mine) || f.Compressed && bytes.Equal(cur.head(), other.head())
		other.f.Close()
		if same {
			cur.file, r.lost = f, 0
			return f, nil
		}
	}
	if r.lost++; links(mine) > 0 && r.lost < 3 { // renamed during the listing
		return File{}, errRace
	}
	// Removed, or renamed to another kind of name: all remaining files are newer.
	return File{Attempt: cur.file.Attempt, Rotated: max(cur.after, "0")}, nil
}

func (s *scanner) is(info fs.FileInfo) bool {
	mine, err := s.f.Stat()
	return err == nil && os.SameFile(mine, info)
}

// head returns the beginning of a file. The first timestamp in it identifies the file.
func (s *scanner) head() []byte {
	var from io.Reader = io.NewSectionReader(s.f, 0, maxHeader)
	if s.file.Compressed {
		from = s.src
	}
	head := make([]byte, maxHeader)
	n, _ := io.ReadFull(from, head)
	return head[:n]
}
