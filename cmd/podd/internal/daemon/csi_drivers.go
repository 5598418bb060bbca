package daemon

import (
	"context"
	"errors"
	"time"

	"podd/reconcile/event"
	"podd/reconcile/volume/csi"
)

func newCSIDrivers(b processState, t telemetry) (*csi.Drivers, error) {
	return csi.New(csi.Options{
		Root: b.cfg.RootDir, NodeName: b.cfg.NodeName, Log: b.log, OnCall: t.metrics.RecordDriverCall,
		OnUpdateFailed: func(v csi.Volume, err error) {
			if step, ok := errors.AsType[*csi.StepError](err); ok {
				t.record([]event.Event{event.NewSubject(v.Pod, time.Now()).NewVolumeFailedEvent(step.Step, step.Volume, err.Error())})
			}
		},
	})
}

// runCSIDrivers runs drivers until ctx is done. When a driver registers, runCSIDrivers sends a
// value to the channel registered, so that podd tries again to start the pods that wait for a
// driver.
func runCSIDrivers(ctx context.Context, drivers *csi.Drivers, registered chan<- struct{}) error {
	done := make(chan error, 1)
	go func() { done <- drivers.Run(ctx) }()
	_, changed := drivers.Registered()
	for {
		select {
		case <-ctx.Done():
			return <-done
		case <-changed:
			_, changed = drivers.Registered()
		}
		select {
		case registered <- struct{}{}:
		default: // a notification is already pending
		}
	}
}
