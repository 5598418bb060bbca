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

// mostBytes is how much a file holds before it is put aside.
const mostBytes = 10 << 20

// A file is written to at most every writeEvery, and of an event that repeats
// itself there is a line at most every repeatEvery, and one of the newest count.
const (
	writeEvery  = time.Second
	repeatEvery = time.Minute
)

// File is where events are appended, a line of JSON each, for those who collect
// them: 0600, and never through a link. With 10 MiB it is put aside as path.1, in
// the place of the one before.
type File struct {
	Path string
	Log  *slog.Logger // hears once why nothing can be written
	Max  int64        // 0: 10 MiB

	told    map[string]*told // the events of late, by name
	trouble string           // as last logged
}

// told is an event that may repeat itself.
type told struct {
	at   time.Time // when it was written; zero: never
	held *v1.Event // as it is to be written when the time comes; nil: as it was
}

// Run appends what is new in a log, until ctx is done.
func (f *File) Run(ctx context.Context, l *Log) error {
	f.told = map[string]*told{}
	var known uint64
	for {
		newer, revision := l.Events(known)
		f.write(newer, time.Now())
		known = revision
		select {
		case <-ctx.Done():
		case <-time.After(writeEvery):
		}
		select {
		case <-ctx.Done():
			newer, _ := l.Events(known)
			f.write(newer, time.Now().Add(repeatEvery)) // nothing is held any longer
			return nil
		case <-l.Changed(known):
		case <-f.nextDue():
		}
	}
}

// nextDue fires when the first event that is held may be written.
func (f *File) nextDue() <-chan time.Time {
	var first time.Time
	for _, t := range f.told {
		if t.held != nil && (first.IsZero() || t.at.Before(first)) {
			first = t.at
		}
	}
	if first.IsZero() {
		return nil
	}
	return time.After(time.Until(first.Add(repeatEvery)))
}

// due takes, in their order, the events that may be written now.
func (f *File) due(now time.Time) []*v1.Event {
	var due []*v1.Event
	for name, t := range f.told {
		switch {
		case now.Sub(t.at) < repeatEvery:
		case t.held == nil:
			delete(f.told, name)
		default:
			due = append(due, t.held)
			t.at, t.held = now, nil
		}
	}
	slices.SortFunc(due, func(a, b *v1.Event) int { // by their revisions, which are numbers
		return cmp.Or(cmp.Compare(len(a.ResourceVersion), len(b.ResourceVersion)), cmp.Compare(a.ResourceVersion, b.ResourceVersion))
	})
	return due
}

// write appends what is not said too often, and holds the rest. What cannot be
// written is lost to the file: the next attempt is made with what happens next.
func (f *File) write(all []*v1.Event, now time.Time) {
	for _, e := range all {
		if f.told[e.Name] == nil {
			f.told[e.Name] = &told{}
		}
		f.told[e.Name].held = e
	}
	var lines []byte
	for _, e := range f.due(now) {
		e.APIVersion, e.Kind = "v1", "Event"
		line, err := json.Marshal(e)
		if err != nil {
			continue // it is made of strings and numbers
		}
		lines = append(append(lines, line...), '\n')
	}
	if len(lines) == 0 {
		return
	}
	f.tell(f.appendLines(lines))
}

func (f *File) tell(err error) {
	if err == nil {
		f.trouble = ""
		return
	}
	if text := err.Error(); text != f.trouble {
		f.trouble = text
		f.Log.Warn("events are not written", "err", err)
	}
}

// appendLines opens the file anew each time: somebody else may have moved it.
func (f *File) appendLines(lines []byte) error {
	file, err := openLog(f.Path)
	if err != nil {
		return fmt.Errorf("opening the log of events %s: %w", f.Path, err)
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err == nil && size > 0 && size+int64(len(lines)) > cmp.Or(f.Max, mostBytes) {
		if err := os.Rename(f.Path, f.Path+".1"); err != nil {
			return fmt.Errorf("putting the log of events %s aside: %w", f.Path, err)
		}
		return f.appendLines(lines)
	}
	_, err = file.Write(lines)
	if err != nil {
		return fmt.Errorf("writing events to %s: %w", f.Path, err)
	}
	return nil
}

var errNoFile = errors.New("it is no regular file")

// openLog opens nothing whose opening waits or has effects.
func openLog(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNoFile
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
