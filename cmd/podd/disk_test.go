package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/cmd/podd/internal/config"
	"podd/reconcile/render"
)

// TestDiskKeeper: what is told of a disk of one size after the other; a size that
// leaves nothing for pods is logged once.
func TestDiskKeeper(t *testing.T) {
	const gib = 1 << 30
	var talk strings.Builder
	var told []string
	size, failed := int64(0), error(nil)
	k := &diskKeeper{
		capacity: render.Resources{MilliCPU: 1000, Memory: gib, EphemeralStorage: 100 * gib},
		size:     func() (int64, error) { return size, failed },
		left: func(c render.Resources) (render.Resources, error) {
			return allocatableOf(c, v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("10Gi")}, config.Pressure{}, 0)
		},
		tell: func(_ context.Context, capacity, allocatable int64) error {
			told = append(told, fmt.Sprintf("%d/%d", capacity/gib, allocatable/gib))
			return nil
		},
		log: slog.New(slog.NewTextHandler(&talk, nil)),
	}
	for _, gibs := range []int64{100, 101, 200, 200, 5, 5, 50, 0} {
		size = gibs * gib
		failed = nil
		if gibs == 0 {
			failed = errors.New("it is gone")
		}
		k.look(t.Context())
	}
	if got := strings.Join(told, " "); got != "200/190 50/40" {
		t.Errorf("told %s", got)
	}
	if got := talk.String(); strings.Count(got, "leave nothing for pods") != 1 || !strings.Contains(got, "it is gone") || !strings.Contains(got, "was=200Gi is=50Gi forPods=40Gi") {
		t.Errorf("logged\n%s", got)
	}
}
