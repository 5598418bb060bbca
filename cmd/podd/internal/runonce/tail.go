package runonce

import "podd/runtime/logs"

// Limits of the output that a tail stores.
const (
	tailLines        = 20
	maxTailLineBytes = 500 // bytes per line
)

// A tail contains the last lines of a container's output. It reuses its buffers. It is
// not safe for concurrent use.
type tail struct {
	lines       [tailLines][]byte
	newestIndex int  // index of the newest line
	count       int  // number of lines, including an unterminated line
	isOpen      bool // the newest line is not terminated
	source      lineSource
}

// A lineSource identifies the attempt and the stream that wrote a part of a line. A part from
// another attempt or stream begins a new line.
type lineSource struct {
	attempt uint32
	stream  logs.Stream
}

// add adds a line. If endsLine is false, text is only a part of the line.
func (t *tail) add(source lineSource, text []byte, endsLine bool) {
	if !t.isOpen || t.source != source {
		t.newestIndex = (t.newestIndex + 1) % tailLines
		t.lines[t.newestIndex] = t.lines[t.newestIndex][:0]
		t.count = min(t.count+1, tailLines)
	}
	newest := t.lines[t.newestIndex]
	t.lines[t.newestIndex] = append(newest, text[:min(len(text), maxTailLineBytes-len(newest))]...)
	t.isOpen, t.source = !endsLine, source
}

// last returns the lines in the order of the output. It omits empty lines.
func (t *tail) last() []string {
	var out []string
	for i := t.count - 1; i >= 0; i-- {
		line := withoutControlChars(string(t.lines[(t.newestIndex-i+tailLines)%tailLines]))
		if line != "" {
			out = append(out, line)
		}
	}
	return out
}
