package daemon

import (
	"bytes"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podd/cmd/podd/internal/config"
)

// TestProcessPlacer checks that place restores the OOM score of this process after another program has
// changed it. An error must be logged once, and again after a success.
func TestProcessPlacer(t *testing.T) {
	const file = "/proc/self/oom_score_adj"
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	score, err := strconv.Atoi(strings.TrimSpace(string(before)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(file, before, 0); err != nil {
			t.Error(err)
		}
	})
	var log bytes.Buffer
	p := &processPlacer{cfg: &config.Resources{OOMScoreAdj: score}, log: slog.New(slog.NewTextHandler(&log, nil))}
	for range 2 {
		if err := os.WriteFile(file, []byte("999"), 0); err != nil {
			t.Fatal(err)
		}
		p.place()
		if got, err := os.ReadFile(file); err != nil || string(got) != string(before) {
			t.Errorf("got the score %q, error %v; want %q", got, err, before)
		}
	}
	if log.Len() > 0 {
		t.Errorf("got log %s, want none", &log)
	}
	const invalid = 5000
	for _, s := range []int{invalid, invalid, score, invalid} {
		p.cfg.OOMScoreAdj = s
		p.place()
	}
	if n := strings.Count(log.String(), "setting the OOM score of podd failed"); n != 2 {
		t.Errorf("two failures, a success and a failure: got %d log lines, want 2:\n%s", n, &log)
	}
}

// TestLimitOpenFiles checks that limitOpenFiles raises the soft limit. If the kernel does not permit the
// requested limit, limitOpenFiles must return an error and set the soft limit to the hard limit.
func TestLimitOpenFiles(t *testing.T) {
	var start unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &start); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &start); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 256, Max: start.Max}); err != nil {
		t.Fatal(err)
	}
	var got unix.Rlimit
	if err := limitOpenFiles(start.Max); err != nil {
		t.Fatal(err)
	}
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &got); err != nil || got.Cur != start.Max {
		t.Errorf("got soft limit %d, error %v; want %d", got.Cur, err, start.Max)
	}
	err := limitOpenFiles(1 << 62)
	if err == nil || !strings.Contains(err.Error(), "set LimitNOFILE=") {
		t.Errorf("more files than the kernel permits: got error %v, want one that names LimitNOFILE", err)
	}
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &got); err != nil || got.Cur != start.Max {
		t.Errorf("after the error: got soft limit %d, error %v; want %d", got.Cur, err, start.Max)
	}
}
