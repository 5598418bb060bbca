package logs

import (
	"bytes"
	"io"
	"io/fs"
	"os"
)

// openNext opens the file that follows the current file. It returns nil if there is none.
func (r *reader) openNext() (next *scanner, err error) {
	if len(r.queue) > 0 {
		next, r.queue = r.queue[0], r.queue[1:]
		return next, nil
	}
	return next, retryRaces(func() error {
		files, err := r.listFiles(r.o.LaterAttempts)
		if err != nil {
			return err
		}
		current, err := r.findCurrent(files)
		if err != nil {
			return err
		}
		for i, f := range files {
			if f.Compare(current) > 0 {
				next, err = r.openNth(files, i)
				return err
			}
		}
		return nil
	})
}

// findCurrent finds the current file in a listing. Since the file was opened, it may have been
// renamed, then compressed, and then removed.
func (r *reader) findCurrent(files []File) (File, error) {
	cur := r.cur
	if cur.file.RotatedAt != "" {
		return cur.file, nil // the name has not changed, because a rotated file is not renamed again
	}
	curInfo, err := cur.f.Stat()
	if err != nil {
		return File{}, err
	}
	for _, f := range files {
		if f.Attempt != cur.file.Attempt || f.RotatedAt != "" && f.RotatedAt <= cur.newestRotatedAtOpen {
			continue
		}
		candidate, err := r.openFile(f)
		if err != nil {
			return File{}, err
		}
		isSame := candidate.isSameFile(curInfo) || f.Compressed && bytes.Equal(cur.head(), candidate.head())
		candidate.f.Close()
		if isSame {
			cur.file, r.notFoundCount = f, 0
			return f, nil
		}
	}
	if r.notFoundCount++; linkCount(curInfo) > 0 && r.notFoundCount < 3 { // the file was renamed during the listing
		return File{}, errRace
	}
	// The file was removed, or renamed to a name that ParseName rejects. All remaining
	// files are newer.
	return File{Attempt: cur.file.Attempt, RotatedAt: max(cur.newestRotatedAtOpen, "0")}, nil
}

// isSameFile reports whether info describes the file that s reads.
func (s *scanner) isSameFile(info fs.FileInfo) bool {
	ownInfo, err := s.f.Stat()
	return err == nil && os.SameFile(ownInfo, info)
}

// head returns the first bytes of a file, which identify the file because they contain the first
// timestamp.
func (s *scanner) head() []byte {
	var from io.Reader = io.NewSectionReader(s.f, 0, maxHeaderBytes)
	if s.file.Compressed {
		from = s.src
	}
	head := make([]byte, maxHeaderBytes)
	n, _ := io.ReadFull(from, head)
	return head[:n]
}
