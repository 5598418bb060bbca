package logs

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	const stamp = "2025-01-02T15:04:05.123456789Z"
	for _, test := range []struct {
		line string
		want Entry
	}{
		{stamp + " stdout F hello", Entry{Stream: Stdout, Text: []byte("hello")}},
		{stamp + " stderr F  two  spaces ", Entry{Stream: Stderr, Text: []byte(" two  spaces ")}},
		{stamp + " stdout P piece", Entry{Stream: Stdout, Text: []byte("piece"), Partial: true}},
		{stamp + " stdout P:x:y piece", Entry{Stream: Stdout, Text: []byte("piece"), Partial: true}},
		{stamp + " stdout F ", Entry{Stream: Stdout, Text: []byte{}}},
		{stamp + " stdout F", Entry{Stream: Stdout, Text: []byte{}}},
		{stamp + " stdout F \x00\xff", Entry{Stream: Stdout, Text: []byte("\x00\xff")}},
	} {
		test.want.Timestamp = []byte(stamp)
		got := parse([]byte(test.line))
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.line, diff)
		}
		if want := time.Date(2025, 1, 2, 15, 4, 5, 123456789, time.UTC); !got.Time().Equal(want) {
			t.Errorf("%q: got time %v, want %v", test.line, got.Time(), want)
		}
	}
	for _, bad := range []string{
		"", " ", "hello", stamp, stamp + " ", stamp + " stdout", stamp + " stdout ", stamp + " stdout X hello",
		stamp + " stdlog F hello", "today stdout F hello", stamp + " " + strings.Repeat("x", 1000) + " F x",
		stamp + " stdout F:" + strings.Repeat("x", 1000) + " x", "\x00\x00\x00",
	} {
		got := parse([]byte(bad))
		if diff := cmp.Diff(Entry{Text: []byte(bad), Malformed: true}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", bad, diff)
		}
	}
}

// logLine returns a line of a CRI log file.
func logLine(stream Stream, partial bool, text string) string {
	tag := "F"
	if partial {
		tag = "P"
	}
	return fmt.Sprintf("2025-01-02T15:04:05.000000001Z %s %s %s\n", stream, tag, text)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(logLine(Stdout, false, "x")))
	f.Add([]byte("2025-01-02T15:04:05Z stderr P"))
	f.Add([]byte("garbage"))
	f.Fuzz(func(t *testing.T, line []byte) {
		e := parse(line)
		e.Time()
		if !bytes.HasSuffix(line, e.Text) {
			t.Errorf("%q: got text %q, want a suffix of the line", line, e.Text)
		}
		if e.Malformed != (e.Stream == "") || e.Malformed && (e.Timestamp != nil || e.Partial || len(e.Text) != len(line)) {
			t.Errorf("%q: got %+v, want a complete entry or a malformed one with the whole line", line, e)
		}
	})
}

func TestParse_Property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(0, rapid.Int64().Draw(t, "time")).UTC()
		want := Entry{
			Stream:    rapid.SampledFrom([]Stream{Stdout, Stderr}).Draw(t, "stream"),
			Timestamp: []byte(at.Format(time.RFC3339Nano)),
			Text:      []byte(strings.ReplaceAll(rapid.String().Draw(t, "text"), "\n", "")),
			Partial:   rapid.Bool().Draw(t, "partial"),
		}
		line := strings.TrimSuffix(logLine(want.Stream, want.Partial, string(want.Text)), "\n")
		_, line, _ = strings.Cut(line, " ")
		got := parse([]byte(string(want.Timestamp) + " " + line))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		if !got.Time().Equal(at) {
			t.Fatalf("got time %v, want %v", got.Time(), at)
		}
	})
}
