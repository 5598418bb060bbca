package source

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// content is the state of one file or URL. It contains the version that podd uses. If podd does not
// use the current version, it also contains the reason. The zero value has no version. One
// goroutine owns a content.
//
//	              valid            refused, but removes no pod
//	no content ────────▶ in use ◀─────────────────── partly in use
//	   │                ▲    │ refused                   ▲  │ refused
//	   │          valid │    ▼                           │  ▼
//	   │             in use, outdated            partly in use, outdated
//	   └────────────── refused: its valid documents ─────┘
type content struct {
	path string
	// inUse is the version in use; nil if there is none. Until a valid content was read, inUse
	// contains the valid documents of an invalid content, and inUse.HasRefusedDocument returns
	// true.
	inUse       *manifest.File
	inUseDigest string // digest of the bytes of inUse
	inUseTime   time.Time
	// currentDigest is the digest of the current content at the last call of setCurrent or
	// confirmInUse; "" before the first call. isCurrentRefused reports whether a document in this
	// content was refused.
	currentDigest    string
	isCurrentRefused bool
	// problems contains the Problems of the current content.
	problems []manifest.Problem
	// outdatedReason and outdatedSince have the meaning of OutdatedReason and OutdatedSince in
	// manifest.FileState.
	outdatedReason string
	outdatedSince  time.Time
}

// Values of outdatedReason. `podd ps` prints them before a duration, as in "edit refused 4s ago".
const (
	outdatedRefused = "edit refused"
	outdatedWriting = "write begun"
	outdatedRead    = "reading failed"
	outdatedGone    = "gone"
	outdatedFetch   = "fetch failed"
)

// setCurrent processes f, the current content, which was read completely. digest is the digest of
// its bytes. contentTime has the meaning of FileState.ContentTime. The parameter since is the time
// at which f became the current content (FileState.OutdatedSince). If mustStore is true, the version
// in use has changed and the caller must store the bytes in the cache.
func (c *content) setCurrent(f *manifest.File, digest string, contentTime, since time.Time) (mustStore bool) {
	f = checkImmutable(f, c.inUse)
	c.currentDigest, c.isCurrentRefused, c.problems = digest, f.HasRefusedDocument(), f.Problems
	if !c.isReplacedBy(f) {
		c.setOutdated(outdatedRefused, since)
		return false
	}
	c.outdatedReason, c.outdatedSince = "", time.Time{}
	if c.inUse != nil && c.inUseDigest == digest {
		return false
	}
	c.inUse, c.inUseDigest, c.inUseTime = f, digest, contentTime
	return c.hasFallback()
}

// isReplacedBy reports whether f replaces the version in use. Valid content always replaces it.
// Refused content replaces it only if no valid content was read before and f contains all pods of
// the version in use.
func (c *content) isReplacedBy(f *manifest.File) bool {
	if !f.HasRefusedDocument() {
		return true
	}
	if c.inUse == nil {
		return true
	}
	return c.inUse.HasRefusedDocument() && hasAllPods(f, c.inUse)
}

// restore makes a cached content the version in use. Afterwards the caller must call setCurrent,
// confirmInUse or setOutdated for the current content.
func (c *content) restore(f *manifest.File, digest string, contentTime time.Time) {
	c.inUse, c.inUseDigest, c.inUseTime, c.problems = f, digest, contentTime, f.Problems
}

// hasFallback reports whether the version in use can be used instead of an invalid content: it
// is valid, or contains at least one pod or object.
func (c *content) hasFallback() bool {
	return c.inUse != nil && (hasObjects(c.inUse) || !c.inUse.HasRefusedDocument())
}

// confirmInUse records that the current content is equal to the version in use. It has the same
// effect as setCurrent, but the caller need not decode the content again.
func (c *content) confirmInUse() {
	c.currentDigest, c.isCurrentRefused, c.problems = c.inUseDigest, c.inUse.HasRefusedDocument(), c.inUse.Problems
	c.outdatedReason, c.outdatedSince = "", time.Time{}
}

// setOutdated records the reason why the current content is not in use. If the reason is already
// recorded, setOutdated does not change outdatedSince.
func (c *content) setOutdated(reason string, since time.Time) {
	if c.outdatedReason != reason {
		c.outdatedReason, c.outdatedSince = reason, toUTC(since)
	}
}

// state returns the FileState of the content.
func (c *content) state() manifest.FileState {
	s := manifest.FileState{Path: c.path}
	if c.hasFallback() {
		s.Digest, s.ContentTime = c.inUseDigest, toUTC(c.inUseTime)
	}
	s.OutdatedReason, s.OutdatedSince = c.outdatedReason, c.outdatedSince
	if c.isCurrentRefused {
		s.RefusedDigest = c.currentDigest
	}
	return s
}

// hasAllPods reports whether a contains a pod with the same key for every pod of b.
func hasAllPods(a, b *manifest.File) bool {
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

// toUTC returns t in UTC without the monotonic clock reading, so that equal times are equal
// with ==.
func toUTC(t time.Time) time.Time {
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
