package logs

// A Joiner joins the parts of a line into one entry. It is needed if the lines of several streams
// or containers are written to one output. Pass its Emit method to Read, and call Flush after Read.
// Only Output is required. A Joiner is not safe for concurrent use.
type Joiner struct {
	// Output receives complete lines, and malformed entries unchanged.
	Output func(Entry) error
	// MaxLineBytes limits the stored bytes of a line. A longer line is passed to Output in parts
	// of about this size. All parts except the last are Partial. Zero means 1 MiB.
	MaxLineBytes int

	storedLines [2]Entry // stored lines of stdout and stderr; an element with Stream "" contains no line
}

// Emit adds an entry to the stored line. If the line is complete, Emit passes it to Output.
func (j *Joiner) Emit(e Entry) error {
	if e.Malformed {
		return j.Output(e)
	}
	b := &j.storedLines[0]
	if e.Stream == Stderr {
		b = &j.storedLines[1]
	}
	if b.Stream != "" && b.Attempt != e.Attempt { // the previous attempt ended without a newline
		if err := j.passLine(b, true); err != nil {
			return err
		}
	}
	if b.Stream == "" {
		if !e.Partial {
			return j.Output(e)
		}
		b.Attempt, b.Stream = e.Attempt, e.Stream
		b.Timestamp = append(b.Timestamp[:0], e.Timestamp...)
	}
	b.Text = append(b.Text, e.Text...)
	if e.Partial && len(b.Text) < j.maxLineBytes() {
		return nil
	}
	return j.passLine(b, e.Partial)
}

// Flush passes stored lines without a newline to Output.
func (j *Joiner) Flush() error {
	for i := range j.storedLines {
		if b := &j.storedLines[i]; b.Stream != "" {
			if err := j.passLine(b, true); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *Joiner) maxLineBytes() int {
	if j.MaxLineBytes > 0 {
		return j.MaxLineBytes
	}
	return 1 << 20
}

// maxReusedBufferSize is the maximum size of a buffer that is reused for the next line. Larger
// buffers are not kept, because most lines are short.
const maxReusedBufferSize = 16 << 10

// passLine passes the stored line b to Output and reuses its buffers.
func (j *Joiner) passLine(b *Entry, isPartial bool) error {
	line := *b
	line.Partial = isPartial
	b.Stream, b.Text = "", b.Text[:0]
	if cap(b.Text) > maxReusedBufferSize {
		b.Text = nil
	}
	return j.Output(line)
}
