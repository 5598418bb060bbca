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

// mayStore reports whether f, which is in use, may be stored. A refused File must not be stored
// until podd has read the index, because the File would replace valid content in the cache.
func (c *cache) mayStore(f *manifest.File) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.store != nil || !f.HasRefusedDocument()
}

// put stores the record and the content of a path. The caller must not modify data afterwards.
func (c *cache) put(path string, r record, data []byte) {
	r.Path = []byte(path)
	c.addChange(path, &change{r, data})
}

// removeEntry removes the entry of a path.
func (c *cache) removeEntry(path string) { c.addChange(path, nil) }

// addChange adds a pending change, unless the same content is already on disk.
func (c *cache) addChange(path string, ch *change) {
	if c.dir == "" || c.isReadOnly {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, isInProgress := c.changesInProgress[path]
	r, isStored := c.records[path]
	isUnchanged := c.store != nil && (ch == nil && !isStored || ch != nil && isStored && r.Digest == ch.record.Digest)
	if isUnchanged && !isInProgress {
		delete(c.pendingChanges, path)
		return
	}
	c.pendingChanges[path] = ch
	c.notify(c.wake)
}

// markListed records that the source was read completely. This makes the writing goroutine write an
// index, even if the index has no entries.
func (c *cache) markListed() {
	if c.dir == "" || c.isReadOnly || c.isIndexComplete {
		return
	}
	c.isIndexComplete = true
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mustWriteIndex = true
	c.notify(c.wake)
}

// setManifestDir records the directory from which manifests are read. nil means that the directory
// contains no manifests.
func (c *cache) setManifestDir(id *identity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.manifestDir == id || c.manifestDir != nil && id != nil && *c.manifestDir == *id {
		return
	}
	c.manifestDir = id
	if c.dir != "" && !c.isReadOnly {
		c.mustWriteIndex = true
		c.notify(c.wake)
	}
}

// isRecordedDir reports whether id may belong to the recorded directory from which manifests were
// read. recordedID is the identity of the recorded directory; nil if none is recorded.
func (c *cache) isRecordedDir(id identity) (isRecorded bool, recordedID *identity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.manifestDir != nil && c.manifestDir.mayMatch(id), c.manifestDir
}

// recordAccepted records that a user accepted a directory without the missing manifests.
func (c *cache) recordAccepted(id *identity) {
	c.hasAcceptedEmpty = true
	c.setManifestDir(id)
}

// hasContent reports whether the cache contains content of a path, even if it is not written
// yet.
func (c *cache) hasContent(path string) bool {
	ch, isPending, r, _ := c.findEntry(path)
	return ch != nil || !isPending && r.Digest != ""
}

// retryStore wakes the writer if the last write failed. If opening the store failed, retryStore first
// tries to open the store again. opened reports whether retryStore has opened the store. If so, the
// caller must load the contents of the cache.
func (c *cache) retryStore() (opened bool) {
	if c.dir == "" || c.isReadOnly {
		return false
	}
	c.mu.Lock()
	wasClosed, hasFailed := c.store == nil, c.storeErr != nil
	c.mu.Unlock()
	if wasClosed && !c.open() {
		return false
	}
	if wasClosed || hasFailed {
		c.notify(c.wake)
	}
	return wasClosed
}

// problems returns the current Problems of the cache.
func (c *cache) problems() []manifest.Problem {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.storeErr == nil {
		return c.damageProblems
	}
	consequence := "podd cannot use this content after a restart"
	if c.store == nil {
		consequence = "podd can neither read nor store it"
	}
	return append(slices.Clip(c.damageProblems), manifest.Problem{
		Severity: manifest.Warning, Path: c.source,
		Message: fmt.Sprintf("storing the last valid content in %s: %v; until this succeeds, %s", c.dir, c.storeErr, consequence),
	})
}

// notify wakes the receiver of ch without blocking.
func (*cache) notify(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// runWriter writes changes until the cache is closed.
func (c *cache) runWriter() {
	defer close(c.done)
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

// flush writes all pending changes if the store is open. If writing fails, the changes stay
// pending.
func (c *cache) flush() {
	c.mu.Lock()
	changes, mustWriteIndex := c.pendingChanges, c.mustWriteIndex
	if c.store == nil || len(changes) == 0 && !mustWriteIndex && c.storeErr == nil {
		c.mu.Unlock()
		return
	}
	c.pendingChanges, c.changesInProgress, c.mustWriteIndex = map[string]*change{}, changes, false
	records, dir := maps.Clone(c.records), c.manifestDir
	c.mu.Unlock()

	err := c.write(changes, records, dir)

	c.mu.Lock()
	defer c.mu.Unlock()
	c.changesInProgress = nil
	if err == nil {
		c.records = records
	} else {
		maps.Copy(changes, c.pendingChanges) // newer changes replace older changes
		c.pendingChanges, c.mustWriteIndex = changes, mustWriteIndex || c.mustWriteIndex
	}
	if fmt.Sprint(err) != fmt.Sprint(c.storeErr) {
		c.notify(c.storeErrChanged)
	}
	c.storeErr = err
}

// write writes the changes and a new index to disk. The map records contains the records on disk by
// path; write applies the changes to this map.
func (c *cache) write(changes map[string]*change, records map[string]record, dir *identity) error {
	st, err := c.writableStore()
	if err != nil {
		return err
	}
	for path, ch := range changes {
		if ch == nil {
			delete(records, path)
			continue
		}
		if err := st.write(c.contentName(path, ch.record.Digest), ch.data); err != nil {
			return err
		}
		records[path] = ch.record
	}
	x := index{Source: []byte(c.source), Saved: time.Now().UTC().Round(time.Second), Entries: []record{}, ManifestDir: dir}
	for _, path := range slices.Sorted(maps.Keys(records)) {
		x.Entries = append(x.Entries, records[path])
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
	fileNames := map[string]bool{indexName: true}
	for path, r := range records {
		fileNames[c.contentName(path, r.Digest)] = true
	}
	return st.sweep(fileNames)
}

// writableStore returns the store. If the index of the store cannot be used, writableStore sets the
// directory aside and returns a new store. If it cannot open the new store, retryStore opens it
// later.
func (c *cache) writableStore() (*store, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.mustSetAside {
		return c.store, nil
	}
	name := hashOf(c.source)
	if err := setAside(c.dir, name); err != nil {
		return nil, fmt.Errorf("renaming the directory of the unreadable index to %q: %w", filepath.Join(c.dir, name+unreadableSuffix), err)
	}
	c.mustSetAside = false
	c.store.root.Close()
	var err error
	c.store, err = openStore(c.dir, name)
	return c.store, err
}
