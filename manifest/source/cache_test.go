package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"podd/runtime/safepath"
)

// reopen closes a cache and opens it again, as a restart of podd does.
func reopen(t *testing.T, c *cache) *cache {
	t.Helper()
	c.close()
	n := openCache(c.dir, c.source)
	if len(n.problems()) != 0 {
		t.Fatalf("problems after reopening: got %v, want none", n.problems())
	}
	return n
}

// put stores content under a path.
func put(c *cache, path, content string) {
	c.put(path, record{Digest: digestOf([]byte(content)), ContentTime: time.Unix(7, 0).UTC(), ETag: `"e"`}, []byte(content))
}

func TestCache_Restart(t *testing.T) {
	c := openCache(filepath.Join(t.TempDir(), "root", "sources"), "/m")
	put(c, "/m/a", "one")
	put(c, "/m/\xff", "two")
	put(c, "/m/gone", "three")
	if data, r, ok := c.load("/m/a"); !ok || string(data) != "one" || r.ETag != `"e"` {
		t.Errorf("load of content that is not written yet: got %q, record %+v, ok %v; want \"one\", a record with the ETag, ok true", data, r, ok)
	}
	c = reopen(t, c)
	c.removeEntry("/m/gone")
	put(c, "/m/a", "one, edited")
	if _, _, ok := c.load("/m/gone"); ok {
		t.Error("load of a removed entry: got ok, want not ok")
	}
	c = reopen(t, c)
	defer c.close()
	if got := c.paths(); !cmp.Equal(got, []string{"/m/a", "/m/\xff"}) {
		t.Errorf("paths: got %q, want a and \\xff", got)
	}
	data, r, ok := c.load("/m/a")
	want := record{Path: []byte("/m/a"), Digest: digestOf([]byte("one, edited")), ContentTime: time.Unix(7, 0).UTC(), ETag: `"e"`}
	if !ok || string(data) != "one, edited" || !cmp.Equal(r, want) {
		t.Errorf("load: got %q, ok %v; want the edited content, ok true; record (-want +got):\n%s", data, ok, cmp.Diff(want, r))
	}
	if n := len(files(t, c.dir)); n != 3 {
		t.Errorf("got %d files, want an index and two contents", n)
	}
}

// files returns the content of all files below a directory, and verifies their modes.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.IsDir() {
			if info.Mode().Perm() != 0o700 {
				t.Errorf("%s: got mode %v, want 0700", path, info.Mode())
			}
			return nil
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got mode %v, want 0600", path, info.Mode())
		}
		data, err := os.ReadFile(path)
		all[path] = fmt.Sprint(stampOf(info), string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestCache_WritesOnlyChanges(t *testing.T) {
	c := openCache(filepath.Join(t.TempDir(), "sources"), "/m")
	put(c, "/m/a", "one")
	c.markListed()
	c = reopen(t, c)
	before := files(t, c.dir)
	put(c, "/m/a", "one")
	c.removeEntry("/m/never")
	c.markListed()
	c.retryStore()
	c.close()
	if diff := cmp.Diff(before, files(t, c.dir)); diff != "" {
		t.Errorf("unchanged content was written again (-before +after):\n%s", diff)
	}
}

func TestCache_EmptyListing(t *testing.T) {
	c := openCache(filepath.Join(t.TempDir(), "sources"), "/m")
	if c.isIndexComplete {
		t.Error("isIndexComplete before the first listing: got true, want false")
	}
	c.markListed()
	c = reopen(t, c)
	defer c.close()
	if !c.isIndexComplete || len(c.paths()) != 0 {
		t.Errorf("after an empty listing: got isIndexComplete %v and paths %q, want true and none", c.isIndexComplete, c.paths())
	}
}

func TestCache_Damaged(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"truncated": func(path string) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.Truncate(path, info.Size()-1)
		},
		"empty":     func(path string) error { return os.Truncate(path, 0) },
		"appended":  func(path string) error { return appendTo(path, "x") },
		"too large": func(path string) error { return os.Truncate(path, 3*MaxSize) },
		"replaced":  func(path string) error { return os.WriteFile(path, addChecksum([]byte("other")), 0o600) },
		"link": func(path string) error {
			if err := os.Rename(path, path+"~"); err != nil {
				return err
			}
			return os.Symlink(filepath.Base(path)+"~", path)
		},
		"directory": func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Mkdir(path, 0o700)
		},
	} {
		for _, damaged := range []string{"index", "content"} {
			t.Run(name+"/"+damaged, func(t *testing.T) {
				c := openCache(filepath.Join(t.TempDir(), "sources"), "/m")
				put(c, "/m/a", "one")
				c.close()
				for path := range files(t, c.dir) {
					if (filepath.Base(path) == indexName) == (damaged == "index") {
						if err := damage(path); err != nil {
							t.Fatal(err)
						}
					}
				}
				c = openCache(c.dir, "/m")
				_, _, ok := c.load("/m/a")
				if problems := fmt.Sprint(c.problems()); ok || !strings.Contains(problems, "because it is damaged") {
					t.Errorf("load: got ok %v and problems %s, want the problem that the content is damaged", ok, problems)
				}
				put(c, "/m/a", "one, again")
				c = reopen(t, c)
				defer c.close()
				if data, _, _ := c.load("/m/a"); string(data) != "one, again" {
					t.Errorf("load after new content: got %q, want the new content", data)
				}
			})
		}
	}
}

