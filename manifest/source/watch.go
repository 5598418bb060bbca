package source

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"podd/manifest"
)

// Watch runs the sources and returns what they want together, as one Set after
// every change of any of them. The first Set comes with the first Batch (at
// once when there are no sources) and names every source in Complete. A slow
// reader gets the newest Set and none of those in between. The channel is
// closed when ctx is done and every source has ended.
//
// Of two sources with one name only the first is run.
func Watch(ctx context.Context, sources ...Source) <-chan *manifest.Set {
	out := make(chan *manifest.Set)
	m := newMerger(sources)
	go m.run(ctx, out) // the reader waits for it by reading to the close
	return out
}

// merger owns the last Batch of every source.
type merger struct {
	sources []Source         // nil where the name is taken
	batches []manifest.Batch // same index
	reports chan report
}

// report is a new Batch of the source with this index.
type report struct {
	index int
	batch manifest.Batch
}

func newMerger(sources []Source) *merger {
	m := &merger{sources: slices.Clone(sources), reports: make(chan report)}
	taken := map[string]bool{}
	for i, s := range m.sources {
		batch := manifest.Batch{Source: s.Name(), Kind: s.Kind()}
		if taken[batch.Source] {
			batch = twice(s, i)
			m.sources[i] = nil
		}
		taken[batch.Source] = true
		m.batches = append(m.batches, batch)
	}
	return m
}

// twice is all that comes from a source whose name another one has.
func twice(s Source, index int) manifest.Batch {
	return manifest.Batch{
		Source: fmt.Sprintf("%s#%d", s.Name(), index+1), Kind: s.Kind(), Complete: true,
		Problems: []manifest.Problem{{
			Severity: manifest.Warning, Path: s.Name(),
			Message: "this source is named twice; the first one counts, remove the other",
		}},
	}
}

// run starts the sources and serves until all of them have ended.
func (m *merger) run(ctx context.Context, out chan<- *manifest.Set) {
	defer close(out)
	ended := m.start(ctx)
	var next *manifest.Set
	var send chan<- *manifest.Set // nil while there is nothing new to deliver
	if len(m.sources) == 0 {
		next, send = manifest.Merge(nil), out
	}
	for {
		select {
		case r := <-m.reports:
			m.batches[r.index] = r.batch
			next, send = manifest.Merge(slices.Clone(m.batches)), out
		case send <- next:
			send = nil
		case <-ended:
			return
		}
	}
}

// start runs every source in a goroutine of its own. The channel is closed
// when ctx is done and all of them have ended.
func (m *merger) start(ctx context.Context) <-chan struct{} {
	var running sync.WaitGroup
	for i, s := range m.sources {
		if s != nil {
			running.Go(func() { m.tend(ctx, i, s) })
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-ctx.Done()
		running.Wait()
	}()
	return ended
}

// Waits before a source that failed is run again.
const (
	firstRerun = time.Second
	lastRerun  = time.Minute
)

// tend runs one source, again after an error, until ctx is done.
func (m *merger) tend(ctx context.Context, index int, s Source) {
	last := m.batches[index]
	emit := func(b manifest.Batch) {
		b.Source, b.Kind = s.Name(), s.Kind()
		last = b
		m.reports <- report{index, b}
	}
	for wait := firstRerun; ; wait = min(2*wait, lastRerun) {
		began := time.Now()
		err := s.Run(ctx, emit)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > lastRerun {
			wait = firstRerun
		}
		m.reports <- report{index, failed(last, s, err)}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// failed is the last Batch of a source with a Problem for its early end.
func failed(last manifest.Batch, s Source, err error) manifest.Batch {
	p := manifest.Problem{
		Severity: manifest.Error, Path: s.Name(),
		Message: fmt.Sprintf("watching ended early: %v; its last content runs on and podd starts it again within %v", err, lastRerun),
	}
	last.Problems = append(slices.Clip(last.Problems), p)
	return last
}
