package source

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDir_ReadOnly_Cache checks that a read-only source reads the cache of a running podd and
// does not write to it.
func TestDir_ReadOnly_Cache(t *testing.T) {
	d, o := newTree(t), testOptions(t)
	d.write("a.yaml", yaml("a"))
	d.write("b.yaml", yaml("b"))
	r := run(t, NewDir(d.path, o))
	r.untilPods("a", "b")
	r.stop()
	before := files(t, o.CacheDir)
	d.write("a.yaml", broken)
	d.write("b.yaml", yaml("b=2"))
	d.write("c.yaml", yaml("c"))
	o.IsCacheReadOnly = true
	r = run(t, NewDir(d.path, o))
	r.untilPods("a", "b=2", "c")
	d.remove("c.yaml")
	r.untilPods("a", "b=2")
	r.stop()
	if diff := cmp.Diff(before, files(t, o.CacheDir)); diff != "" {
		t.Errorf("the cache changed (-before +after):\n%s", diff)
	}
}

func TestDir_ReadOnly_CreatesNoCache(t *testing.T) {
	d, o := newTree(t), testOptions(t)
	d.write("a.yaml", yaml("a"))
	o.IsCacheReadOnly = true
	r := run(t, NewDir(d.path, o))
	if b := r.untilPods("a"); len(b.Problems) > 0 {
		t.Errorf("got %s, want no problem", show(b))
	}
	r.stop()
	if all, err := filepath.Glob(o.CacheDir + "*"); err != nil || len(all) > 0 {
		t.Errorf("files of the cache: got %q, error %v; want no files", all, err)
	}
}
