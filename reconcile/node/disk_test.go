package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"podd/reconcile/render"
)

// TestDiskWatcher checks that large changes of the size are published. If the reservations leave
// nothing of the new size allocatable, the change is not published, and is logged once.
func TestDiskWatcher(t *testing.T) {
	const gib = 1 << 30
	var log strings.Builder
	var published []string
	size, failed := int64(0), error(nil)
	capacity := render.Resources{MilliCPU: 1000, Memory: gib, EphemeralStorage: 100 * gib}
	w := &diskWatcher{capacity: capacity, o: DiskOptions{
		Size: func() (int64, error) { return size, failed },
		Allocatable: func(c render.Resources) (render.Resources, error) {
			if c.EphemeralStorage -= 10 * gib; c.EphemeralStorage <= 0 {
				return c, errors.New("reservations leave nothing for pods")
			}
			return c, nil
		},
		Publish: func(_ context.Context, capacity, allocatable int64) error {
			published = append(published, fmt.Sprintf("%d/%d", capacity/gib, allocatable/gib))
			return nil
		},
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	}}
	for _, gibs := range []int64{100, 101, 200, 200, 5, 5, 50, 0} {
		size = gibs * gib
		failed = nil
		if gibs == 0 {
			failed = errors.New("input/output error")
		}
		w.check(t.Context())
	}
	if got := strings.Join(published, " "); got != "200/190 50/40" {
		t.Errorf("got published sizes %s, want 200/190 50/40", got)
	}
	if got := log.String(); strings.Count(got, "leave nothing for pods") != 1 || !strings.Contains(got, "input/output error") || !strings.Contains(got, "previous=200Gi current=50Gi allocatable=40Gi") {
		t.Errorf("log: want one message \"leave nothing for pods\", one about an input/output error and the sizes 200Gi, 50Gi and 40Gi; got\n%s", got)
	}
}
