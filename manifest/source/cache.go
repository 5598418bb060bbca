package source

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"podd/manifest"
)

// cache keeps the last good content of every file, or of the one URL, of one
// source on disk:
//
//	<root>/sources/<hash of the source>/index                      sealed JSON
//	<root>/sources/<hash of the source>/<hash of path>-<digest>    sealed content
//
// Contents are written first and the index names only those that are there, so
// the cache is whole whenever podd or the machine stops. put and drop return
// at once; a goroutine of its own writes, since a disk may take its time and a
// manifest shall not. Only what changed is written.
//
// The source's goroutine calls all methods but those of the writer.
type cache struct {
	dir    string // <root>/sources; "" keeps nothing
	source string
	wake   chan struct{} // something is pending
	told   chan struct{} // failed has changed
	stop   chan struct{}
	ended  chan struct{}

	// readOnly: nothing is written, by a goroutine or otherwise.
	readOnly bool
	// damage are the Problems that were found while reading; the source's own.
	damage []manifest.Problem
	// known says that a whole index was read.
	known bool

	mu      sync.Mutex         // guards all following fields
	store   *store             // nil: could not be had yet
	records map[string]record  // on disk, by path
	pending map[string]*change // to be written
	writing map[string]*change // being written
	fresh   bool               // an index is due even without changes
	failed  error              // of the last writing
}

// change is one entry to come: the record and content to keep, or nil to
// forget the entry.
type change struct {
	record record
	data   []byte
}

const indexName = "index"

// openCache reads the index of a source and starts its writer; close ends it.
// Damage is a Problem and never an error: podd runs without a cache.
func openCache(dir, source string) *cache {
	c := &cache{
		dir: dir, source: source,
		wake: make(chan struct{}, 1), told: make(chan struct{}, 1),
		stop: make(chan struct{}), ended: make(chan struct{}),
		records: map[string]record{}, pending: map[string]*change{},
	}
	if dir == "" {
		close(c.ended)
		return c
	}
	if st, err := c.disk(); err == nil {
		c.readIndex(st)
	} else {
		c.failed = err
	}
	go c.serve()
	return c
}

// close writes what is pending and ends the writer.
func (c *cache) close() {
	close(c.stop)
	<-c.ended
	if c.store != nil {
		c.store.root.Close()
	}
}

// readIndex fills records. No index is that of a source never seen.
func (c *cache) readIndex(st *store) {
	payload, _, err := st.read(indexName)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var records map[string]record
	if err == nil {
		records, err = parseIndex(payload, c.source)
	}
	if err != nil {
		c.damaged(c.source, fmt.Errorf("reading its index %q: %w", filepath.Join(st.root.Name(), indexName), err))
		return
	}
	c.records, c.known = records, true
}

// paths are those of all entries, sorted.
func (c *cache) paths() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var paths []string
	for path := range c.records {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// load returns the last good content of a path, written or not yet; false when
// there is none or it is damaged.
func (c *cache) load(path string) ([]byte, record, bool) {
	ch, coming, r, st := c.find(path)
	switch {
	case ch != nil:
		return ch.data, ch.record, true
	case coming || st == nil || r.Digest == "":
		return nil, record{}, false
	}
	data, digest, err := st.read(c.bodyName(path, r.Digest))
	if err == nil && digest != r.Digest {
		err = errSeal
	}
	if err != nil {
		c.damaged(path, fmt.Errorf("reading it: %w", err))
		return nil, record{}, false
	}
	return data, r, true
}

// find returns the change that is coming for a path, else its record on disk.
func (c *cache) find(path string) (ch *change, coming bool, r record, st *store) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch, coming = c.pending[path]; !coming {
		ch, coming = c.writing[path]
	}
	return ch, coming, c.records[path], c.store
}

// damaged notes that what is kept for a path cannot be used.
func (c *cache) damaged(path string, err error) {
	p := manifest.Problem{
		Severity: manifest.Warning, Path: path,
		Message: fmt.Sprintf("its last good content in %s is damaged and ignored: %v; the next good content replaces it", c.dir, err),
	}
	if !slices.Contains(c.damage, p) {
		c.damage = append(c.damage, p)
	}
}

// bodyName is the name of a content's file, from hashes alone.
func (c *cache) bodyName(path, digest string) string {
	return hashOf(c.source+"\x00"+path) + "-" + digest[len("sha256:"):][:32]
}

// hashOf makes a file name of anything.
func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}
