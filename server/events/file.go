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
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// mostBytes is how much a file holds before it is put aside.
const mostBytes = 10 << 20

// A file is written to at most every writeEvery, and of an event that repeats
// itself there is a line at most every repeatEvery.
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

	told    map[string]time.Time // when each event was written that may repeat itself
	trouble string               // as last logged
}

// Run appends what is new in a log, until ctx is done.
func (f *File) Run(ctx context.Context, l *Log) error {
	f.told = map[string]time.Time{}
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
			f.write(newer, time.Now())
			return nil
		case <-l.Changed(known):
		}
	}
}

// write appends what is not said too often. What cannot be written is lost to the
// file: the next attempt is made with what happens next.
func (f *File) write(all []*v1.Event, now time.Time) {
	var lines []byte
	for name, at := range f.told {
		if now.Sub(at) >= repeatEvery {
			delete(f.told, name)
		}
	}
	for _, e := range all {
		if _, lately := f.told[e.Name]; lately {
			continue
		}
		f.told[e.Name] = now
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
