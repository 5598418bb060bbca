package nodestatus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"podd/reconcile/render"
)

// TestDiskWatcher checks what is published as the size changes. A size that leaves
// nothing for pods is logged once.
func TestDiskWatcher(t *testing.T) {
	const gib = 1 << 30
	var talk strings.Builder
	var told []string
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
			told = append(told, fmt.Sprintf("%d/%d", capacity/gib, allocatable/gib))
			return nil
		},
		Log: slog.New(slog.NewTextHandler(&talk, nil)),
	}}
	for _, gibs := range []int64{100, 101, 200, 200, 5, 5, 50, 0} {
		size = gibs * gib
		failed = nil
		if gibs == 0 {
			failed = errors.New("it is gone")
		}
		w.check(t.Context())
	}
	if got := strings.Join(told, " "); got != "200/190 50/40" {
		t.Errorf("told %s", got)
	}
	if got := talk.String(); strings.Count(got, "leave nothing for pods") != 1 || !strings.Contains(got, "it is gone") || !strings.Contains(got, "was=200Gi is=50Gi forPods=40Gi") {
		t.Errorf("logged\n%s", got)
	}
}
