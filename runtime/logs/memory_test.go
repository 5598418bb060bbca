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
	// A reader that looks for lost events at the time of a measurement needs more. Such readers are
	// many if the machine is busy.
	each := (held() - before) / 200
	for n := 0; each > most && n < 100; n++ {
		each = (held() - before) / 200
	}
	if each > most {
		t.Errorf("memory of a waiting reader: got at least %d bytes in each measurement, want at most %d", each, most)
	}
}
