package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sync/errgroup"

	"podd/cmd/podd/internal/config"
	"podd/manifest/source"
	"podd/reconcile"
	"podd/runtime"
	"podd/server"
)

// Run runs pods until ctx ends: then podd stops, and no pod with it.
func (c *RunCmd) Run(ctx context.Context, s Streams) error {
	cfg, err := loadConfig(c.Flags, s)
	switch {
	case err != nil && c.RunOnce != nil && *c.RunOnce:
		return exitWith(codeOwn, err)
	case err != nil:
		return err
	case cfg.RunOnce:
		return c.runOnce(ctx, &cfg, s)
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("podd runs pods as root; start it with sudo")
	}
	log, level := newLog(s.Err, &cfg, slog.LevelInfo)
	if len(cfg.ManifestPaths)+len(cfg.ManifestURLs) == 0 && cfg.APIManifestDir == "" && cfg.Cluster.Kubeconfig == "" {
		log.Warn("no source of pods", "give", "--pod-manifest-path or --manifest-url")
	}
	if err := askCloud(ctx, &cfg, log); err != nil {
		return ended(err)
	}
	d, err := newPodd(&cfg, log, level)
	if err != nil {
		return err
	}
	defer d.Close()
	err = d.run(ctx)
	if n := runOn(d.view.latest.View()); n > 0 {
		log.Info("podd ends, its pods run on", "pods", n, "before a kubelet has them", "podd down, or those of files and URLs run twice that no kubelet ran before as they are")
	}
	return err
}

// runOn is how many pods run that nobody cares for while podd does not.
func runOn(v *server.View) (n int) {
	for _, p := range v.Pods {
		if p.Sandbox != "" {
			n++
		}
	}
	return n
}

// loadConfig makes one configuration of flags and files, and says its warnings.
func loadConfig(flags config.Flags, s Streams) (config.Config, error) {
	machine, err := config.ThisMachine()
	if err != nil {
		return config.Config{}, err
	}
	cfg, warnings, err := config.Load(flags, machine)
	for _, w := range warnings {
		fmt.Fprintln(s.Err, w)
	}
	return cfg, err
}

// run works until ctx is done or a part fails, and returns when every part has
// ended. Pods run on.
func (d *podd) run(ctx context.Context) error {
	faces, err := d.faces(ctx)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	snapshots := make(chan runtime.Snapshot)
	nodes := make(chan runtime.Node)
	drivers := make(chan struct{}, 1)
	sets := source.Watch(ctx, d.sources...)
	in := reconcile.Inputs{Sets: sets, Snapshots: snapshots, Nodes: nodes, Devices: d.devices.Changed(), Drivers: drivers}
	group.Go(func() error { return d.trimmer.run(ctx) })
	group.Go(func() error { return d.sweep(ctx) })
	group.Go(func() error { return d.keepLimits(ctx) })
	group.Go(func() error { return d.keepDisk(ctx) })
	group.Go(func() error { return d.keepNode(ctx) })
	group.Go(func() error { return d.classes.run(ctx) })
	group.Go(func() error { return d.rotateLogs(ctx) })
	group.Go(func() error { return d.writeEvents(ctx) })
	group.Go(func() error { return d.joinCluster(ctx) })
	group.Go(func() error { return d.keepDrivers(ctx, drivers) })
	group.Go(func() error { return d.awaitShutdown(ctx) })
	group.Go(func() error { return d.router.Run(ctx, in) })
	group.Go(func() error { d.serveDevices(ctx); return nil })
	group.Go(func() error { return ended(d.pods.Run(ctx, send(ctx, snapshots))) })
	group.Go(func() error { return ended(d.node.Run(ctx, send(ctx, nodes))) })
	for _, face := range faces {
		group.Go(func() error { return face(ctx) })
	}
	group.Go(func() error {
		if d.router.Ping(ctx) == nil {
			notify(d.log, daemon.SdNotifyReady)
		}
		return nil // why there was no turn is told by the router's own end
	})
	err = group.Wait()
	for range sets { // the sources write their caches; Close gives these up
	}
	notify(d.log, daemon.SdNotifyStopping)
	return err
}

func (d *podd) publish(c reconcile.Change) {
	d.events.Add(notes(c.Events)...)
	if c.Quiet {
		return
	}
	d.view.publish(c)
	d.classes.take(c)
	if c.SetChanged {
		before, passed := d.problems, d.advice
		d.problems, d.advice = logNew(d.log, d.view.said, before, c.Set.Files), d.view.told
		d.events.Add(notes(advised(c.Set, slices.Concat(before, passed), slices.Concat(d.problems, d.advice), time.Now()))...)
	}
	d.trimmer.touch()
}

// ended makes nothing of the end that was asked for.
func ended(err error) error {
	if err == context.Canceled {
		return nil
	}
	return err
}

// send makes an emit of a channel; it gives up when ctx is done.
func send[T any](ctx context.Context, c chan<- T) func(T) {
	return func(v T) {
		select {
		case c <- v:
		case <-ctx.Done():
		}
	}
}
