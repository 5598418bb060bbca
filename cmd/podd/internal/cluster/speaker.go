package cluster

import (
	"context"
	"time"
)

// part is what an attempt was about.
type part int

// In the order in which users are told of them: the earlier explain the later.
const (
	ofKubeconfig part = iota
	ofIdentity
	ofNode
	ofPods
	ofServices
	ofDrivers
	ofLease
	ofStatus
	ofCSINode
	ofServing
	parts
)

// speaker tells users what keeps the node from being one: once when it comes up,
// once when it is another thing, and once when it is over.
type speaker struct {
	o       *Options
	reports chan attempt
	trouble [parts]trouble
	said    trouble
	of      part      // that said was told of
	since   time.Time // of said
}

type attempt struct {
	of  part
	err error
}

func newSpeaker(o *Options) *speaker { return &speaker{o: o, reports: make(chan attempt)} }

// report says how the newest attempt of a part ended.
func (s *speaker) report(ctx context.Context, of part, err error) {
	if ctx.Err() != nil {
		return // the attempt was ended, it did not fail
	}
	select {
	case s.reports <- attempt{of, err}:
	case <-ctx.Done():
	}
}

func (s *speaker) run(ctx context.Context) {
	for {
		select {
		case a := <-s.reports:
			s.take(ctx, a, time.Now())
		case <-ctx.Done():
			return
		}
	}
}

func (s *speaker) take(ctx context.Context, a attempt, now time.Time) {
	s.trouble[a.of] = troubleOf(a.err)
	var worst trouble
	var of part
	for i, t := range s.trouble {
		if t.kind != fine {
			worst, of = t, part(i)
			break
		}
	}
	if worst.kind == s.said.kind && (worst.text == s.said.text || s.holds()) {
		return
	}
	was, since := s.said, s.since
	s.said, s.of, s.since = worst, of, now
	switch {
	case worst.kind != fine:
		s.o.Log.Warn("cluster", "why", worst.text)
	case was.kind != fine:
		s.o.Log.Info("the cluster is well again", "after", now.Sub(since).Round(100*time.Millisecond))
	}
	s.o.Told(ctx, worst.text)
}

// holds says that what was said is as good as other words of its kind: they name what
// is waited for, or what is forbidden, and whoever has allowed that is not to read it
// any more.
func (s *speaker) holds() bool {
	return s.said.kind != waiting && (s.said.kind != forbidden || s.trouble[s.of].kind == forbidden)
}
