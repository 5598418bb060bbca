package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"podd/cmd/podd/internal/config"
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
		log.Info("podd ends, its pods run on", "pods", n, "before a kubelet has them", "podd down, or those of files and URLs run twice")
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
