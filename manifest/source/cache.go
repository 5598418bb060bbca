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

// cache stores the last valid content of each file, or of the URL, of one source on disk:
//
//	<root>/sources/<hash of the source>/index                      sealed JSON
//	<root>/sources/<hash of the source>/<hash of path>-<digest>    sealed content
//
// Contents are written before the index that names them, so the cache is consistent
// whenever podd or the host stops. put and drop return at once, because a slow disk must
// not delay a manifest: a separate goroutine writes. Only changes are written.
//
// Nothing is written before the index has been read, because the new index would replace
// one with contents that podd does not know. If reading fails because of the host (an I/O
// error, too many open files), retry repeats it. If the index itself cannot be used (it is
// damaged, or of a newer podd), the first write sets the whole directory aside:
//
//	<root>/sources/<hash of the source>.unreadable/                the last one set aside
//
// Only the goroutine of the source may call the methods other than the writer's.
type cache struct {
	dir           string // <root>/sources; "" disables the cache
	source        string
	wake          chan struct{} // a change is pending
	failedChanged chan struct{} // failed has changed
	stop          chan struct{}
	ended         chan struct{}

	// readOnly prevents all writes, including those of the goroutine.
	readOnly bool
	// damage, known, unread and accepted belong to the source's goroutine.
	// damage contains the Problems found while reading.
	damage []manifest.Problem
	// known reports whether a complete index was read.
	known bool
	// unread reports whether there may be an index that could not be read, so that podd does
	// not know which contents there were.
	unread bool
	// accepted reports whether a user accepted an empty directory. Then an index that is read
	// later is out of date.
	accepted bool

	mu       sync.Mutex         // guards all following fields
	store    *store             // nil: the index was not read yet
	setAside bool               // the next write must set the directory aside
	records  map[string]record  // on disk, by path
	pending  map[string]*change // to be written
	writing  map[string]*change // being written
	indexDue bool               // an index must be written even without changes
	failed   error              // error of the last write, or of opening the store
	place    *identity          // directory the entries were read from; nil: not recorded
}

// change is a pending change of one entry: the record and content to store. A nil change
// removes the entry.
type change struct {
	record record
	data   []byte
}

const indexName = "index"

// openCache reads the index of a source and starts the writer, which close stops. Damage is
// a Problem and never an error, because podd can run without a cache.
func openCache(dir, source string) *cache {
	c := &cache{
		dir: dir, source: source,
		wake: make(chan struct{}, 1), failedChanged: make(chan struct{}, 1),
		stop: make(chan struct{}), ended: make(chan struct{}),
		records: map[string]record{}, pending: map[string]*change{},
	}
	if dir == "" {
		close(c.ended)
		return c
	}
	c.open()
	go c.serve()
	return c
}

// open opens the store and reads the index. It reports whether that succeeded; the index may
// be damaged then.
func (c *cache) open() bool {
	st, err := openStore(c.dir, hashOf(c.source))
	if err == nil {
		if err = c.readIndex(st); err != nil {
			st.root.Close()
		}
	}
	c.unread = c.unread || err != nil
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed = err; err == nil {
		c.store = st
	}
	return err == nil
}

// close writes pending changes and stops the writer.
func (c *cache) close() {
	close(c.stop)
	<-c.ended
	if c.store != nil {
		c.store.root.Close()
	}
}

// readIndex sets records, place, known and unread. It returns an error if the index cannot
// be read now but perhaps later. A source without an index was never read completely, unless
// an index was set aside and podd or the host stopped before the next one was written.
func (c *cache) readIndex(st *store) error {
	path := filepath.Join(st.root.Name(), indexName)
	payload, _, err := st.read(indexName)
	if errors.Is(err, fs.ErrNotExist) {
		if err = c.checkSetAside(); err == nil {
			c.unread = false
			return nil
		}
	}
	if _, failed := errors.AsType[*fs.PathError](err); failed {
		return fmt.Errorf("reading index %q: %w", path, err)
	}
	var records map[string]record
	var place *identity
	if err == nil {
		records, place, err = parseIndex(payload, c.source)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(err, errSetAside):
		c.unread = true
		c.addDamage(c.source, fmt.Errorf("reading index %q: %w", path, err))
	case err != nil:
		c.unread, c.setAside = true, true
		c.addDamage(c.source, fmt.Errorf("reading index %q: %w; the next change moves it to %q", path, err, st.root.Name()+unreadableSuffix))
	case c.accepted:
		c.unread, c.indexDue = false, true
	default:
		c.records, c.known, c.unread = records, true, false
		if place != nil {
			c.place = place
		}
	}
	return nil
}

// paths returns the paths of all entries, sorted.
func (c *cache) paths() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var paths []string
	for path := range c.records {
		if ch, coming := c.pending[path]; !coming || ch != nil {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// load returns the last valid content of a path, even if it is not written yet. It returns
// false if there is none or if it is damaged.
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
		c.addDamage(path, err)
		return nil, record{}, false
	}
	return data, r, true
}

// find returns the pending change of a path and its record on disk.
func (c *cache) find(path string) (ch *change, coming bool, r record, st *store) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch, coming = c.pending[path]; !coming {
		ch, coming = c.writing[path]
	}
	return ch, coming, c.records[path], c.store
}

// addDamage records a Problem: the stored content of a path cannot be used.
func (c *cache) addDamage(path string, err error) {
	p := manifest.Problem{
		Severity: manifest.Warning, Path: path,
		Message: fmt.Sprintf("its last valid content in %s is damaged and ignored: %v; the next valid content replaces it", c.dir, err),
	}
	if !slices.Contains(c.damage, p) {
		c.damage = append(c.damage, p)
	}
}

// bodyName returns the file name of a content. It consists of hashes only.
func (c *cache) bodyName(path, digest string) string {
	return hashOf(c.source+"\x00"+path) + "-" + digest[len("sha256:"):][:32]
}

// hashOf returns a file name for any string.
func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}
