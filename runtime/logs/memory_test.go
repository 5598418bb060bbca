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
		ok(t, l.write(logLine(Stdout, false, "a line of some length, as programs write them")))
	}
	held := func() int64 {
		runtime.GC()
		runtime.GC() // also frees the elements of pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	n := &Notifier{}
	first := startReaders(n, 1, dir) // allocates the parts that readers share
	defer first.leave()
	before := held()
	c := startReaders(n, 200, dir)
	defer c.leave()
	for _, out := range c.got {
		*out = output{} // free the memory that the test itself needs
	}
	if each := (int64(held()) - before) / 200; each > most {
		t.Errorf("memory of a waiting reader: got %d bytes, want at most %d", each, most)
	}
}
