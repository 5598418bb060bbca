package source

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// content is what one file or URL holds: what runs of it, and what is there
// now where that does not run. The zero value holds nothing. One goroutine
// owns it.
//
//	             good            refused, stops no pod
//	nothing ───────────▶ runs ◀──────────────────── part runs
//	   │                ▲    │ refused                  ▲  │ refused
//	   │           good │    ▼                          │  ▼
//	   │              runs, behind      part runs, behind
//	   └────────────── refused: its good documents ─────┘
type content struct {
	path string
	// runs is what is wanted of it; nil: nothing is. Refused while no good
	// content was ever seen: then it is the good documents of a bad content.
	runs    *manifest.File
	digest  string // of the bytes of runs
	version time.Time
	// there is the digest of the bytes last offered, "" before the first.
	there string
	// problems are of the content that is there.
	problems []manifest.Problem
	// behind and since as in manifest.FileState.
	behind string
	since  time.Time
}

// Why a content is behind, as `podd ps` prints it before "4s ago".
const (
	behindRefused = "edit refused"
	behindWriting = "write begun"
	behindRead    = "reading failed"
	behindGone    = "gone"
	behindAnswer  = "fetch failed"
)

// offer takes a content that was read whole. It says whether the bytes are now
// what runs and were not before, and so belong into the cache.
func (c *content) offer(f *manifest.File, digest string, version, since time.Time) bool {
	f = f.Keeping(c.runs)
	c.there, c.problems = digest, f.Problems
	if !c.takes(f) {
		c.fallBehind(behindRefused, since)
		return false
	}
	c.behind, c.since = "", time.Time{}
	if c.runs != nil && c.digest == digest {
		return false
	}
	c.runs, c.digest, c.version = f, digest, version
	return c.keeps()
}

// takes says whether f replaces what runs: a good content always, a refused one
// only where no good one was seen and it stops no pod that runs.
func (c *content) takes(f *manifest.File) bool {
	if !f.Refused() {
		return true
	}
	if c.runs == nil {
		return true
	}
	return c.runs.Refused() && covers(f, c.runs)
}

// restore puts a content from the cache under what is there. It counts as what
// runs from now on; what is there must be offered again.
func (c *content) restore(f *manifest.File, digest string, version time.Time) {
	c.runs, c.digest, c.version, c.problems = f, digest, version, f.Problems
}

// keeps says that there is something to fall back to.
func (c *content) keeps() bool {
	return c.runs != nil && (holds(c.runs) || !c.runs.Refused())
}

// back says that what is there is again what runs, without decoding it.
func (c *content) back() {
	c.there, c.problems = c.digest, c.runs.Problems
	c.behind, c.since = "", time.Time{}
}

// fallBehind notes why what is there does not run. The first time stands while
// the reason does.
func (c *content) fallBehind(why string, since time.Time) {
	if c.behind != why {
		c.behind, c.since = why, wall(since)
	}
}

// state is the content as the Batch tells it.
func (c *content) state() manifest.FileState {
	s := manifest.FileState{Path: c.path}
	if c.keeps() {
		s.Digest, s.Version = c.digest, wall(c.version)
	}
	s.Behind, s.Since = c.behind, c.since
	return s
}

// covers says that every pod of b has one with its name in a.
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

// wall strips what would make equal times unequal by ==.
func wall(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.Round(0).UTC()
}

// digestOf names bytes: "sha256:<hex>".
func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
