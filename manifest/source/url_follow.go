package source

import (
	"context"
	"time"

	"podd/manifest"
)

// urlFollower is one Run of a URL and all that it knows. Its goroutine owns it;
// the one that asks the server owns the client while it asks.
type urlFollower struct {
	*URL
	content
	client client
	cache  *cache
	emit   func(manifest.Batch)

	have     validators // of the content that is there
	failures int        // in a row
	failed   error      // why the last request did; nil when it did not
	waiting  bool       // the first answer takes its time
	fromDisk bool       // what runs is what an earlier podd kept
	listed   bool       // a good list was seen
	exposed  bool
	last     *manifest.Batch
}

// hush is how long podd waits for the first answer before it falls back to what
// it kept on disk: what the server has removed meanwhile shall not start again
// only to be stopped.
const hush = time.Second

// Run polls until ctx is done; it never fails.
func (u *URL) Run(ctx context.Context, emit func(manifest.Batch)) error {
	f := newURLFollower(u, emit)
	defer f.close()
	answers := make(chan answer, 1)
	due := time.NewTimer(0)
	defer due.Stop()
	late := time.NewTimer(hush)
	defer late.Stop()
	asking := false
	for {
		select {
		case <-ctx.Done():
			if asking {
				<-answers
			}
			return nil
		case <-due.C:
			asking = true
			have := f.have
			go func() { answers <- f.client.fetch(ctx, have) }()
		case a := <-answers:
			asking = false
			if ctx.Err() != nil {
				return nil
			}
			due.Reset(f.take(a))
		case <-late.C:
			f.waiting = f.last == nil
		case <-f.cache.told:
		}
		f.publish()
	}
}

// newURLFollower begins with what is in the cache, unseen as yet.
func newURLFollower(u *URL, emit func(manifest.Batch)) *urlFollower {
	f := &urlFollower{
		URL: u, emit: emit, client: client{URL: u},
		content: content{path: u.name}, cache: u.opts.cache(u.name),
	}
	data, r, ok := f.cache.load(u.name)
	if !ok {
		return f
	}
	f.restore(u.opts.decode(data, u.name), r.Digest, r.Version)
	f.fromDisk = true
	if !f.runs.Refused() {
		f.have = validators{r.ETag, r.Modified}
	}
	return f
}

// close ends what the follower started.
func (f *urlFollower) close() {
	f.client.close()
	f.cache.close()
}

// take makes an answer the URL's and says when to ask again.
func (f *urlFollower) take(a answer) time.Duration {
	now := f.opts.Now()
	f.waiting, f.failed, f.exposed = false, a.err, a.exposed
	switch {
	case a.err != nil:
		f.failures++
		f.fallBehind(behindAnswer, now)
		return f.pace().wait(f.failures, a.silent, a.after)
	case a.notModified:
		f.unchanged(now)
	default:
		f.receive(a, now)
	}
	f.failures = 0
	if f.behind == "" && f.there != "" {
		f.fromDisk = false
		if !f.listed {
			f.listed = !f.runs.Refused()
			f.cache.listed()
		}
	}
	return f.pace().wait(0, false, 0)
}

func (f *urlFollower) pace() pace { return pace{f.opts.CheckFrequency, f.random} }

// unchanged is for a server that still has the content last seen.
func (f *urlFollower) unchanged(now time.Time) {
	if f.there == "" || f.there == f.digest {
		f.back()
		return
	}
	f.fallBehind(behindRefused, now)
}

// receive takes a whole content.
func (f *urlFollower) receive(a answer, now time.Time) {
	f.have = a.validators
	digest := digestOf(a.data)
	switch {
	case f.runs != nil && f.digest == digest:
		f.back()
		return
	case f.there == digest:
		f.fallBehind(behindRefused, now)
		return
	}
	if f.offer(f.opts.decode(a.data, f.name), digest, now, now) {
		f.cache.put(f.name, record{Digest: digest, Version: now.UTC(), ETag: a.etag, Modified: a.modified}, a.data)
	}
}
