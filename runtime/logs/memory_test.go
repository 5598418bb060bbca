package logs

import (
	"runtime"
	"testing"
)

// TestFollow_Memory checks how much memory a waiting reader needs in addition to its stack.
func TestFollow_Memory(t *testing.T) {
	const most = 8 << 10
	dir, l := newLog(t)
	ok(t, l.start())
	for range 1000 {
		ok(t, l.write(cri(Stdout, false, "a line of some length, as programs write them")))
	}
	held := func() int64 {
		runtime.GC()
		runtime.GC() // frees the elements of pools, too
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	n := &Notifier{}
	first := follows(n, 1, dir) // allocates the shared parts
	defer first.leave()
	before := held()
	c := follows(n, 200, dir)
	defer c.leave()
	for _, out := range c.got {
		*out = output{} // memory of the test
	}
	if each := (int64(held()) - before) / 200; each > most {
		t.Errorf("a reader needs %d bytes, want at most %d", each, most)
	}
}
