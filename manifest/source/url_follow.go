package source

import (
	"context"
	"time"

	"podd/manifest"
)

// urlFollower is the state of one call of URL.Run. The goroutine of Run owns it, except that the
// goroutine of a request owns client during the request.
type urlFollower struct {
	*URL
	content
	client client
	cache  *cache
	emit   func(manifest.Batch)

	currentValidators   validators // validators of the current content
	failures            int        // number of consecutive failed requests
	fetchErr            error      // error of the last request; nil if it succeeded
	isFirstResponseLate bool       // whether the first response is late
	isFromCache         bool       // whether the content in use comes from the cache
	hasListed           bool       // whether valid content was received
	areHeadersExposed   bool
	lastBatch           *manifest.Batch
}

// firstResponseWait is how long podd waits for the first response before it uses the cached
// content. The cached content may contain a pod that the server has removed in the meantime. Such a
// pod should not be started and stopped soon afterwards.
const firstResponseWait = time.Second

// Run polls until ctx is done. It always returns nil.
func (u *URL) Run(ctx context.Context, emit func(manifest.Batch)) error {
	f := newURLFollower(u, emit)
	defer f.close()
	results := make(chan fetchResult, 1)
	requestTimer := time.NewTimer(0)
	defer requestTimer.Stop()
	lateTimer := time.NewTimer(firstResponseWait)
	defer lateTimer.Stop()
	isFetching := false
	for {
		select {
		case <-ctx.Done():
			if isFetching {
				<-results
			}
			return nil
		case <-requestTimer.C:
			if f.cache.retryStore() && (f.inUse == nil || f.inUse.HasRefusedDocument()) {
				f.restoreCached()
			}
			isFetching = true
			currentValidators := f.currentValidators
			go func() { results <- f.client.fetch(ctx, currentValidators) }()
		case result := <-results:
			isFetching = false
			if ctx.Err() != nil {
				return nil
			}
			requestTimer.Reset(f.handleResult(result))
		case <-lateTimer.C:
			f.isFirstResponseLate = f.lastBatch == nil
		case <-f.cache.storeErrChanged:
		}
		f.publish()
	}
}

// newURLFollower returns a urlFollower with the cached content. The server has not confirmed this
// content yet.
func newURLFollower(u *URL, emit func(manifest.Batch)) *urlFollower {
	f := &urlFollower{
		URL: u, emit: emit, client: client{URL: u},
		content: content{path: u.name}, cache: u.opts.openSourceCache(u.name),
	}
	f.restoreCached()
	return f
}

// restoreCached makes the cached content the version in use. The next response of the server
// confirms or replaces it.
func (f *urlFollower) restoreCached() {
	data, r, ok := f.cache.load(f.name)
	if !ok {
		return
	}
	f.restore(f.opts.decode(data, f.name), r.Digest, r.ContentTime)
	f.isFromCache, f.currentDigest, f.currentValidators = true, "", validators{}
	if !f.inUse.HasRefusedDocument() {
		f.currentValidators = validators{r.ETag, r.LastModified}
	}
}

// close closes the connection and the cache.
func (f *urlFollower) close() {
	f.client.close()
	f.cache.close()
}

// handleResult processes a response and returns the time until the next request.
func (f *urlFollower) handleResult(result fetchResult) time.Duration {
	now := f.opts.Now()
	f.isFirstResponseLate, f.fetchErr, f.areHeadersExposed = false, result.err, result.areHeadersExposed
	switch {
	case result.err != nil:
		f.failures++
		f.setOutdated(outdatedFetch, now)
		return f.newPollInterval().nextWait(f.failures, result.hasNoResponse, result.retryAfter)
	case result.isNotModified:
		f.handleUnchanged(now)
	default:
		f.handleContent(result, now)
	}
	f.failures = 0
	if f.outdatedReason == "" && f.currentDigest != "" {
		f.isFromCache = false
		if !f.hasListed {
			f.hasListed = !f.inUse.HasRefusedDocument()
			f.cache.markListed()
		}
	}
	return f.newPollInterval().nextWait(0, false, 0)
}

func (f *urlFollower) newPollInterval() pollInterval {
	return pollInterval{f.opts.CheckFrequency, f.random}
}

// handleUnchanged processes a response with the same content as the previous response.
func (f *urlFollower) handleUnchanged(now time.Time) {
	if f.currentDigest == "" || f.currentDigest == f.inUseDigest {
		f.confirmInUse()
		return
	}
	f.setOutdated(outdatedRefused, now)
}

// handleContent processes a response with content.
func (f *urlFollower) handleContent(result fetchResult, now time.Time) {
	f.currentValidators = result.validators
	digest := digestOf(result.data)
	switch {
	case f.inUse != nil && f.inUseDigest == digest:
		f.confirmInUse()
		return
	case f.currentDigest == digest:
		f.setOutdated(outdatedRefused, now)
		return
	}
	if decodedFile := f.opts.decode(result.data, f.name); f.setCurrent(decodedFile, digest, now, now) && f.cache.mayStore(decodedFile) {
		f.cache.put(f.name, record{Digest: digest, ContentTime: now.UTC(), ETag: result.etag, LastModified: result.lastModified}, result.data)
	}
}
