package events

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// maxBytes is the maximum size of a file. A larger file is rotated.
const maxBytes = 10 << 20

// writeInterval is the minimum interval between writes to the file. repeatInterval is the minimum
// interval between two lines for the same event. The second line contains the newest count.
const (
	writeInterval  = time.Second
	repeatInterval = time.Minute
)

// File appends events to a file for log collectors, as one line of JSON each. The
// file has mode 0600 and is never opened through a symbolic link. At 10 MiB it is
// renamed to path.1, which replaces the previous path.1.
type File struct {
	Path string
	Log  *slog.Logger // receives a write error unless the previous write failed with the same error

	pending map[string]*pendingEvent // recent events, by name
	lastErr string                   // the error that was logged last; "" after a success
}

// A pendingEvent is an event with a recent line in the file, or with a line that is still to be
// written.
type pendingEvent struct {
	writtenAt    time.Time // time of the last write; zero before the first write
	delayedEvent *v1.Event // event to write when repeatInterval is over; nil if it was not repeated
}

// Run appends the events of a log to the file until ctx is done.
func (f *File) Run(ctx context.Context, l *Log) error {
	f.pending = map[string]*pendingEvent{}
	var writtenRevision uint64
	for {
		newer, revision := l.Events(writtenRevision)
		f.write(newer, time.Now())
		writtenRevision = revision
		select {
		case <-ctx.Done():
		case <-time.After(writeInterval):
		}
		select {
		case <-ctx.Done():
			newer, _ := l.Events(writtenRevision)
			f.write(newer, time.Now().Add(repeatInterval)) // with a time at which no event is delayed any longer, write writes all events
			return nil
		case <-l.Changed(writtenRevision):
		case <-f.nextWrite():
		}
	}
}

// nextWrite returns a channel that receives a value when a delayed event may be written. The channel
// is nil if no event is delayed.
func (f *File) nextWrite() <-chan time.Time {
	var earliestWrite time.Time
	for _, t := range f.pending {
		if t.delayedEvent != nil && (earliestWrite.IsZero() || t.writtenAt.Before(earliestWrite)) {
			earliestWrite = t.writtenAt
		}
	}
	if earliestWrite.IsZero() {
		return nil
	}
	return time.After(time.Until(earliestWrite.Add(repeatInterval)))
}

// takeWritableEvents returns the delayed events that may be written now, in the order of their revisions,
// and records that they are written.
func (f *File) takeWritableEvents(now time.Time) []*v1.Event {
	var events []*v1.Event
	for name, t := range f.pending {
		switch {
		case now.Sub(t.writtenAt) < repeatInterval:
		case t.delayedEvent == nil:
			delete(f.pending, name)
		default:
			events = append(events, t.delayedEvent)
			t.writtenAt, t.delayedEvent = now, nil
		}
	}
	slices.SortFunc(events, func(a, b *v1.Event) int { // by revision, which is a decimal number
		return cmp.Or(cmp.Compare(len(a.ResourceVersion), len(b.ResourceVersion)), cmp.Compare(a.ResourceVersion, b.ResourceVersion))
	})
	return events
}

// write appends each event to the file. If a line for the same event was written within
// repeatInterval, the event is delayed. If writing fails, write logs the error, and the events are
// missing from the file.
func (f *File) write(events []*v1.Event, now time.Time) {
	for _, e := range events {
		if f.pending[e.Name] == nil {
			f.pending[e.Name] = &pendingEvent{}
		}
		f.pending[e.Name].delayedEvent = e
	}
	var lines []byte
	for _, e := range f.takeWritableEvents(now) {
		e.APIVersion, e.Kind = "v1", "Event"
		line, err := json.Marshal(e)
		if err != nil {
			continue // cannot happen, because an event contains only strings and numbers
		}
		lines = append(append(lines, line...), '\n')
	}
	if len(lines) == 0 {
		return
	}
	f.logError(f.appendLines(lines))
}

func (f *File) logError(err error) {
	if err == nil {
		f.lastErr = ""
		return
	}
	if text := err.Error(); text != f.lastErr {
		f.lastErr = text
		f.Log.Warn("writing events failed; the events are missing from the file", "err", err)
	}
}

// appendLines appends lines to the file, and rotates the file if necessary. It opens the file each
// time, because another program may have renamed it.
func (f *File) appendLines(lines []byte) error {
	file, err := openLog(f.Path)
	if err != nil {
		return fmt.Errorf("opening event log %s: %w", f.Path, err)
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err == nil && size > 0 && size+int64(len(lines)) > maxBytes {
		if err := os.Rename(f.Path, f.Path+".1"); err != nil {
			return fmt.Errorf("rotating event log %s: %w", f.Path, err)
		}
		return f.appendLines(lines)
	}
	_, err = file.Write(lines)
	if err != nil {
		return fmt.Errorf("writing event log %s: %w", f.Path, err)
	}
	return nil
}

var errNotRegular = errors.New("not a regular file")

// openLog opens a regular file for appending. It never follows a symbolic link, and
// it neither blocks on a FIFO nor opens a device.
func openLog(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
