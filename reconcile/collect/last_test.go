package collect

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLastLines checks that LastLines waits for the rest of the log, which the runtime
// writes after the container has exited.
func TestLastLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := LogsAndCgroups{Logs: Logs{Dir: t.TempDir()}}
		file := filepath.Join(l.Logs.Dir, "default_web-node1_uid", "main", "2.log")
		must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		log, err := os.Create(file)
		must(t, err)
		defer log.Close()
		write := func(from, to int) {
			t.Helper()
			for i := from; i < to; i++ {
				_, err := fmt.Fprintf(log, "2026-03-01T14:02:00.000000000Z stdout F line %d\n", i)
				must(t, err)
			}
		}
		write(0, 100)
		type result struct {
			text string
			err  error
		}
		got := make(chan result, 1)
		go func() {
			text, err := l.LastLines(t.Context(), web, "uid", "main", 2)
			got <- result{text, err}
		}()
		select {
		case r := <-got:
			t.Fatalf("LastLines while the runtime writes: got %q (error %v), want no return", r.text, r.err)
		case <-time.After(5 * time.Second):
		}
		write(100, 102)
		must(t, log.Close())
		r := <-got
		lines := strings.Split(r.text, "\n")
		if r.err != nil || len(lines) != maxLastLines+1 || lines[0] != "line 22" || lines[maxLastLines-1] != "line 101" {
			t.Errorf("LastLines: got %q (error %v), want %d lines from \"line 22\" to \"line 101\"", r.text, r.err, maxLastLines)
		}
		if text, err := l.LastLines(t.Context(), web, "uid", "main", 3); text != "" || err != nil {
			t.Errorf("attempt without a log: got %q (error %v), want no text", text, err)
		}
	})
}
