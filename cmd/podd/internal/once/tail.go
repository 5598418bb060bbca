package once

import "podd/runtime/logs"

// How much is kept of what a container wrote last.
const (
	tailLines = 20
	tailWidth = 500 // bytes a line
)

// tail keeps the last lines of a container's output. Its buffers are used over
// and over. For one goroutine at a time.
type tail struct {
	lines [tailLines][]byte
	next  int  // the line to write to
	count int  // lines there are, the open one too
	open  bool // the newest line goes on, if more of it comes
	from  line
}

// line is what a line's pieces have in common.
type line struct {
	attempt uint32
	stream  logs.Stream
}

// add takes a line, or with ends false a piece of one.
func (t *tail) add(from line, text []byte, ends bool) {
	if !t.open || t.from != from {
		t.next = (t.next + 1) % tailLines
		t.lines[t.next] = t.lines[t.next][:0]
		t.count = min(t.count+1, tailLines)
	}
	kept := t.lines[t.next]
	t.lines[t.next] = append(kept, text[:min(len(text), tailWidth-len(kept))]...)
	t.open, t.from = !ends, from
}

// last are the lines in order; those without a word in them are left out.
func (t *tail) last() []string {
	var out []string
	for i := t.count - 1; i >= 0; i-- {
		line := plain(string(t.lines[(t.next-i+tailLines)%tailLines]))
		if line != "" {
			out = append(out, line)
		}
	}
	return out
}