// appendTo appends text to a file.
func appendTo(path, text string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, text...), 0o600)
}

// TestCache_NoDirectory checks that there is a Problem while the directory of the cache cannot be
// created. When the directory can be created, the cache must store its content.
func TestCache_NoDirectory(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "sources")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := openCache(dir, "/m")
	put(c, "/m/a", "one")
	if got := fmt.Sprint(c.problems()); !strings.Contains(got, "storing the last valid content") {
		t.Errorf("problems: got %s, want the failed write", got)
	}
	if data, _, ok := c.load("/m/a"); !ok || string(data) != "one" {
		t.Errorf("load of content that is not written yet: got %q, ok %v; want \"one\", ok true", data, ok)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	c.retryStore()
	c = reopen(t, c)
	defer c.close()
	if data, _, ok := c.load("/m/a"); !ok || string(data) != "one" {
		t.Errorf("load after the directory can be created: got %q, ok %v; want \"one\", ok true", data, ok)
	}
}

func TestCache_FailedWrite(t *testing.T) {
	c := openCache(filepath.Join(t.TempDir(), "sources"), "/m")
	defer c.close()
	blocker := filepath.Join(c.store.root.Name(), c.contentName("/m/a", digestOf([]byte("one")))+tempSuffix)
	if err := os.MkdirAll(filepath.Join(blocker, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	put(c, "/m/a", "one")
	<-c.storeErrChanged
	if got := fmt.Sprint(c.problems()); !strings.Contains(got, "storing the last valid content") {
		t.Errorf("problems: got %s, want the failed write", got)
	}
	if err := os.RemoveAll(blocker); err != nil {
		t.Fatal(err)
	}
	c.retryStore()
	<-c.storeErrChanged
	if got := c.problems(); len(got) != 0 {
		t.Errorf("problems after a successful write: got %v, want none", got)
	}
}

func TestCache_FileNames(t *testing.T) {
	for _, source := range []string{"../../etc", "/m", "https://h/\x00/..", strings.Repeat("x", 5000)} {
		c := openCache(filepath.Join(t.TempDir(), "sources"), source)
		put(c, "../../../etc/passwd", "one")
		put(c, "/"+strings.Repeat("y", 5000), "two")
		c.close()
		for path := range files(t, c.dir) {
			rel, err := filepath.Rel(c.dir, path)
			name := filepath.Base(path)
			if err != nil || strings.Count(rel, "/") != 1 || !isHash(filepath.Dir(rel)) || name != indexName && (len(name) != 65 || !isHash(name[:32])) {
				t.Errorf("source %.20q: got file %s, want names that consist of hashes", source, rel)
			}
		}
	}
}

func TestPrune(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sources")
	if err := Prune(dir); err != nil {
		t.Errorf("Prune without a directory: got error %v, want none", err)
	}
	for _, source := range []string{"/configured", "/removed"} {
		c := openCache(dir, source)
		put(c, source+"/a", "one")
		c.close()
	}
	if err := os.WriteFile(filepath.Join(dir, "unrelated"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Prune(dir, NewDir("/configured", Options{})); err != nil {
		t.Fatal(err)
	}
	var remaining []string
	for path := range files(t, dir) {
		rel, _ := filepath.Rel(dir, path)
		remaining = append(remaining, strings.Split(rel, "/")[0])
	}
	for _, name := range remaining {
		if name != "unrelated" && name != hashOf("/configured") {
			t.Errorf("%s still exists, want it removed", name)
		}
	}
	if len(remaining) != 3 {
		t.Errorf("remaining files: got %q, want an unrelated file, an index and a content", remaining)
	}
}

// TestCache_Mounts checks that removals of cached files do not cross a mount point.
func TestCache_Mounts(t *testing.T) {
	removals := map[string]struct {
		at     string // path of the mount point in the directory of the caches
		remove func(dir string) error
	}{
		"source that is not configured": {hashOf("/removed") + "/mnt", func(dir string) error { return Prune(dir) }},
		"cache of such a source":        {hashOf("/removed"), func(dir string) error { return Prune(dir) }},
		"directory that was set aside":  {"name" + unreadableSuffix + "/mnt", func(dir string) error { return setAside(dir, "name") }},
		"directory in place of a file": {"name/file/mnt", func(dir string) error {
			s, err := openStore(dir, "name")
			if err != nil {
				t.Fatal(err)
			}
			defer s.root.Close()
			return s.write("file", nil)
		}},
		"unused file": {"name/unused/mnt", func(dir string) error {
			s, err := openStore(dir, "name")
			if err != nil {
				t.Fatal(err)
			}
			defer s.root.Close()
			return s.sweep(nil)
		}},
	}
	for name, test := range removals {
		t.Run(name, func(t *testing.T) {
			dir, outside := t.TempDir(), t.TempDir()
			kept, at := filepath.Join(outside, "kept"), filepath.Join(dir, test.at)
			for _, path := range []string{at, filepath.Join(dir, "name")} {
				if err := os.MkdirAll(path, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(kept, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mount(outside, at, "", unix.MS_BIND, ""); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
			if err := test.remove(dir); !errors.Is(err, safepath.ErrMount) {
				t.Errorf("with a mount at %s: got error %v, want %v", at, err, safepath.ErrMount)
			}
			if _, err := os.Stat(kept); err != nil {
				t.Errorf("Stat of the file in the mounted directory: got error %v, want none", err)
			}
			if err := unix.Unmount(at, 0); err != nil {
				t.Fatal(err)
			}
			if err := test.remove(dir); err != nil {
				t.Errorf("after the unmount: got error %v, want none", err)
			}
		})
	}
}

// TestCache_Property checks that the cache has the last content of each path after any sequence of
// calls of put and removeEntry and of restarts.
func TestCache_Property(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := openCache(filepath.Join(t.TempDir(), "sources"), "/m")
		defer func() { c.close() }()
		model := map[string]string{}
		paths, contents := rapid.SampledFrom([]string{"/m/a", "/m/b"}), rapid.StringN(0, 9, 20)
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(rt *rapid.T) {
				path, content := paths.Draw(rt, "path"), contents.Draw(rt, "content")
				put(c, path, content)
				model[path] = content
			},
			"drop": func(rt *rapid.T) {
				path := paths.Draw(rt, "path")
				c.removeEntry(path)
				delete(model, path)
			},
			"restart": func(*rapid.T) { c = reopen(t, c) },
			"": func(rt *rapid.T) {
				got := map[string]string{}
				for _, path := range []string{"/m/a", "/m/b"} {
					if data, _, ok := c.load(path); ok {
						got[path] = string(data)
					}
				}
				if diff := cmp.Diff(model, got); diff != "" {
					rt.Fatalf("content of the cache (-want +got):\n%s", diff)
				}
			},
		})
	})
}

func FuzzRemoveChecksum(f *testing.F) {
	f.Add([]byte(""))
	f.Add(addChecksum(nil))
	f.Add(addChecksum([]byte("kind: Pod\n")))
	f.Add([]byte(headerPrefix + digestOf(nil) + " 00\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		payload, digest, err := removeChecksum(data)
		if err != nil {
			return
		}
		if digest != digestOf(payload) || !bytes.Equal(addChecksum(payload), data) {
			t.Errorf("removeChecksum(%q): got payload %q, digest %s; want the digest of this payload, and that addChecksum of the payload returns the argument", data, payload, digest)
		}
	})
}

func FuzzIndex(f *testing.F) {
	valid, err := json.Marshal(index{Source: []byte("/m"), Entries: []record{{Path: []byte("/m/a"), Digest: digestOf(nil)}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(valid)
	f.Add([]byte(`{"source":"L20=","entries":[{"path":"Lg==","digest":"sha256:../../etc"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		records, _, err := parseIndex(data, "/m")
		if err != nil {
			return
		}
		c := cache{source: "/m"}
		for path, r := range records {
			if name := c.contentName(path, r.Digest); len(name) != 65 || strings.ContainsAny(name, "/.") {
				t.Errorf("index %q: got file name %q of an entry, want hashes only", data, name)
			}
		}
	})
}
