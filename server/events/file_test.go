package events

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
)

// readEvents returns the events in a file as "MESSAGE xCOUNT", for example "again x3".
func readEvents(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		var e v1.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Kind != "Event" || e.APIVersion != "v1" {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, fmt.Sprintf("%s x%d", e.Message, e.Count))
	}
	return all
}

// TestFile checks that every event is written to the file. A repeated event is written at most once
// in each interval.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.json")
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Node: "node"})
		f := &File{Path: path, Log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		l.Add(note("BackOff", "again", 0))
		go func() { done <- f.Run(ctx, l) }()
		for i := range 149 {
			time.Sleep(time.Second)
			l.Add(note("BackOff", "again", time.Duration(i+1)*time.Second))
		}
		time.Sleep(time.Second)
		l.Add(note("Killing", "last", time.Hour))
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	got := readEvents(t, path)
	if len(got) != 5 || got[0] != "again x1" || !slices.Contains(got, "again x150") || !slices.Contains(got, "last x1") {
		t.Errorf("got lines %q, want 5 lines: \"again x1\" as the first, and \"again x150\" and \"last x1\" among the others", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file of events: got %v, error %v; want mode 0600", info.Mode(), err)
	}
}

// TestFile_NewestCount checks that the newest count of an event is written when its interval is
// over, and when Run returns.
func TestFile_NewestCount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.json")
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Node: "node"})
		f := &File{Path: path, Log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx, l) }()
		repeat := func(want string) {
			t.Helper()
			for i := range 3 {
				l.Add(note("BackOff", "again", time.Duration(i)*time.Second))
				time.Sleep(2 * time.Second)
			}
			if got := strings.Join(readEvents(t, path), ", "); got != want {
				t.Errorf("got lines %q, want %q", got, want)
			}
		}
		repeat("again x1")
		time.Sleep(repeatInterval)
		repeat("again x1, again x3")
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if got := strings.Join(readEvents(t, path), ", "); got != "again x1, again x3, again x6" {
		t.Errorf("got lines %q, want \"again x1, again x3, again x6\"", got)
	}
}

// TestFile_MaxSize checks that neither the current file of events nor the rotated one exceeds the
// size limit.
func TestFile_MaxSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.json")
	f := &File{Path: path, Log: slog.New(slog.DiscardHandler), pending: map[string]*pendingEvent{}}
	l := New(Options{Node: "node"})
	var known uint64
	for i := range 100 {
		n := note("Started", "m", 0)
		n.Pod.Name = fmt.Sprint("pod", i)
		l.Add(n)
		newer, revision := l.Events(known)
		for _, e := range newer {
			e.Message = strings.Repeat("m", maxBytes/40)
		}
		f.write(newer, day)
		known = revision
	}
	for _, name := range []string{path, path + ".1"} {
		if info, err := os.Stat(name); err != nil || info.Size() > maxBytes || len(readEvents(t, name)) == 0 {
			t.Errorf("%s: got %v and error %v, want a file with events and at most %d bytes", name, info, err, maxBytes)
		}
	}
}

// TestFile_NotRegular checks that podd does not follow a symbolic link at the path of the file, and
// that a FIFO at this path does not block podd. Each of the two errors must be logged once.
func TestFile_NotRegular(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(victim, link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{link: "too many levels of symbolic links", dir: "is a directory", "/dev/null": "not a regular file", dir + "/no/file": "no such file"} {
		var logged bytes.Buffer
		f := &File{Path: path, Log: slog.New(slog.NewTextHandler(&logged, nil)), pending: map[string]*pendingEvent{}}
		for i := range 3 {
			l := New(Options{Node: "node"})
			l.Add(note("A", fmt.Sprint(i), time.Duration(i)))
			all, _ := l.Events(0)
			f.write(all, day)
		}
		if strings.Count(logged.String(), want) != 1 {
			t.Errorf("%s: logged %s, want %q once", path, logged.String(), want)
		}
	}
	if text, err := os.ReadFile(victim); err != nil || len(text) > 0 {
		t.Errorf("target of the link: got content %q, error %v; want an empty file", text, err)
	}
}
