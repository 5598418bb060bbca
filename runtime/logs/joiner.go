package logs

// Joiner puts the pieces of lines together, for output where lines of several
// streams or containers must not be mixed. Its Emit is what Read calls. Only To
// is required. For one goroutine.
type Joiner struct {
	// To gets whole lines, and what is malformed as it comes.
	To func(Entry) error
	// Max bounds what is kept of a line; a longer one comes in pieces of about
	// that size, Partial but for the last. Zero means 1 MiB.
	Max int

	begun [2]Entry // of stdout and stderr; begun if Stream is set
}

// Emit takes an entry and passes on the line that it ends.
func (j *Joiner) Emit(e Entry) error {
	if e.Malformed {
		return j.To(e)
	}
	b := &j.begun[0]
	if e.Stream == Stderr {
		b = &j.begun[1]
	}
	if b.Stream != "" && b.Attempt != e.Attempt { // what it began died with it
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

// Flush passes on what the streams ended with without a newline.
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

// keep is how large a buffer may be that waits for the next line: most are short,
// and many follow.
const keep = 16 << 10

// pass gives on a begun line and keeps its buffers for the next.
func (j *Joiner) pass(b *Entry, partial bool) error {
	line := *b
	line.Partial = partial
	b.Stream, b.Text = "", b.Text[:0]
	if cap(b.Text) > keep {
		b.Text = nil
	}
	return j.To(line)
}
