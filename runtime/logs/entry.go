// Package logs reads the log files that a CRI runtime writes for containers:
// whole, from the end, or following them as they grow, rotate and start anew.
//
//	<pod's log dir>/<container>/0.log.20250102-150405.gz   rotated, oldest first
//	                            0.log.20250102-160405
//	                            0.log                      attempt 0
//	                            1.log                      attempt 1
//
// Read takes these files as one sequence and hands out entries: what a line of
// a file says, a line of the container's output or a piece of one. Piece after
// piece, with a newline after each that is not Partial, they are the bytes of
// the container's stream.
//
// Containers may be able to write where their logs are (a hostPath on /var/log
// is enough), so files are opened as package runtime/beneath does.
package logs

import (
	"bytes"
	"time"
)

// Stream is where a container wrote.
type Stream string

// The two streams of a container.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Entry is one line of a log file. Its slices are valid until the function it
// is passed to returns.
type Entry struct {
	Attempt uint32
	Stream  Stream
	// Stamp is when the runtime read the text, as written: RFC 3339.
	Stamp []byte
	// Text is a line, or a piece of one, without its newline.
	Text []byte
	// Partial says that no newline follows: the line goes on in the stream's
	// next entry, or it is the stream's last and had none.
	Partial bool
	// Malformed says that this is no CRI log line; Text is what was found, in
	// pieces when it is long. Stream and Stamp are empty.
	Malformed bool
}

// Time reads Stamp; zero when it is none.
func (e Entry) Time() time.Time {
	t, err := time.Parse(time.RFC3339Nano, string(e.Stamp))
	if err != nil {
		return time.Time{}
	}
	return t
}

// maxHeader bounds what comes before the text of a line: stamp, stream, tags.
const maxHeader = 256

// Parse reads a line of a CRI log file, without its newline:
//
//	2025-01-02T15:04:05.999999999Z stdout F the text
//
// The tag is F, or P for a piece of a line; others may follow it behind colons.
// The entry's slices are parts of line.
func Parse(line []byte) Entry {
	head := line[:min(len(line), maxHeader)]
	stamp, head, ok1 := bytes.Cut(head, space)
	stream, head, ok2 := bytes.Cut(head, space)
	tags, _, ok3 := bytes.Cut(head, space)
	tag, _, _ := bytes.Cut(tags, colon)
	e := Entry{Stamp: stamp}
	switch {
	case !ok1 || !ok2 || !isStamp(stamp):
		return malformed(line)
	case !ok3 && len(line) > maxHeader:
		return malformed(line)
	case string(stream) == string(Stdout):
		e.Stream = Stdout
	case string(stream) == string(Stderr):
		e.Stream = Stderr
	default:
		return malformed(line)
	}
	switch string(tag) {
	case "F":
	case "P":
		e.Partial = true
	default:
		return malformed(line)
	}
	e.Text = line[min(len(line), len(stamp)+len(stream)+len(tags)+3):]
	return e
}

var space, colon = []byte(" "), []byte(":")

func malformed(line []byte) Entry { return Entry{Text: line, Malformed: true} }

// isStamp looks no closer than is needed to tell a timestamp from other text:
// 2025-01-02T15:04:05Z is the shortest. It is read only when somebody asks.
func isStamp(s []byte) bool {
	return len(s) >= 20 && s[4] == '-' && s[7] == '-' && s[10] == 'T' && s[13] == ':' && s[16] == ':'
}
