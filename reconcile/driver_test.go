package reconcile_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/effect"
	"podd/reconcile/render"
)

// driverDisk is a Disk with volumes that need a driver.
type driverDisk struct {
	effect.Disk
	driver *atomic.Bool
}

func (n driverDisk) Prepare(ctx context.Context, pod *manifest.Pod, of render.Volumes) (map[string]string, error) {
	if !n.driver.Load() {
		return nil, errors.New("driver x is not there")
	}
	own := *pod
	own.Object = pod.Object.DeepCopy()
	own.Object.Spec.Volumes = nil // the driver provides these
	return n.Disk.Prepare(ctx, &own, of)
}

func (n driverDisk) Remove(ctx context.Context, uid types.UID) error {
	if !n.driver.Load() {
		return errors.New("driver x is not there")
	}
	return n.Disk.Remove(ctx, uid)
}

// TestDrivers checks that a failed preparation or removal of volumes is retried as soon as the driver
// of the volumes registers, even after a long wait.
func TestDrivers(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		came := make(chan struct{}, 1)
		var driver atomic.Bool
		m.disk, m.drivers = driverDisk{m.disk, &driver}, came
		m.start()
		m.setPods(pod(t, "db", `
containers: [{name: app, image: "web:1"}]
volumes: [{name: data, nfs: {server: files.example, path: /data}}]`))
		m.advance(10 * time.Minute)
		m.wantState()      // the pod also has no sandbox
		came <- struct{}{} // a driver registers that does not provide the volumes
		m.advance(100 * time.Millisecond)
		m.wantState()
		driver.Store(true)
		came <- struct{}{}
		m.advance(100 * time.Millisecond)
		m.wantState("db 0 ready", "db/app 0 running")
		driver.Store(false)
		m.setPods()
		m.advance(10 * time.Minute)
		if dirs := m.dirs(); len(dirs) != 1 {
			t.Errorf("pod directories: got %q, want one", dirs)
		}
		driver.Store(true)
		came <- struct{}{}
		m.advance(100 * time.Millisecond)
		if dirs := m.dirs(); len(dirs) > 0 {
			t.Errorf("pod directories after the removal: got %q, want none", dirs)
		}
	})
}
