package journal

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"podd/reconcile/plan"
	"podd/reconcile/state"
)

// TestClock checks how old the times in a journal are when podd reads the journal. The journal was
// written 10 minutes after a boot. The times in it are 60 seconds before it was written.
func TestClock(t *testing.T) {
	written := state.ClockReading{Now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), BootID: "a", SinceBoot: 10 * time.Minute}
	for name, test := range map[string]struct {
		boot string
		up   time.Duration
		wall time.Duration // time since the journal was written
		want time.Duration
	}{
		"at once":                              {"a", 10 * time.Minute, 0, time.Minute},
		"later":                                {"a", 15 * time.Minute, 5 * time.Minute, 6 * time.Minute},
		"later, the clock was set forward":     {"a", 15 * time.Minute, 48 * time.Hour, 6 * time.Minute},
		"later, the clock was set back":        {"a", 15 * time.Minute, -48 * time.Hour, 6 * time.Minute},
		"after a boot":                         {"b", 2 * time.Minute, 3 * time.Minute, 3 * time.Minute},
		"after a boot, the clock is set right": {"b", 2 * time.Minute, 50 * 365 * 24 * time.Hour, 3 * time.Minute},
		"after a boot without a clock":         {"b", 2 * time.Minute, -50 * 365 * 24 * time.Hour, 3 * time.Minute},
		"the kernel has no boot ID":            {"", 0, 5 * time.Minute, 6 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			root, now := t.TempDir(), written
			s := Store{Root: root, Clock: func() state.ClockReading { return now }}
			at := written.Now.Add(-time.Minute)
			j := state.Record{
				UID: "u", StartTime: at, MonotonicStartTime: at, Finished: &plan.PodEnd{At: at}, Stopping: &plan.SandboxTermination{Since: at},
				Terminations: map[string]plan.Termination{"c": {Since: at}, "hooked": {HookDone: true}},
			}
			j.Key.Name = "web"
			if err := s.Write(j, true); err != nil {
				t.Fatal(err)
			}
			now = state.ClockReading{Now: written.Now.Add(test.wall), BootID: test.boot, SinceBoot: test.up}
			got, err := s.Read("u")
			if err != nil {
				t.Fatal(err)
			}
			for field, at := range map[string]time.Time{
				"started": got.MonotonicStartTime, "finished": got.Finished.At, "stopping": got.Stopping.Since, "ending": got.Terminations["c"].Since,
			} {
				if ago := now.Now.Sub(at); ago != test.want {
					t.Errorf("%s: got a time %s ago, want %s ago", field, ago, test.want)
				}
			}
			if !got.StartTime.Equal(at) || !got.Terminations["hooked"].Since.IsZero() {
				t.Errorf("got start time %s and an unset time %s; want the start time unchanged and the unset time zero", got.StartTime, got.Terminations["hooked"].Since)
			}
		})
	}
}

// TestClock_OlderFormat checks that podd computes the age of a journal from the wall clock if the
// journal has no times since the boot. A time in the future is treated as now.
func TestClock_OlderFormat(t *testing.T) {
	now := state.ClockReading{Now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), BootID: "a", SinceBoot: time.Minute}
	s := Store{Root: t.TempDir(), Clock: func() state.ClockReading { return now }}
	if err := os.Mkdir(filepath.Join(s.Root, "u"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := `{"key":{"Name":"web"},"uid":"u","startTime":"2026-05-01T11:58:00Z","stopping":{"SandboxID":"s","Since":"2026-05-01T13:00:00Z"}}`
	if err := os.WriteFile(filepath.Join(s.Root, "u", FileName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := s.Read("u")
	if err != nil {
		t.Fatal(err)
	}
	if ago := now.Now.Sub(j.MonotonicStartTime); ago != 2*time.Minute || !j.Stopping.Since.Equal(now.Now) {
		t.Errorf("got a start %s ago and a stop since %s; want a start 2m0s ago and a stop since now", ago, j.Stopping.Since)
	}
}
