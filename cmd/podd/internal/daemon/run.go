// Package daemon implements podd run without --runonce. It connects the sources, the reconciler,
// the runtime and the endpoints, and runs them until podd stops. The packages below it contain
// the parts that need no access to all other parts:
//
//	view         computes the View, the state that the endpoints show
//	endpoint     opens the socket and the ports, and serves requests
//	nodestatus   follows the images of the node, and builds its Node object
//	meter        measures the resource usage of the node and its pods
//	podlog       reads the logs of containers
//	shutdown     stops the pods when the node shuts down
package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"time"

	"podd/cmd/podd/internal/check"
	"podd/cmd/podd/internal/check/inspect"
	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/dynconfig"
	"podd/cmd/podd/internal/lockfile"
	"podd/cmd/podd/internal/logging"
	"podd/cmd/podd/internal/memory"
	"podd/cmd/podd/internal/rootdir"
	"podd/cmd/podd/internal/wiring"
	"podd/manifest"
	"podd/reconcile"
	"podd/server"
)

// Options are the options of Run.
type Options struct {
	Config   *config.Config
	Warnings []config.Warning // warnings about Config, which Run writes to Stderr
	Version  string           // version of podd
	// Link connects podd with the manager of its configuration. It is nil without dynamic configuration.
	Link *dynconfig.Link
	// Stderr receives the log. With Config.SplitStream, Stdout receives the log without its warnings
	// and errors.
	Stdout, Stderr io.Writer
}

// Run runs pods until ctx is done or a part of podd fails. The pods keep running. If the cause of the end
// of ctx is dynconfig.ErrReload, the caller calls Run again with another configuration.
func Run(ctx context.Context, o Options) error {
	if os.Geteuid() != 0 {
		return check.NotRootProblem.Err()
	}
	memory.LimitStartupHeap()
	cfg := *o.Config // a copy, because the name of the node may change
	out := logging.Streams{Errors: o.Stderr}
	if cfg.SplitStream {
		out.Info = o.Stdout
	}
	log, level := logging.New(out, &cfg.Logging, slog.LevelInfo)
	log.Info("podd is starting", "version", o.Version, "kubernetes", manifest.KubernetesVersion)
	logging.WriteWarnings(o.Stderr, &cfg.Logging, o.Warnings)
	if len(cfg.ManifestPaths)+len(cfg.ManifestURLs) == 0 && cfg.APIManifestDir == "" && cfg.Cluster.Kubeconfig == "" {
		log.Warn("no source of pods is configured, so no pods run", "remedy", "set --pod-manifest-path or --manifest-url")
	}
	profileContention(cfg.ProfileContention)
	lock := lockfile.Options{Path: cfg.LockFile, ExitOnContention: cfg.ExitOnLockContention, Log: log}
	if o.Link != nil {
		lock.Path = "" // the caller holds the lock while it changes the configuration
	}
	return wiring.IgnoreCanceled(lockfile.Hold(ctx, lock, func(ctx context.Context) error {
		return runLocked(ctx, cfg, processState{version: o.Version, configLink: o.Link, log: log, level: level})
	}))
}

// runLocked runs pods while podd holds the lock file, if there is one.
func runLocked(ctx context.Context, cfg config.Config, b processState) error {
	if err := applyCloudMetadata(ctx, &cfg, b.log); err != nil {
		return err
	}
	b.startup = &startup{runDir: cfg.RunDir, check: func(ctx context.Context) check.Report {
		return check.Run(inspect.ReadFacts(ctx, inspect.Options{Config: &cfg, IsStarting: true}))
	}}
	for {
		err := runNamed(ctx, cfg, b)
		renamedErr, ok := errors.AsType[*renamedError](err)
		if !ok {
			return b.startup.explain(ctx, err)
		}
		cfg.NodeName = renamedErr.name
	}
}

// runNamed runs pods as long as the node keeps its name. It returns a renamedError when the user
// has accepted another name.
func runNamed(ctx context.Context, cfg config.Config, b processState) error {
	b, err := lockRoot(cfg, b)
	if err != nil {
		return err
	}
	defer b.instance.Close()
	warnCgroupV1(&b.cfg.Resources, b.log)
	if err := setUpProcess(b.placer); err != nil {
		return err
	}
	shareMounts(b.cfg, b.log)
	p, err := newParts(b)
	if err != nil {
		return err
	}
	defer p.close()
	if err = p.run(ctx); err != nil {
		if _, ok := errors.AsType[*renamedError](err); ok {
			return err
		}
	}
	if n := countRunning(p.view.Latest.View()); n > 0 && !mayContinue(err, context.Cause(ctx), b.configLink != nil) {
		b.log.Info("podd stopped; its pods keep running", "pods", n,
			"hint", "if a kubelet starts now, the pods from files and URLs run twice; to stop the pods first, run: podd down")
	}
	return err
}

// lockRoot locks the root directory of cfg. It returns a copy of b with the instance and the node
// name that are stored in the directory.
func lockRoot(cfg config.Config, b processState) (processState, error) {
	instance, err := reconcile.LockRoot(cfg.RootDir)
	if err != nil {
		return processState{}, err
	}
	b.instance, b.startTime = instance, time.Now()
	adoptErr := instance.Adopt(cfg.AdoptInstances...)
	b.nodeNamer, err = newNodeNamer(&cfg, b.log)
	if err := errors.Join(adoptErr, err); err != nil {
		instance.Close()
		return processState{}, err
	}
	cfg.NodeName = b.nodeNamer.record.Name
	b.cfg, b.placer = &cfg, &processPlacer{cfg: &cfg.Resources, log: b.log}
	return b, nil
}

// warnCgroupV1 logs that the kubelet no longer supports cgroup v1, unless the user has accepted
// cgroup v1 with "failCgroupV1: false".
func warnCgroupV1(cfg *config.Resources, log *slog.Logger) {
	if cfg.WarnsCgroupV1 {
		log.Warn(check.CgroupV1Problem.Cause, "hint", check.CgroupV1Problem.Remedy)
	}
}

// shareMounts makes the mount of the root directory shared if podd replaces a kubelet or runs in a
// cluster, because CSI drivers and other containers mount file systems below it. Otherwise podd
// changes no mounts of the host: CSI drivers that run on the host need no shared mounts.
func shareMounts(cfg *config.Config, log *slog.Logger) {
	if !cfg.ActsAsKubelet {
		return
	}
	if err := rootdir.ShareMounts(cfg.RootDir); err != nil {
		log.Warn("sharing the mounts below the root directory failed; containers with mountPropagation, such as CSI drivers, cannot mount volumes there", "err", err)
	}
}

// countRunning returns the number of pods that have a sandbox in v.
func countRunning(v *server.View) (n int) {
	for _, p := range v.Pods {
		if p.SandboxID != "" {
			n++
		}
	}
	return n
}
