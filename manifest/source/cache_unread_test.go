package source

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podd/manifest"
)

// unreadable lists the ways in which the cache of a source can be unreadable. Each function makes
// dir, the directory of the source in the cache, unreadable. It returns a function that repairs
// the directory; nil if no repair is possible.
var unreadable = map[string]func(t *testing.T, dir string) (repair func()){
	"index truncated": func(t *testing.T, dir string) func() {
		truncate(t, filepath.Join(dir, indexName))
		return nil
	},
	"index of a newer version": func(t *testing.T, dir string) func() {
		if err := os.WriteFile(filepath.Join(dir, indexName), []byte(formatName+"2 other\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return nil
	},
	"directory instead of an index": func(t *testing.T, dir string) func() {
		if err := os.Remove(filepath.Join(dir, indexName)); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, indexName), 0o700); err != nil {
			t.Fatal(err)
		}
		return nil
	},
	"I/O error reading the index": func(t *testing.T, dir string) func() {
		path := filepath.Join(dir, indexName)
		// Nothing is mapped at address 0, so reading the start of this file fails with EIO.
		if err := unix.Mount("/proc/self/mem", path, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		repair := func() { _ = unix.Unmount(path, unix.MNT_DETACH) }
		t.Cleanup(repair)
		return repair
	},
	"directory of the source cannot be opened": func(t *testing.T, dir string) func() {
		if err := os.Rename(dir, dir+"~"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
			if err := os.Rename(dir+"~", dir); err != nil {
				t.Error(err)
			}
		}
	},
	"index set aside and not replaced": func(t *testing.T, dir string) func() {
		if err := os.Rename(dir, dir+".unreadable"); err != nil {
			t.Fatal(err)
		}
		return nil
	},
}

// truncate cuts off the last byte of a file.
func truncate(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()-1); err != nil {
		t.Fatal(err)
	}
}

// TestDir_UnreadableCache_EmptyMountPoint checks that an empty directory is not a complete listing
// if the cache cannot be read, because the directory may have contained manifests.
func TestDir_UnreadableCache_EmptyMountPoint(t *testing.T) {
	for name, makeUnreadable := range unreadable {
		t.Run(name, func(t *testing.T) {
			d, o := newTree(t), testOptions(t)
			o.CheckFrequency = 20 * time.Millisecond
			filesystem := tree{t, filepath.Join(t.TempDir(), "fs")}.mkdir()
			filesystem.write("a.yaml", yaml("a"))
			mount := func() {
				t.Helper()
				if err := unix.Mount(filesystem.path, d.path, "", unix.MS_BIND, ""); err != nil {
					t.Fatal(err)
				}
			}
			t.Cleanup(func() { _ = unix.Unmount(d.path, unix.MNT_DETACH) })
			mount()
			r := run(t, NewDir(d.path, o))
			r.untilPods("a")
			r.stop()
			if err := unix.Unmount(d.path, unix.MNT_DETACH); err != nil {
				t.Fatal(err)
			}
			repair := makeUnreadable(t, filepath.Join(o.CacheDir, hashOf(d.path)))
			if !NewDir(d.path, o).HasCachedContent() {
				t.Error("HasCachedContent: got false, want true")
			}
			for range 2 { // the first podd must not replace the unreadable cache
				r = run(t, NewDir(d.path, o))
				if b := r.untilProblem("podd accept empty " + d.path); b.IsComplete {
					t.Errorf("got %s, want an incomplete listing", show(b))
				}
				r.stop()
			}
			if repair != nil {
				r = run(t, NewDir(d.path, o))
				r.untilProblem("podd accept empty " + d.path)
				repair()
				r.untilProblem("the file system with the manifests is not mounted", "a")
			} else {
				r = run(t, NewDir(d.path, o))
			}
			mount()
			r.untilPods("a")
			r.until("a complete listing", func(b manifest.Batch) bool { return b.IsComplete })
			r.stop()
			r = run(t, NewDir(d.path, o))
			r.until("no problem", func(b manifest.Batch) bool { return podsOf(b) == "a" && len(b.Problems) == 0 })
		})
	}
}

