package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"
)

// A burst of pods makes garbage that nothing needs afterwards, and a quiet
// daemon gives the collector no reason to run again. Most of its program is
// not needed either until the next burst; what a quiet podd looks at now and then
// maps much of it anew.
const (
	gcPercent    = 50
	quietPercent = 20 // garbage is rare then, and collecting it cheap
	quietAfter   = 3 * time.Second
	programEvery = 10 * time.Second // costs half a millisecond
)

// noteLess has fewer allocations noted for /debug/pprof/heap, as the notes of Go's
// own rate take a megabyte; GODEBUG=memprofilerate=1 has all of them. What was
// allocated before main looks larger there than it is.
func noteLess() {
	if runtime.MemProfileRate == 512<<10 {
		runtime.MemProfileRate = 4 << 20
	}
}

// trimmer gives memory back to the machine once podd has been quiet.
type trimmer struct{ busy chan struct{} } // capacity 1

func newTrimmer() trimmer { return trimmer{make(chan struct{}, 1)} }

// touch says that podd has done something. It never waits.
func (t trimmer) touch() {
	select {
	case t.busy <- struct{}{}:
	default:
	}
}

// run works until ctx is done.
func (t trimmer) run(ctx context.Context) error {
	debug.SetGCPercent(gcPercent)
	quiet := time.NewTimer(quietAfter)
	defer quiet.Stop()
	for freed := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-t.busy:
			if freed {
				debug.SetGCPercent(gcPercent)
			}
			freed = false
			quiet.Reset(quietAfter)
		case <-quiet.C:
			if !freed {
				debug.SetGCPercent(quietPercent)
				debug.FreeOSMemory()
			}
			freed = true
			quiet.Reset(programEvery)
			_ = releaseProgram() // without it podd is as good, and larger
		}
	}
}
