package source

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"podd/manifest"
	"podd/manifest/merge"
)

// Watch runs the sources and sends their merged content as a Set after each change of a source. It
// sends the first Set after the first Batch of a source, or at once if there are no sources.
// CompleteSources of every Set has an entry for each source. A slow receiver gets only the newest
// Set. Watch closes the channel when ctx is done and every source has stopped.
//
// If two sources have the same name, only the first one runs.
func Watch(ctx context.Context, sources ...Source) <-chan *manifest.Set {
	sets := make(chan *manifest.Set)
	m := newMerger(sources)
	go m.run(ctx, sets) // the receiver waits until run has ended, because it receives until sets is closed
	return sets
}

// merger owns the last Batch of every source.
type merger struct {
	sources    []Source         // an element is nil if an earlier source has the same name
	batches    []manifest.Batch // the last Batch of each source, by its index in sources
	newBatches chan sourceBatch
}

// sourceBatch is a new Batch of the source with this index.
type sourceBatch struct {
	index int
	batch manifest.Batch
}

func newMerger(sources []Source) *merger {
	m := &merger{sources: slices.Clone(sources), newBatches: make(chan sourceBatch)}
	usedNames := map[string]bool{}
	for i, s := range m.sources {
		batch := manifest.Batch{Source: s.Name(), Kind: s.Kind()}
		if usedNames[batch.Source] {
			batch = newDuplicateBatch(s, i)
			m.sources[i] = nil
		}
		usedNames[batch.Source] = true
		m.batches = append(m.batches, batch)
	}
	return m
}

// newDuplicateBatch returns the Batch of a source with the name of an earlier source. The Batch
// contains only a Problem.
func newDuplicateBatch(s Source, index int) manifest.Batch {
	return manifest.Batch{
		Source: fmt.Sprintf("%s#%d", s.Name(), index+1), Kind: s.Kind(), IsComplete: true,
		Problems: []manifest.Problem{{
			Severity: manifest.Warning, Path: s.Name(),
			Message: "this source is configured twice; remove one of the two",
		}},
	}
}

// run starts the sources and sends Sets to the channel sets until all sources have stopped.
func (m *merger) run(ctx context.Context, sets chan<- *manifest.Set) {
	defer close(sets)
	allStopped := m.startSources(ctx)
	var next *manifest.Set
	var send chan<- *manifest.Set // nil while there is nothing new to send
	if len(m.sources) == 0 {
		next, send = merge.Batches(nil), sets
	}
	for {
		select {
		case r := <-m.newBatches:
			m.batches[r.index] = r.batch
			next, send = merge.Batches(slices.Clone(m.batches)), sets
		case send <- next:
			send = nil
		case <-allStopped:
			return
		}
	}
}

// startSources runs every source in its own goroutine. The returned channel is closed when ctx is
// done and all sources have stopped.
func (m *merger) startSources(ctx context.Context) <-chan struct{} {
	var running sync.WaitGroup
	for i, s := range m.sources {
		if s != nil {
			running.Go(func() { m.runSource(ctx, i, s) })
		}
	}
	allStopped := make(chan struct{})
	go func() {
		defer close(allStopped)
		<-ctx.Done()
		running.Wait()
	}()
	return allStopped
}

// Delays before a failed source runs again.
const (
	minRerunDelay = time.Second
	maxRerunDelay = time.Minute
)

// runSource runs one source until ctx is done. It runs the source again after each error.
func (m *merger) runSource(ctx context.Context, index int, s Source) {
	lastBatch := m.batches[index]
	emit := func(b manifest.Batch) {
		b.Source, b.Kind = s.Name(), s.Kind()
		lastBatch = b
		m.newBatches <- sourceBatch{index, b}
	}
	for wait := minRerunDelay; ; wait = min(2*wait, maxRerunDelay) {
		startTime := time.Now()
		err := s.Run(ctx, emit)
		if ctx.Err() != nil {
			return
		}
		if time.Since(startTime) > maxRerunDelay {
			wait = minRerunDelay
		}
		m.newBatches <- sourceBatch{index, withFailureProblem(lastBatch, s, err)}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// withFailureProblem returns a copy of lastBatch, the last Batch of s, with an additional Problem for
// err.
func withFailureProblem(lastBatch manifest.Batch, s Source, err error) manifest.Batch {
	p := manifest.Problem{
		Severity: manifest.Error, Path: s.Name(),
		Message: fmt.Sprintf("watching the source failed: %v; podd uses the content that it last read, and retries within %v", err, maxRerunDelay),
	}
	lastBatch.Problems = append(slices.Clip(lastBatch.Problems), p)
	return lastBatch
}
