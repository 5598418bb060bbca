package progress

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLine checks that the line is drawn each second, hidden while other output is written, and
// removed by Close. It is not drawn while the last line of other output is incomplete.
func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		l := start(&b, time.Second, func() int { return 20 })
		step := func(name, want string) {
			t.Helper()
			synctest.Wait()
			l.mu.Lock()
			defer l.mu.Unlock()
			if got := b.String(); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
			b.Reset()
		}
		out := l.Writer(&b)
		began := time.Now()
		l.SetText(func(now time.Time) string { return "pulling for " + now.Sub(began).String() })
		step("text set", "\rpulling for 0s\x1b[K")
		time.Sleep(time.Second + time.Millisecond)
		step("a second later", "\rpulling for 1s\x1b[K")
		out.Write([]byte("a line\n"))
		step("line written", "\r\x1b[Ka line\n\rpulling for 1.001s\x1b[K")
		out.Write([]byte("half a"))
		time.Sleep(5 * time.Second)
		step("unterminated line written", "\r\x1b[Khalf a")
		out.Write([]byte(" line\n"))
		step("line terminated", " line\n\rpulling for 6.001s\x1b[K")
		l.SetText(func(time.Time) string { return "as long as the terminal is wide" })
		step("long text", "\ras long as the ter…\x1b[K")
		l.SetText(nil)
		step("text removed", "\r\x1b[K")
		time.Sleep(5 * time.Second)
		step("still no text", "")
		l.SetText(func(time.Time) string { return "again" })
		l.Close()
		l.Close()
		out.Write([]byte("end\n"))
		step("closed", "\ragain\x1b[K\r\x1b[Kend\n")
	})
}

// TestNew_NoTerminal checks that New returns nil if the writer is not a terminal, and that the
// methods of a nil Line do nothing.
func TestNew_NoTerminal(t *testing.T) {
	var b strings.Builder
	for _, l := range []*Line{New(&b), New(os.NewFile(^uintptr(0), "none"))} {
		if l != nil {
			t.Fatalf("no terminal: got Line %v, want nil", l)
		}
		l.SetText(func(time.Time) string { return "x" })
		if l.Writer(&b) != &b {
			t.Error("Writer of a nil Line: got another writer, want the one passed in")
		}
		l.Close()
	}
}

// TestFormatPulls checks that an image that several pods pull is listed once, with its longest pull time, and
// that the oldest pull is first.
func TestFormatPulls(t *testing.T) {
	now := time.Unix(1000, 0)
	newPull := func(image string, ago time.Duration) Pull { return Pull{Image: image, Since: now.Add(-ago)} }
	for want, pulls := range map[string][]Pull{
		"":                            nil,
		"pulling a:1 for 3s":          {newPull("a:1", 3*time.Second)},
		"pulling b for 90s, a for 2s": {newPull("a", 2*time.Second), newPull("b", 90*time.Second), newPull("a", time.Second)},
		"pulling a for 0s":            {newPull("a", -time.Hour)},
	} {
		if got := FormatPulls(pulls, now); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
