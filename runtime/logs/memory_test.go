package logs

import (
	"runtime"
	"testing"
)

// TestFollowersAreSmall: what one of many holds while it waits, beside its stack.
func TestFollowersAreSmall(t *testing.T) {
	const most = 8 << 10
	dir, l := newLog(t)
	ok(t, l.start())
	for range 1000 {
		ok(t, l.write(cri(Stdout, false, "a line of some length, as programs write them")))
	}
	held := func() int64 {
		runtime.GC()
		runtime.GC() // of what pools have, too
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	n := &Notifier{}
	first := follows(n, 1, dir) // with what they share
	defer first.leave()
	before := held()
	c := follows(n, 200, dir)
	defer c.leave()
	for _, out := range c.got {
		*out = output{} // the test's own
	}
	if each := (int64(held()) - before) / 200; each > most {
		t.Errorf("a follower holds %d bytes, more than %d", each, most)
	}
}
