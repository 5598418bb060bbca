package source

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"
)

// A program that writes without rest, in steps, is never seen between them.
func TestDirSeesNoStepOfAWriter(t *testing.T) {
	d := newTree(t)
	d.write("a.yaml", yaml("a=0", "b=0"))
	r := run(t, NewDir(d.path, testOptions(t)))
	r.untilPods("a=0", "b=0")
	const last = 300
	for i := range last + 1 {
		f, err := os.Create(d.in("a.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []string{yaml(fmt.Sprint("a=", i)), "---\n", yaml(fmt.Sprint("b=", i))} {
			if _, err := f.WriteString(step); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r.untilPods(fmt.Sprint("a=", last), fmt.Sprint("b=", last))
	all, _ := r.batches()
	for _, b := range all {
		var one, other int
		if n, err := fmt.Sscanf(podsOf(b), "a=%d b=%d", &one, &other); n != 2 || err != nil || one != other {
			t.Errorf("got %s, want two pods of one writing", show(b))
		}
	}
}

// What happens to a file while it is read is found out at the end of it.
func TestReadFindsOutAboutWriters(t *testing.T) {
	d := newTree(t)
	for name, c := range map[string]struct {
		during func() openness // at the second question
		want   error
	}{
		"nobody":        {func() openness { return unwritten }, nil},
		"still writing": {func() openness { return written }, errWriting},
	} {
		t.Run(name, func(t *testing.T) {
			d.write("a.yaml", yaml("a"))
			p, err := openPlace(d.path, false)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			questions := 0
			r := reader{func(*os.File) openness {
				if questions++; questions == 1 {
					return unwritten
				}
				return c.during()
			}}
			if _, err := r.read(p, "a.yaml", false, &draft{}, time.Now()); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
	p, err := openPlace(d.path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	grow := reader{func(*os.File) openness { d.write("a.yaml", yaml("a", "b")); return unwritten }}
	d.write("a.yaml", yaml("a"))
	if _, err := grow.read(p, "a.yaml", false, &draft{}, time.Now()); !errors.Is(err, errWriting) {
		t.Errorf("a file that grew: got %v, want %v", err, errWriting)
	}
}
