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

// TestLineStream checks that the parts of a line form one line with one prefix, unless another writer
// writes between the parts.
func TestLineStream(t *testing.T) {
	type part struct {
		author string
		text   string
		ends   bool // the part ends the line
	}
	tests := []struct {
		name  string
		parts []part
		want  string
	}{
		{"lines", []part{{"a", "1", true}, {"b", "2", true}}, "a| 1\nb| 2\n"},
		{"empty lines", []part{{"a", "", true}, {"a", "", true}}, "a| \na| \n"},
		{"line in parts", []part{{"a", "1", false}, {"a", "2", false}, {"a", "3", true}}, "a| 123\n"},
		{"interrupted", []part{{"a", "1", false}, {"b", "2", true}, {"a", "3", true}}, "a| 1\nb| 2\na| 3\n"},
		{"unterminated line", []part{{"a", "1", false}}, "a| 1"},
	}
	for _, test := range tests {
		var b bytes.Buffer
		s := newLineStream("stdout", &b)
		for _, p := range test.parts {
			if err := s.write(p.author, p.author+"| ", []byte(p.text), p.ends); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Flush(); err != nil || b.String() != test.want {
			t.Errorf("%s: got %q, error %v; want %q", test.name, b.String(), err, test.want)
		}
	}
}

// TestLineStream_MessageWriter checks that a message begins a new line, and that messageWriter removes the
// suffix of the run from the names of pods in the message.
func TestLineStream_MessageWriter(t *testing.T) {
	var b bytes.Buffer
	s := newLineStream("stderr", &b)
	if err := s.write("c", "", []byte("unterminated"), false); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(s.messageWriter("-run1"), "podd: web-run1 waits\n")
	if want := "unterminated\npodd: web waits\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// TestLineStream_OneAuthor checks that the text of a single author without a prefix is written unchanged.
func TestLineStream_OneAuthor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		var want strings.Builder
		s := newLineStream("stdout", &b)
		for _, text := range rapid.SliceOf(rapid.String()).Draw(t, "texts") {
			ends := rapid.Bool().Draw(t, "ends")
			_ = s.write("a", "", []byte(text), ends)
			want.WriteString(text)
			if ends {
				want.WriteByte('\n')
			}
		}
		if _ = s.Flush(); b.String() != want.String() {
			t.Fatalf("got %q, want %q", b.String(), want.String())
		}
	})
}

// TestLineStream_WriteError checks that the writes of all authors fail after the first failed write, and
// that Err returns the error of this write.
func TestLineStream_WriteError(t *testing.T) {
	r, w := io.Pipe()
	r.CloseWithError(errors.New("broken pipe"))
	s := newLineStream("stdout", w)
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for s.write("a", "", make([]byte, 1<<16), true) == nil {
			}
		})
	}
	writers.Wait()
	<-s.failed
	if err := s.Err(); err == nil || err.Error() != "writing stdout: broken pipe" {
		t.Errorf("got error %v, want \"writing stdout: broken pipe\"", err)
	}
}

// TestTail checks that a tail contains the last tailLines lines, each truncated to maxTailLineBytes bytes.
// It must omit empty lines, and replace control characters.
func TestTail(t *testing.T) {
	var short, long tail
	for i := range 3 {
		short.add(lineSource{}, []byte{'a' + byte(i)}, true)
	}
	short.add(lineSource{stream: "stderr"}, []byte("x"), false)
	short.add(lineSource{stream: "stderr"}, []byte("y\x1b"), true)
	short.add(lineSource{}, nil, true)
	if got := strings.Join(short.last(), ","); got != "a,b,c,xy?" {
		t.Errorf("short tail: got %q, want \"a,b,c,xy?\"", got)
	}
	for i := range 100 {
		long.add(lineSource{}, fmt.Append(nil, i), false)
		long.add(lineSource{}, bytes.Repeat([]byte("z"), 2*maxTailLineBytes), true)
	}
	got := long.last()
	if len(got) != tailLines || !strings.HasPrefix(got[0], "80z") || len(got[0]) != maxTailLineBytes {
		t.Errorf("long tail: got %d lines, first line %.5q… of %d bytes; want %d lines, first line \"80z\"… of %d bytes", len(got), got[0], len(got[0]), tailLines, maxTailLineBytes)
	}
}
