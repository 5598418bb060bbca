package source

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"
)

// TestDir_ContinuousWrites checks that the intermediate states of a program which writes
// continuously are never used.
func TestDir_ContinuousWrites(t *testing.T) {
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
			t.Errorf("got %s, want two pods of the same write", show(b))
		}
	}
}

// TestRead_ConcurrentWrite checks that a change of a file during a read is detected.
func TestRead_ConcurrentWrite(t *testing.T) {
	d := newTree(t)
	for name, c := range map[string]struct {
		during func() writerState // result of the second check of the lease
		want   error
	}{
		"nobody":        {func() writerState { return noWriter }, nil},
		"still writing": {func() writerState { return hasWriter }, errOpenForWriting},
	} {
		t.Run(name, func(t *testing.T) {
			d.write("a.yaml", yaml("a"))
			p, err := openManifestDir(d.path, false)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			questions := 0
			r := reader{func(*os.File) writerState {
				if questions++; questions == 1 {
					return noWriter
				}
				return c.during()
			}}
			if _, err := r.read(p, "a.yaml", false, &firstRead{}, time.Now()); !errors.Is(err, c.want) {
				t.Errorf("read: got error %v, want %v", err, c.want)
			}
		})
	}
	p, err := openManifestDir(d.path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	grow := reader{func(*os.File) writerState { d.write("a.yaml", yaml("a", "b")); return noWriter }}
	d.write("a.yaml", yaml("a"))
	if _, err := grow.read(p, "a.yaml", false, &firstRead{}, time.Now()); !errors.Is(err, errOpenForWriting) {
		t.Errorf("read of a file that grew: got error %v, want %v", err, errOpenForWriting)
	}
}
