package logs

// A Joiner joins the parts of lines, for output in which lines of several streams or
// containers must not be mixed. Its Emit is the function to pass to Read. Only To is
// required. It is not safe for concurrent use.
type Joiner struct {
	// To receives complete lines, and malformed entries unchanged.
	To func(Entry) error
	// Max limits the stored part of a line. A longer line is passed on in parts of about
	// that size, all Partial except the last. Zero means 1 MiB.
	Max int

	begun [2]Entry // of stdout and stderr; in use if Stream is set
}

// Emit takes an entry and passes on the line that it completes.
func (j *Joiner) Emit(e Entry) error {
	if e.Malformed {
		return j.To(e)
	}
	b := &j.begun[0]
	if e.Stream == Stderr {
		b = &j.begun[1]
	}
	if b.Stream != "" && b.Attempt != e.Attempt { // the line of the previous attempt has no end
		if err := j.pass(b, true); err != nil {
			return err
		}
	}
	if b.Stream == "" {
		if !e.Partial {
			return j.To(e)
		}
		b.Attempt, b.Stream = e.Attempt, e.Stream
		b.Stamp = append(b.Stamp[:0], e.Stamp...)
	}
	b.Text = append(b.Text, e.Text...)
	if e.Partial && len(b.Text) < j.max() {
		return nil
	}
	return j.pass(b, e.Partial)
}

// Flush passes on the last lines of the streams if they have no newline.
func (j *Joiner) Flush() error {
	for i := range j.begun {
		if b := &j.begun[i]; b.Stream != "" {
			if err := j.pass(b, true); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *Joiner) max() int {
	if j.Max > 0 {
		return j.Max
	}
	return 1 << 20
}

// keepBufferSize is the maximum size of a buffer that is kept for the next line, because
// most lines are short.
const keepBufferSize = 16 << 10

// pass passes on the stored line and keeps its buffers for the next.
func (j *Joiner) pass(b *Entry, partial bool) error {
	line := *b
	line.Partial = partial
	b.Stream, b.Text = "", b.Text[:0]
	if cap(b.Text) > keepBufferSize {
		b.Text = nil
	}
	return j.To(line)
}
