// Package logs reads the log files that a CRI runtime writes for containers. It can read from the
// beginning or from the end, and can follow the log while files grow, are rotated and are
// recreated.
//
//	<namespace>_<name>_<UID>/<container>/0.log.20250102-150405.gz   rotated, oldest first
//	                            0.log.20250102-160405
//	                            0.log                      attempt 0
//	                            1.log                      attempt 1
//
// Read treats these files as one sequence and emits an entry for each line of a file. Such a line
// contains a line of the container's output or a part of one. To restore the bytes of the
// container's stream, add a newline to the text of each entry that is not Partial, and concatenate
// the texts.
//
// Containers may be able to write to the log directory (a hostPath on /var/log is
// sufficient), so files are opened with package runtime/safepath.
package logs

import (
	"bytes"
	"time"
)

// Stream is the output stream of a container.
type Stream string

// The two streams of a container.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// An Entry is one line of a log file. Its slices are valid until the function that receives
// the entry returns.
type Entry struct {
	Attempt uint32
	Stream  Stream
	// Timestamp is the time at which the runtime read the text from the container, in RFC 3339.
	Timestamp []byte
	// Text is a line of the container's output, or a part of one, without the newline.
	Text []byte
	// Partial reports whether Text is not followed by a newline. In that case the line continues in
	// the stream's next entry, or it is the last line of the stream and has no newline.
	Partial bool
	// Malformed reports whether the line of the file does not have the CRI log format. Text is then
	// the whole line, or a part of a long line. Stream and Timestamp are empty.
	Malformed bool
}

// Time parses Timestamp. It returns the zero Time if Timestamp is invalid.
func (e Entry) Time() time.Time {
	t, err := time.Parse(time.RFC3339Nano, string(e.Timestamp))
	if err != nil {
		return time.Time{}
	}
	return t
}

// maxHeaderBytes is the maximum length in bytes of timestamp, stream and tags, which precede the
// text of a line.
const maxHeaderBytes = 256

// parse parses a line of a CRI log file, without its newline:
//
//	2025-01-02T15:04:05.999999999Z stdout F the text
//
// The tag F means a full line, and P a part of a line. Other tags may follow after colons.
// The entry's slices are parts of line.
func parse(line []byte) Entry {
	head := line[:min(len(line), maxHeaderBytes)]
	stamp, head, ok1 := bytes.Cut(head, space)
	stream, head, ok2 := bytes.Cut(head, space)
	tags, _, ok3 := bytes.Cut(head, space)
	tag, _, _ := bytes.Cut(tags, colon)
	e := Entry{Timestamp: stamp}
	switch {
	case !ok1 || !ok2 || !isTimestamp(stamp):
		return malformed(line)
	case !ok3 && len(line) > maxHeaderBytes:
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

// isTimestamp reports whether s looks like a timestamp. The shortest form is 2025-01-02T15:04:05Z.
// isTimestamp checks only the separators. Entry.Time parses the whole timestamp.
func isTimestamp(s []byte) bool {
	return len(s) >= 20 && s[4] == '-' && s[7] == '-' && s[10] == 'T' && s[13] == ':' && s[16] == ':'
}
