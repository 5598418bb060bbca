package source

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"podd/manifest"
	"podd/runtime/atomicfile"
)

// mayStore reports whether a content that is in use may be stored. Refused content is in use
// if no valid content was read before, which podd does not know until it has read the index.
func (c *cache) mayStore(f *manifest.File) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.store != nil || !f.Refused()
}

// put stores a content. The caller must not change data afterwards.
func (c *cache) put(path string, r record, data []byte) {
	r.Path = []byte(path)
	c.change(path, &change{r, data})
}

// drop removes the entry of a path.
func (c *cache) drop(path string) { c.change(path, nil) }

// change adds a pending change, unless the disk already has that content.
func (c *cache) change(path string, ch *change) {
	if c.dir == "" || c.readOnly {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, busy := c.writing[path]
	r, kept := c.records[path]
	same := c.store != nil && (ch == nil && !kept || ch != nil && kept && r.Digest == ch.record.Digest)
	if same && !busy {
		delete(c.pending, path)
		return
	}
	c.pending[path] = ch
	c.notify(c.wake)
}

// markListed records that the source was read completely. The index shows that, even if it has
// no entries.
func (c *cache) markListed() {
	if c.dir == "" || c.readOnly || c.known {
		return
	}
	c.known = true
	c.mu.Lock()
	defer c.mu.Unlock()
	c.indexDue = true
	c.notify(c.wake)
}

// setPlace records the directory from which manifests are read; nil if it has none.
func (c *cache) setPlace(id *identity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.place == id || c.place != nil && id != nil && *c.place == *id {
		return
	}
	c.place = id
	if c.dir != "" && !c.readOnly {
		c.indexDue = true
		c.notify(c.wake)
	}
}

// isRecordedPlace reports whether id is the directory from which manifests were read, and returns
// the recorded identity; nil if none is recorded.
func (c *cache) isRecordedPlace(id identity) (bool, *identity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.place != nil && c.place.is(id), c.place
}

// accept records that a user accepted an empty directory.
func (c *cache) accept(id *identity) {
	c.accepted = true
	c.setPlace(id)
}

// has reports whether a content of a path is stored.
func (c *cache) has(path string) bool {
	ch, coming, r, _ := c.find(path)
	return ch != nil || !coming && r.Digest != ""
}

// retry repeats a failed write, or opens the store if that has failed before. It reports
// whether it opened the store: then all contents of the cache are new to the caller.
func (c *cache) retry() (opened bool) {
	if c.dir == "" || c.readOnly {
		return false
	}
	c.mu.Lock()
	closed, failed := c.store == nil, c.failed != nil
	c.mu.Unlock()
	if closed && !c.open() {
		return false
	}
	if closed || failed {
		c.notify(c.wake)
	}
	return closed
}

// problems returns the current Problems of the cache.
func (c *cache) problems() []manifest.Problem {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		return c.damage
	}
	until := "podd cannot fall back to it after a restart"
	if c.store == nil {
		until = "podd cannot fall back to it"
	}
	return append(slices.Clip(c.damage), manifest.Problem{
		Severity: manifest.Warning, Path: c.source,
		Message: fmt.Sprintf("storing its last valid content in %s: %v; until this succeeds, %s", c.dir, c.failed, until),
	})
}

// notify wakes the receiver of ch without blocking.
func (*cache) notify(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// serve writes changes until the cache is closed.
func (c *cache) serve() {
	defer close(c.ended)
	for {
		select {
		case <-c.wake:
			c.flush()
		case <-c.stop:
			c.flush()
			return
		}
	}
}

// flush writes all pending changes if the store is open. If the write fails, they stay
// pending.
func (c *cache) flush() {
	c.mu.Lock()
	changes, fresh := c.pending, c.indexDue
	if c.store == nil || len(changes) == 0 && !fresh && c.failed == nil {
		c.mu.Unlock()
		return
	}
	c.pending, c.writing, c.indexDue = map[string]*change{}, changes, false
	next, place := maps.Clone(c.records), c.place
	c.mu.Unlock()

	err := c.write(changes, next, place)

	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing = nil
	if err == nil {
		c.records = next
	} else {
		maps.Copy(changes, c.pending) // newer changes replace older ones
		c.pending, c.indexDue = changes, fresh || c.indexDue
	}
	if fmt.Sprint(err) != fmt.Sprint(c.failed) {
		c.notify(c.failedChanged)
	}
	c.failed = err
}

// write applies the changes to next and to the disk.
func (c *cache) write(changes map[string]*change, next map[string]record, place *identity) error {
	st, err := c.writableStore()
	if err != nil {
		return err
	}
	for path, ch := range changes {
		if ch == nil {
			delete(next, path)
			continue
		}
		if err := st.write(c.bodyName(path, ch.record.Digest), ch.data); err != nil {
			return err
		}
		next[path] = ch.record
	}
	x := index{Source: []byte(c.source), Saved: time.Now().UTC().Round(time.Second), Entries: []record{}, Place: place}
	for _, path := range slices.Sorted(maps.Keys(next)) {
		x.Entries = append(x.Entries, next[path])
	}
	payload, err := json.Marshal(x)
	if err != nil {
		return err
	}
	if err := atomicfile.SyncDir(st.root); err != nil { // contents must be on disk before the index that names them
		return err
	}
	if err := st.write(indexName, payload); err != nil {
		return err
	}
	if err := atomicfile.SyncDir(st.root); err != nil {
		return err
	}
	keep := map[string]bool{indexName: true}
	for path, r := range next {
		keep[c.bodyName(path, r.Digest)] = true
	}
	return st.sweep(keep)
}

// writableStore returns the store. If its index cannot be used, it is set aside first, and
// the store is an empty one. If opening that fails, retry opens it.
func (c *cache) writableStore() (*store, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.setAside {
		return c.store, nil
	}
	name := hashOf(c.source)
	if err := setAside(c.dir, name); err != nil {
		return nil, fmt.Errorf("moving the unreadable cache to %q: %w", filepath.Join(c.dir, name+unreadableSuffix), err)
	}
	c.setAside = false
	c.store.root.Close()
	var err error
	c.store, err = openStore(c.dir, name)
	return c.store, err
}