// TestDir_UnreadableCache_Accept checks that a user can accept an empty directory, and that the
// directory stays accepted after a restart and after the cache becomes readable.
func TestDir_UnreadableCache_Accept(t *testing.T) {
	for name, makeUnreadable := range unreadable {
		t.Run(name, func(t *testing.T) {
			d, o := newTree(t), testOptions(t)
			o.CheckFrequency = 20 * time.Millisecond
			d.write("a.yaml", yaml("a"))
			r := run(t, NewDir(d.path, o))
			r.untilPods("a")
			r.stop()
			if err := os.Rename(d.path, d.path+".old"); err != nil {
				t.Fatal(err)
			}
			d.mkdir()
			repair := makeUnreadable(t, filepath.Join(o.CacheDir, hashOf(d.path)))
			s := NewDir(d.path, o)
			r = run(t, s)
			r.untilProblem("podd accept empty")
			if err := s.AcceptEmpty(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.until("a complete listing", func(b manifest.Batch) bool { return b.IsComplete && podsOf(b) == "" })
			if err := s.AcceptEmpty(t.Context()); !errors.Is(err, ErrNothingToAccept) {
				t.Errorf("second AcceptEmpty: got %v, want ErrNothingMissing", err)
			}
			if repair != nil {
				repair()
				r.until("no problem", func(b manifest.Batch) bool { return len(b.Problems) == 0 })
			}
			r.stop()
			all, _ := r.batches()
			for _, b := range all {
				if podsOf(b) != "" {
					t.Errorf("got %s, want no pod", show(b))
				}
			}
			r = run(t, NewDir(d.path, o))
			if b := r.untilPods(); !b.IsComplete || len(b.Problems) > 0 {
				t.Errorf("after a restart: got %s, want a complete listing without problems", show(b))
			}
		})
	}
}

// TestDir_LateCache checks that podd uses a cache that can be opened only after podd has read the
// directory. Until then, podd must not overwrite the cache.
func TestDir_LateCache(t *testing.T) {
	for _, name := range []string{"I/O error reading the index", "directory of the source cannot be opened"} {
		t.Run(name, func(t *testing.T) {
			d, o := newTree(t), testOptions(t)
			o.CheckFrequency = 20 * time.Millisecond
			d.write("a.yaml", yaml("a"))
			d.write("b.yaml", yaml("b"))
			d.write("c.yaml", yaml("c"))
			d.write("d.yaml", yaml("d", "d2"))
			r := run(t, NewDir(d.path, o))
			r.untilPods("a", "b", "c", "d", "d2")
			r.stop()
			repair := unreadable[name](t, filepath.Join(o.CacheDir, hashOf(d.path)))
			d.write("a.yaml", broken)
			d.write("b.yaml", yaml("b=2"))
			d.remove("c.yaml")
			d.write("d.yaml", yaml("d=2")+"---\n"+broken)
			d.write("e.yaml", yaml("e"))
			r = run(t, NewDir(d.path, o))
			r.untilProblem("podd can neither read nor store it", "b=2", "d=2", "e")
			repair()
			r.until("no problem of the cache", func(b manifest.Batch) bool {
				return podsOf(b) == "a b=2 d d2 e" && !strings.Contains(problemsOf(b), o.CacheDir)
			})
			r.stop()
			c := openCache(o.CacheDir, d.path)
			defer c.close()
			got := map[string]string{}
			for _, path := range c.paths() {
				data, _, _ := c.load(path)
				got[filepath.Base(path)] = string(data)
			}
			want := map[string]string{"a.yaml": yaml("a"), "b.yaml": yaml("b=2"), "d.yaml": yaml("d", "d2"), "e.yaml": yaml("e")}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("content of the cache (-want +got):\n%s", diff)
			}
		})
	}
}

