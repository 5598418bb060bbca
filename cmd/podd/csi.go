package main

import (
	"context"
	"errors"
	"time"

	"podd/reconcile/event"
	"podd/reconcile/volume/csi"
)

// openDrivers finds what CSI drivers have on this machine; nil where there is no
// cluster, whose volumes these are.
func (d *podd) openDrivers() (*csi.Drivers, error) {
	if d.cfg.Cluster.Kubeconfig == "" {
		return nil, nil
	}
	return csi.New(csi.Options{
		Root: d.cfg.RootDir, Node: d.cfg.NodeName, Log: d.log, Called: d.metrics.Driver,
		Failed: func(v csi.Volume, err error) {
			of, is := errors.AsType[*csi.StepError](err)
			if !is {
				return
			}
			d.events.Add(notes([]event.Event{event.On(v.Pod, time.Now()).VolumeFailed(of.Step, of.Volume, err.Error())})...)
		},
	})
}

// keepDrivers has volumes taken away that no pod uses, and what waits for a driver
// tried anew when one registers, until ctx is done.
func (d *podd) keepDrivers(ctx context.Context, came chan<- struct{}) error {
	if d.csi == nil {
		return nil
	}
	ended := make(chan error, 1)
	go func() { ended <- d.csi.Run(ctx) }()
	_, changed := d.csi.Registered()
	for {
		select {
		case <-ctx.Done():
			return <-ended
		case <-changed:
			_, changed = d.csi.Registered()
		}
		select {
		case came <- struct{}{}:
		default: // it is told already
		}
	}
}
