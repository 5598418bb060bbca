package runonce

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// TestStreamKeepsLinesWhole: what authors write in pieces is theirs, line by
// line, unless another one interrupts a line.
func TestStreamKeepsLinesWhole(t *testing.T) {
	type piece struct {
		author string
		text   string
		ends   bool
	}
	tests := []struct {
		name   string
		pieces []piece
		want   string
	}{
		{"lines", []piece{{"a", "1", true}, {"b", "2", true}}, "a| 1\nb| 2\n"},
		{"empty lines", []piece{{"a", "", true}, {"a", "", true}}, "a| \na| \n"},
		{"a line in pieces", []piece{{"a", "1", false}, {"a", "2", false}, {"a", "3", true}}, "a| 123\n"},
		{"interrupted", []piece{{"a", "1", false}, {"b", "2", true}, {"a", "3", true}}, "a| 1\nb| 2\na| 3\n"},
		{"no end", []piece{{"a", "1", false}}, "a| 1"},
	}
	for _, test := range tests {
		var b bytes.Buffer
		s := NewStream("stdout", &b)
		for _, p := range test.pieces {
			if err := s.write(p.author, p.author+"| ", []byte(p.text), p.ends); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Flush(); err != nil || b.String() != test.want {
			t.Errorf("%s: wrote %q, %v; want %q", test.name, b.String(), err, test.want)
		}
	}
}

// TestTalkBeginsALine of its own, and leaves the suffix out.
func TestTalkBeginsALine(t *testing.T) {
	var b bytes.Buffer
	s := NewStream("stderr", &b)
	if err := s.write("c", "", []byte("no end"), false); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(s.LineWriter("-run1"), "podd: web-run1 waits\n")
	if want := "no end\npodd: web waits\n"; b.String() != want {
		t.Errorf("wrote %q, want %q", b.String(), want)
	}
}

// TestStreamAlone: one author's bytes come out as they went in.
func TestStreamAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		var want strings.Builder
		s := NewStream("stdout", &b)
		for _, text := range rapid.SliceOf(rapid.String()).Draw(t, "texts") {
			ends := rapid.Bool().Draw(t, "ends")
			_ = s.write("a", "", []byte(text), ends)
			want.WriteString(text)
			if ends {
				want.WriteByte('\n')
			}
		}
		if _ = s.Flush(); b.String() != want.String() {
			t.Fatalf("wrote %q, want %q", b.String(), want.String())
		}
	})
}

// TestStreamBreaks: the first failure is told to all who write.
func TestStreamBreaks(t *testing.T) {
	r, w := io.Pipe()
	r.CloseWithError(errors.New("broken pipe"))
	s := NewStream("stdout", w)
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for s.write("a", "", make([]byte, 1<<16), true) == nil {
			}
		})
	}
	writers.Wait()
	<-s.broken
	if err := s.Err(); err == nil || err.Error() != "writing stdout: broken pipe" {
		t.Errorf("Err() = %v", err)
	}
}

// TestTail keeps the last lines, cut to a width.
func TestTail(t *testing.T) {
	var short, long tail
	for i := range 3 {
		short.add(line{}, []byte{'a' + byte(i)}, true)
	}
	short.add(line{stream: "stderr"}, []byte("x"), false)
	short.add(line{stream: "stderr"}, []byte("y\x1b"), true)
	short.add(line{}, nil, true)
	if got := strings.Join(short.last(), ","); got != "a,b,c,xy?" {
		t.Errorf("last() = %s", got)
	}
	for i := range 100 {
		long.add(line{}, fmt.Append(nil, i), false)
		long.add(line{}, bytes.Repeat([]byte("z"), 2*tailWidth), true)
	}
	got := long.last()
	if len(got) != tailLines || !strings.HasPrefix(got[0], "80z") || len(got[0]) != tailWidth {
		t.Errorf("%d lines, the first %.5q of %d bytes", len(got), got[0], len(got[0]))
	}
}
