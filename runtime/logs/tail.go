package logs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	// blockSize is how much is read at a time in backward direction.
	blockSize = 64 << 10
	// maxLookBack limits the search for the beginning of a counted line after enough lines
	// were found: its parts are usually close to each other.
	maxLookBack = 4 << 20
)

// tail finds where the last lines of a container's output begin by reading its files
// backwards. A line ends with an entry that is not Partial, and may begin many entries
// earlier, with entries of the other stream in between. Therefore each stream has its own
// beginning.
type tail struct {
	want    int
	only    Stream // "": both
	count   int
	streams map[Stream]*tailStream
	past    int64 // bytes read since enough lines were found
}

type tailStream struct {
	// open: the earliest entry found belongs to a counted line, which may begin earlier.
	open bool
}

// find returns where each stream begins in this file. enough reports that earlier files are
// not needed. It must be called for a container's files, newest first. An incomplete last
// line is left for later.
func (t *tail) find(f *os.File) (from map[Stream]int64, enough bool, err error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, false, err
	}
	newest := t.streams == nil
	if newest {
		t.streams = map[Stream]*tailStream{}
	}
	from = map[Stream]int64{}
	complete, err := backwards(f, size, func(at, length int64, head []byte) bool {
		if t.count >= t.want {
			t.past += length
		}
		enough = t.addEntry(parse(head), at, from)
		return !enough
	})
	for _, s := range []Stream{Stdout, Stderr, ""} {
		if _, ok := from[s]; !ok && newest { // text that will be written later
			from[s] = complete
		}
	}
	return from, enough, err
}

// addEntry processes the entry at an offset, which is lower than all previous ones.
func (t *tail) addEntry(e Entry, at int64, from map[Stream]int64) (enough bool) {
	if t.only != "" && e.Stream != t.only && !e.Malformed {
		return false
	}
	s := t.streams[e.Stream]
	first := s == nil
	if first {
		s = &tailStream{}
		t.streams[e.Stream] = s
	}
	if !e.Partial || first { // the end of a line
		s.open = t.count < t.want
		if s.open {
			t.count++
		}
	}
	if s.open {
		from[e.Stream] = at
	}
	return t.enough()
}

func (t *tail) enough() bool {
	if t.count < t.want {
		return false
	}
	if t.past > maxLookBack {
		return true
	}
	for _, s := range t.streams {
		if s.open {
			return false
		}
	}
	return true
}

// backwards calls see with the offset, the length and the beginning of each line of a file
// that ends with a newline, the last one first, until see returns false. The beginning has
// at most maxHeader bytes. complete is the offset after the last newline.
func backwards(f *os.File, size int64, see func(at, length int64, head []byte) bool) (complete int64, err error) {
	block := make([]byte, blockSize+maxHeader)
	end := int64(-1) // offset of the newline that ends the current line
	for start := size; start > 0; {
		n := min(start, blockSize)
		start -= n
		// Some more, for the beginning of a line near the end.
		got, err := f.ReadAt(block[:n+maxHeader], start)
		if err != nil && !errors.Is(err, io.EOF) {
			return complete, err
		}
		text := block[:got]
		for i := min(int(n), got); ; {
			if i = bytes.LastIndexByte(text[:i], '\n'); i < 0 {
				break
			}
			at := start + int64(i) + 1
			if end < 0 {
				complete = at
			} else if !see(at, end-at, head(text[i+1:], end-at)) {
				return complete, nil
			}
			end = at - 1
		}
		if start == 0 && end >= 0 {
			see(0, end, head(text, end))
		}
	}
	return complete, nil
}

func head(text []byte, length int64) []byte {
	return text[:min(int64(len(text)), length, maxHeader)]
}

// openTail opens the files that contain the last lines, at their beginnings.
func (r *reader) openTail(files []File) error {
	t := &tail{want: max(r.o.Tail, 0), only: r.o.Stream}
	var opened []*scanner
	fail := func(err error) error {
		for _, s := range opened {
			s.f.Close()
		}
		return err
	}
	for i := len(files) - 1; i >= 0; i-- {
		if files[i].Compressed && len(opened) > 0 {
			break
		}
		s, err := r.openNth(files, i)
		if err != nil {
			return fail(err)
		}
		opened = append([]*scanner{s}, opened...)
		if files[i].Compressed { // nothing newer: all of it is better than nothing
			break
		}
		from, enough, err := t.find(s.f)
		if err != nil {
			return fail(fmt.Errorf("reading the log %s: %w", s.f.Name(), err))
		}
		s.from = from
		first := s.end()
		for _, at := range from {
			first = min(first, at)
		}
		if err := s.seek(first); err != nil {
			return fail(err)
		}
		if enough {
			break
		}
	}
	r.cur, r.queue = opened[0], opened[1:]
	return nil
}

func (s *scanner) end() int64 {
	end, _ := s.f.Seek(0, io.SeekEnd)
	return end
}
