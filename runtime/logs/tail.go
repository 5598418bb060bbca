package logs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	// blockSize is the number of bytes that are read at a time when a file is read
	// backwards.
	blockSize = 64 << 10
	// maxLookBack is the maximum number of bytes in which the beginnings of the counted lines are
	// searched after enough lines were found. The parts of a line are usually close together.
	maxLookBack = 4 << 20
)

// A tail finds where the last lines of a container's output begin, by reading the files
// backwards. A line ends with an entry that is not Partial. The line may begin many entries
// earlier, with entries of the other stream in between. Therefore the position of the first
// counted line is stored for each stream.
type tail struct {
	maxLines   int
	stream     Stream // "" means both streams
	lineCount  int
	streams    map[Stream]*tailStream
	extraBytes int64 // bytes read since enough lines were found
}

type tailStream struct {
	// isInLine reports whether the earliest entry that was read belongs to a counted line,
	// which may begin earlier.
	isInLine bool
}

// findStart returns the offsets in f at which the tails of the streams begin. isComplete reports
// whether the tail is complete, so that earlier files are not needed. findStart must be called for
// a container's files in reverse order. It ignores an incomplete last line, because the line may
// still be written.
func (t *tail) findStart(f *os.File) (starts map[Stream]int64, isComplete bool, err error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, false, err
	}
	isNewestFile := t.streams == nil
	if isNewestFile {
		t.streams = map[Stream]*tailStream{}
	}
	starts = map[Stream]int64{}
	end, err := visitLinesBackwards(f, size, func(offset, length int64, head []byte) bool {
		if t.lineCount >= t.maxLines {
			t.extraBytes += length
		}
		isComplete = t.addEntry(parse(head), offset, starts)
		return !isComplete
	})
	for _, s := range []Stream{Stdout, Stderr, ""} {
		if _, ok := starts[s]; !ok && isNewestFile { // no text yet, so that the tail begins at the end of the file
			starts[s] = end
		}
	}
	return starts, isComplete, err
}

// addEntry adds the entry e to the tail. The parameter offset is the offset of e in the file. It
// must be lower than the offsets of all earlier calls. If e belongs to a counted line, addEntry
// stores the offset in starts. addEntry reports whether the tail is complete now.
func (t *tail) addEntry(e Entry, offset int64, starts map[Stream]int64) (isComplete bool) {
	if t.stream != "" && e.Stream != t.stream && !e.Malformed {
		return false
	}
	s := t.streams[e.Stream]
	isFirst := s == nil
	if isFirst {
		s = &tailStream{}
		t.streams[e.Stream] = s
	}
	if !e.Partial || isFirst { // the last entry of a line
		s.isInLine = t.lineCount < t.maxLines
		if s.isInLine {
			t.lineCount++
		}
	}
	if s.isInLine {
		starts[e.Stream] = offset
	}
	return t.isComplete()
}

// isComplete reports whether the beginnings of all counted lines were found, or whether the
// search must stop.
func (t *tail) isComplete() bool {
	if t.lineCount < t.maxLines {
		return false
	}
	if t.extraBytes > maxLookBack {
		return true
	}
	for _, s := range t.streams {
		if s.isInLine {
			return false
		}
	}
	return true
}

// visitLinesBackwards calls visit for each line of a file that ends with a newline, the last line
// first, until visit returns false. The arguments of visit are the offset, the length, and the
// first bytes of the line, at most maxHeaderBytes. end is the offset after the file's last newline.
func visitLinesBackwards(f *os.File, size int64, visit func(offset, length int64, head []byte) bool) (end int64, err error) {
	block := make([]byte, blockSize+maxHeaderBytes)
	lineEnd := int64(-1) // offset of the newline at the end of the current line
	for start := size; start > 0; {
		n := min(start, blockSize)
		start -= n
		// Read maxHeaderBytes more bytes, for the first bytes of a line near the end of the
		// block.
		bytesRead, err := f.ReadAt(block[:n+maxHeaderBytes], start)
		if err != nil && !errors.Is(err, io.EOF) {
			return end, err
		}
		text := block[:bytesRead]
		for i := min(int(n), bytesRead); ; {
			if i = bytes.LastIndexByte(text[:i], '\n'); i < 0 {
				break
			}
			offset := start + int64(i) + 1
			if lineEnd < 0 {
				end = offset
			} else if !visit(offset, lineEnd-offset, head(text[i+1:], lineEnd-offset)) {
				return end, nil
			}
			lineEnd = offset - 1
		}
		if start == 0 && lineEnd >= 0 {
			visit(0, lineEnd, head(text, lineEnd))
		}
	}
	return end, nil
}

// head returns the first bytes, at most maxHeaderBytes, of a line of the given length at the
// start of text.
func head(text []byte, length int64) []byte {
	return text[:min(int64(len(text)), length, maxHeaderBytes)]
}

// openTail opens the files that contain the last lines, and seeks to the beginning of these
// lines.
func (r *reader) openTail(files []File) error {
	t := &tail{maxLines: max(r.o.TailLines, 0), stream: r.o.Stream}
	var scanners []*scanner
	fail := func(err error) error {
		for _, s := range scanners {
			s.f.Close()
		}
		return err
	}
	for i := len(files) - 1; i >= 0; i-- {
		if files[i].Compressed && len(scanners) > 0 {
			break
		}
		s, err := r.openNth(files, i)
		if err != nil {
			return fail(err)
		}
		scanners = append([]*scanner{s}, scanners...)
		if files[i].Compressed { // No newer file was opened, so the whole compressed file is emitted.
			break
		}
		starts, isComplete, err := t.findStart(s.f)
		if err != nil {
			return fail(fmt.Errorf("reading the log %s: %w", s.f.Name(), err))
		}
		s.startOffsets = starts
		firstOffset := s.size()
		for _, offset := range starts {
			firstOffset = min(firstOffset, offset)
		}
		if err := s.seek(firstOffset); err != nil {
			return fail(err)
		}
		if isComplete {
			break
		}
	}
	r.cur, r.queue = scanners[0], scanners[1:]
	return nil
}

func (s *scanner) size() int64 {
	end, _ := s.f.Seek(0, io.SeekEnd)
	return end
}