// TestURL_LateCache checks that the cached content of a URL runs as soon as the cache can be
// opened. Until then, invalid content must not replace the cached content.
func TestURL_LateCache(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		pods    []string
		problem string
	}{
		"no response":     {"", nil, "503"},
		"invalid content": {yaml("b") + "---\n" + broken, []string{"b"}, "containers"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, o := newFakeServer(t, list("a")), urlOptions(t)
				r := poll(t, f.url("/x", o))
				r.untilPods("a")
				r.stop()
				response := body200(test.content)
				if test.content == "" {
					response = status(503)
				}
				f.handle(response)
				u := f.url("/x", o)
				repair := unreadable["directory of the source cannot be opened"](t, filepath.Join(o.CacheDir, hashOf(u.Name())))
				r = poll(t, u)
				r.untilProblem(test.problem, test.pods...)
				repair()
				r.untilProblem(test.problem, "a")
				r.stop()
				f.handle(status(503))
				r = poll(t, f.url("/x", o))
				r.untilProblem("503", "a")
				r.stop()
			})
		})
	}
}

// TestCache_KeepsUnreadableIndex checks that the first write moves an index that cannot be used, and
// the content files of this index, to another directory. If this happens several times, podd must keep
// only the directory of the last move.
func TestCache_KeepsUnreadableIndex(t *testing.T) {
	for _, name := range []string{"index truncated", "index of a newer version", "directory instead of an index"} {
		t.Run(name, func(t *testing.T) {
			c := openCache(filepath.Join(t.TempDir(), "sources"), "/m")
			dir := filepath.Join(c.dir, hashOf("/m"))
			var unusable map[string]string
			for _, content := range []string{"one", "two", "three"} {
				put(c, "/m/a", content)
				c = reopen(t, c)
				c.close()
				unreadable[name](t, dir)
				unusable = files(t, dir)
				c = openCache(c.dir, "/m")
				if got := fmt.Sprint(c.problems()); !strings.Contains(got, dir+".unreadable") {
					t.Errorf("problems: got %s, want the name of the directory to which the cache is moved", got)
				}
				if diff := cmp.Diff(unusable, files(t, dir)); diff != "" {
					t.Errorf("the cache changed before the first write (-before +after):\n%s", diff)
				}
			}
			put(c, "/m/b", "four")
			c = reopen(t, c)
			defer c.close()
			if data, _, ok := c.load("/m/b"); !ok || string(data) != "four" {
				t.Errorf("load: got %q, ok %v; want \"four\", ok true", data, ok)
			}
			got := map[string]string{}
			for path, content := range files(t, dir+".unreadable") {
				got[filepath.Join(dir, filepath.Base(path))] = content
			}
			if diff := cmp.Diff(unusable, got); diff != "" {
				t.Errorf("directory to which the index was moved (-want +got):\n%s", diff)
			}
			if entries, err := os.ReadDir(c.dir); err != nil || len(entries) != 2 {
				t.Errorf("directories: got %v, error %v; want the directory of the source and the directory to which the index was moved", entries, err)
			}
		})
	}
}

// TestPrune_UnreadableCache checks that Prune keeps an unreadable cache if its source is configured.
func TestPrune_UnreadableCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sources")
	for _, source := range []string{"/configured", "/removed"} {
		if err := os.MkdirAll(filepath.Join(dir, hashOf(source)+".unreadable"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := Prune(dir, NewDir("/configured", Options{})); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != hashOf("/configured")+".unreadable" {
		t.Errorf("remaining files: got %v, error %v; want only the cache of the configured source", entries, err)
	}
}

// TestRecognize_Accepted checks that an empty directory that a user has accepted stays accepted
// while the index cannot be read.
func TestRecognize_Accepted(t *testing.T) {
	for _, isAccepted := range []bool{false, true} {
		f := &follower{Dir: &Dir{path: "/manifests"}, cache: &cache{mayHaveUnreadIndex: true, hasAcceptedEmpty: isAccepted}}
		if err := f.recognize(&manifestDir{}, &listing{}, nil, time.Now()); (err == nil) != isAccepted {
			t.Errorf("recognize, directory accepted before: %t: got %v, want an error only if it was not accepted", isAccepted, err)
		}
	}
}
