package source

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"podd/manifest"
	"podd/manifest/durable"
)

// put keeps a content. data must not change afterwards.
func (c *cache) put(path string, r record, data []byte) {
	r.Path = []byte(path)
	c.change(path, &change{r, data})
}

// drop forgets a path.
func (c *cache) drop(path string) { c.change(path, nil) }

// change makes one change pending, unless the disk has it already.
func (c *cache) change(path string, ch *change) {
	if c.dir == "" || c.readOnly {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, busy := c.writing[path]
	r, kept := c.records[path]
	same := ch == nil && !kept || ch != nil && kept && r.Digest == ch.record.Digest
	if same && !busy {
		delete(c.pending, path)
		return
	}
	c.pending[path] = ch
	c.poke(c.wake)
}

// listed notes that the source was read whole: from now on an index says so,
// if only by being empty.
func (c *cache) listed() {
	if c.dir == "" || c.readOnly || c.known {
		return
	}
	c.known = true
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh = true
	c.poke(c.wake)
}

// retry writes again what could not be written.
func (c *cache) retry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != nil {
		c.poke(c.wake)
	}
}

// problems are what is wrong with the cache now.
func (c *cache) problems() []manifest.Problem {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		return c.damage
	}
	return append(slices.Clip(c.damage), manifest.Problem{
		Severity: manifest.Warning, Path: c.source,
		Message: fmt.Sprintf("keeping its last good content in %s: %v; until that works, podd cannot fall back to it after a restart", c.dir, c.failed),
	})
}

// poke wakes the reader of a channel without waiting for it.
func (*cache) poke(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// serve writes until the cache is closed.
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

// flush writes everything pending; what fails is pending again.
func (c *cache) flush() {
	c.mu.Lock()
	changes, fresh := c.pending, c.fresh
	if len(changes) == 0 && !fresh && c.failed == nil {
		c.mu.Unlock()
		return
	}
	c.pending, c.writing, c.fresh = map[string]*change{}, changes, false
	next := maps.Clone(c.records)
	c.mu.Unlock()

	err := c.write(changes, next)

	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing = nil
	if err == nil {
		c.records = next
	} else {
		maps.Copy(changes, c.pending) // the newer ones win
		c.pending, c.fresh = changes, fresh || c.fresh
	}
	if fmt.Sprint(err) != fmt.Sprint(c.failed) {
		c.poke(c.told)
	}
	c.failed = err
}

// write applies the changes to next, and next to the disk.
func (c *cache) write(changes map[string]*change, next map[string]record) error {
	st, err := c.disk()
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
	x := index{Source: []byte(c.source), Saved: time.Now().UTC().Round(time.Second), Entries: []record{}}
	for _, path := range slices.Sorted(maps.Keys(next)) {
		x.Entries = append(x.Entries, next[path])
	}
	payload, err := json.Marshal(x)
	if err != nil {
		return err
	}
	if err := durable.Sync(st.root); err != nil { // the contents before what names them
		return err
	}
	if err := st.write(indexName, payload); err != nil {
		return err
	}
	if err := durable.Sync(st.root); err != nil {
		return err
	}
	keep := map[string]bool{indexName: true}
	for path, r := range next {
		keep[c.bodyName(path, r.Digest)] = true
	}
	return st.sweep(keep)
}

// disk is the store, made now if it could not be made before.
func (c *cache) disk() (*store, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.store == nil {
		made, err := openStore(c.dir, hashOf(c.source))
		if err != nil {
			return nil, err
		}
		c.store = made
	}
	return c.store, nil
}
