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
//	<root>/sources/<hash of the source>/index                      JSON
//	<root>/sources/<hash of the source>/<hash of path>-<digest>    content
//
// Each file starts with a checksum (cache_format.go). Contents are written before the index that
// names them, so the cache is consistent whenever podd or the host stops. A separate goroutine
// writes, so put and removeEntry return at once and a slow disk does not delay a manifest. Only
// changes are written.
//
// Nothing is written before the index has been read, because the new index would replace an index
// that may name other contents. If reading the index fails, for example because of an I/O error or
// too many open files, retryStore reads it again. If the index is damaged, or was written by a
// newer podd, the first write moves the whole directory to:
//
//	<root>/sources/<hash of the source>.unreadable/
//
// Only the goroutine of the source may call the methods. The exceptions are runWriter, flush, write
// and writableStore: only the writing goroutine may call them.
type cache struct {
	dir             string // <root>/sources; "" disables the cache
	source          string
	wake            chan struct{} // a change is pending
	storeErrChanged chan struct{} // storeErr has changed
	stop            chan struct{}
	done            chan struct{}

	// isReadOnly prevents all writes, including those of the writing goroutine.
	isReadOnly bool
	// The goroutine of the source owns the following four fields. damageProblems contains the
	// Problems of contents and indexes that cannot be used.
	damageProblems []manifest.Problem
	// isIndexComplete reports whether the cache contains all files of the source: a complete index
	// was read, or will be written.
	isIndexComplete bool
	// mayHaveUnreadIndex reports whether the cache may have an index that could not be read. If so,
	// podd cannot determine which contents were in the cache.
	mayHaveUnreadIndex bool
	// hasAcceptedEmpty reports whether a user accepted a directory although manifests are missing
	// from it. If so, an index that is read later is out of date.
	hasAcceptedEmpty bool

	mu                sync.Mutex         // guards all following fields
	store             *store             // nil: the index was not read yet
	mustSetAside      bool               // the next write must set the directory aside
	records           map[string]record  // records on disk, by path
	pendingChanges    map[string]*change // changes that must still be written
	changesInProgress map[string]*change // changes that the writing goroutine is writing
	mustWriteIndex    bool               // an index must be written even without changes
	storeErr          error              // error of the last write, or of opening the store
	manifestDir       *identity          // directory from which the entries were read; nil if not recorded
}

// change is a pending change of one entry: the record and content to store. A nil *change
// removes the entry.
type change struct {
	record record
	data   []byte
}

const indexName = "index"

// openCache reads the index of a source and starts the writing goroutine, which close stops. If
// the cache is damaged, problems returns a Problem. openCache returns no error, because podd can
// run without a cache.
func openCache(dir, source string) *cache {
	c := &cache{
		dir: dir, source: source,
		wake: make(chan struct{}, 1), storeErrChanged: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}),
		records: map[string]record{}, pendingChanges: map[string]*change{},
	}
	if dir == "" {
		close(c.done)
		return c
	}
	c.open()
	go c.runWriter()
	return c
}

// open opens the store, reads the index, and reports whether both succeeded. A damaged index is not a
// failure.
func (c *cache) open() (opened bool) {
	st, err := openStore(c.dir, hashOf(c.source))
	if err == nil {
		if err = c.readIndex(st); err != nil {
			st.root.Close()
		}
	}
	c.mayHaveUnreadIndex = c.mayHaveUnreadIndex || err != nil
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.storeErr = err; err == nil {
		c.store = st
	}
	return err == nil
}

// close writes pending changes and stops the writing goroutine.
func (c *cache) close() {
	close(c.stop)
	<-c.done
	if c.store != nil {
		c.store.root.Close()
	}
}

// readIndex reads the index and sets records, manifestDir, isIndexComplete and mayHaveUnreadIndex.
// It returns an error if a later attempt to read the index may succeed. There are two possible
// reasons for a missing index: the source was never read completely, or an index was set aside and
// podd or the host stopped before the next index was written.
func (c *cache) readIndex(st *store) error {
	path := filepath.Join(st.root.Name(), indexName)
	payload, _, err := st.read(indexName)
	if errors.Is(err, fs.ErrNotExist) {
		if err = c.checkSetAside(); err == nil {
			c.mayHaveUnreadIndex = false
			return nil
		}
	}
	if _, isPathError := errors.AsType[*fs.PathError](err); isPathError {
		return fmt.Errorf("reading index %q: %w", path, err)
	}
	var records map[string]record
	var dir *identity
	if err == nil {
		records, dir, err = parseIndex(payload, c.source)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(err, errSetAside):
		c.mayHaveUnreadIndex = true
		c.addDamage(c.source, fmt.Errorf("reading index %q: %w", path, err))
	case err != nil:
		c.mayHaveUnreadIndex, c.mustSetAside = true, true
		c.addDamage(c.source, fmt.Errorf("reading index %q: %w; when a manifest of this source next changes, podd renames the directory of the index to %q and writes a new index", path, err, st.root.Name()+unreadableSuffix))
	case c.hasAcceptedEmpty:
		c.mayHaveUnreadIndex, c.mustWriteIndex = false, true
	default:
		c.records, c.isIndexComplete, c.mayHaveUnreadIndex = records, true, false
		if dir != nil {
			c.manifestDir = dir
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
		if ch, isPending := c.pendingChanges[path]; !isPending || ch != nil {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// load returns the last valid content of a path and the record of the content, even if they are not
// on disk yet. ok is false if there is no content or if the content is damaged.
func (c *cache) load(path string) (data []byte, r record, ok bool) {
	ch, isPending, r, st := c.findEntry(path)
	switch {
	case ch != nil:
		return ch.data, ch.record, true
	case isPending || st == nil || r.Digest == "":
		return nil, record{}, false
	}
	data, digest, err := st.read(c.contentName(path, r.Digest))
	if err == nil && digest != r.Digest {
		err = errChecksum
	}
	if err != nil {
		c.addDamage(path, err)
		return nil, record{}, false
	}
	return data, r, true
}

// findEntry returns the pending change of a path, the record of the path on disk, and the store. The
// store is nil if it is not open. If isPending is true and ch is nil, the pending change removes the
// entry of the path.
func (c *cache) findEntry(path string) (ch *change, isPending bool, r record, st *store) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch, isPending = c.pendingChanges[path]; !isPending {
		ch, isPending = c.changesInProgress[path]
	}
	return ch, isPending, c.records[path], c.store
}

// addDamage records the Problem that the stored content of a path cannot be used.
func (c *cache) addDamage(path string, err error) {
	p := manifest.Problem{
		Severity: manifest.Warning, Path: path,
		Message: fmt.Sprintf("podd ignores the stored last valid content in %s, because it is damaged: %v; podd replaces it when it next reads valid content", c.dir, err),
	}
	if !slices.Contains(c.damageProblems, p) {
		c.damageProblems = append(c.damageProblems, p)
	}
}

// contentName returns the name of the file that stores a content of path. The name consists of
// hashes only.
func (c *cache) contentName(path, digest string) string {
	return hashOf(c.source+"\x00"+path) + "-" + digest[len("sha256:"):][:32]
}

// hashOf returns a hexadecimal hash of s, which can be a file name.
func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}
