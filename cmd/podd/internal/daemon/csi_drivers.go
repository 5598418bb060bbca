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
// value to the channel registrations, so that podd tries again to start the pods that wait for a
// driver.
func runCSIDrivers(ctx context.Context, drivers *csi.Drivers, registrations chan<- struct{}) error {
	result := make(chan error, 1)
	go func() { result <- drivers.Run(ctx) }()
	_, changed := drivers.Registered()
	for {
		select {
		case <-ctx.Done():
			return <-result
		case <-changed:
			_, changed = drivers.Registered()
		}
		select {
		case registrations <- struct{}{}:
		default: // a notification is already pending
		}
	}
}
