package source

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// content is the content of one file or URL: the version in use, and the version that is
// there now if that is not used. The zero value has no version. One goroutine owns it.
//
//	              valid            refused, but removes no pod
//	nothing ───────────▶ in use ◀─────────────────── partly in use
//	   │                ▲    │ refused                   ▲  │ refused
//	   │          valid │    ▼                           │  ▼
//	   │             in use, behind              partly in use, behind
//	   └────────────── refused: its valid documents ─────┘
type content struct {
	path string
	// inUse is the version in use; nil: none. inUse.Refused reports true until a valid
	// content was read: until then inUse contains the valid documents of an invalid content.
	inUse   *manifest.File
	digest  string // digest of the bytes of inUse
	version time.Time
	// offered is the digest of the bytes that were offered last; "" before the first.
	offered string
	// problems are those of the content that is there now.
	problems []manifest.Problem
	// behind and since have the meaning of the fields of manifest.FileState.
	behind string
	since  time.Time
}

// These are the reasons why a content is behind. `podd ps` prints them before "4s ago".
const (
	behindRefused = "edit refused"
	behindWriting = "write begun"
	behindRead    = "reading failed"
	behindGone    = "gone"
	behindFetch   = "fetch failed"
)

// offer processes a content that was read completely. It reports whether the version in use
// has changed, so that the caller must store data in the cache.
func (c *content) offer(f *manifest.File, digest string, version, since time.Time) bool {
	f = keepImmutable(f, c.inUse)
	c.offered, c.problems = digest, f.Problems
	if !c.replaces(f) {
		c.fallBehind(behindRefused, since)
		return false
	}
	c.behind, c.since = "", time.Time{}
	if c.inUse != nil && c.digest == digest {
		return false
	}
	c.inUse, c.digest, c.version = f, digest, version
	return c.hasFallback()
}

// replaces reports whether f replaces the version in use. Valid content always does. Refused
// content does only if no valid content was read before and it removes no running pod.
func (c *content) replaces(f *manifest.File) bool {
	if !f.Refused() {
		return true
	}
	if c.inUse == nil {
		return true
	}
	return c.inUse.Refused() && covers(f, c.inUse)
}

// restore makes a cached content the version in use. The content that is there now must be
// offered again afterwards.
func (c *content) restore(f *manifest.File, digest string, version time.Time) {
	c.inUse, c.digest, c.version, c.problems = f, digest, version, f.Problems
}

// hasFallback reports whether there is content to fall back to.
func (c *content) hasFallback() bool {
	return c.inUse != nil && (hasObjects(c.inUse) || !c.inUse.Refused())
}

// restoreOffered records that the content that is there now is the version in use, without
// decoding it.
func (c *content) restoreOffered() {
	c.offered, c.problems = c.digest, c.inUse.Problems
	c.behind, c.since = "", time.Time{}
}

// fallBehind records why the newest content is not in use. since is stored only when the
// reason changes.
func (c *content) fallBehind(why string, since time.Time) {
	if c.behind != why {
		c.behind, c.since = why, plainTime(since)
	}
}

// state returns the state of the content for a Batch.
func (c *content) state() manifest.FileState {
	s := manifest.FileState{Path: c.path}
	if c.hasFallback() {
		s.Digest, s.Version = c.digest, plainTime(c.version)
	}
	s.Behind, s.Since = c.behind, c.since
	return s
}

// covers reports whether a has a pod of the same name for every pod of b.
func covers(a, b *manifest.File) bool {
	names := map[types.NamespacedName]bool{}
	for _, p := range a.Pods {
		names[p.Key] = true
	}
	for _, p := range b.Pods {
		if !names[p.Key] {
			return false
		}
	}
	return true
}

// plainTime returns t without the monotonic reading and location, so that == works on equal
// times.
func plainTime(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.Round(0).UTC()
}

// digestOf returns the digest of data as "sha256:<hex>".
func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
