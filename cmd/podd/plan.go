package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"podd/cmd/podd/internal/cluster"
	"podd/cmd/podd/internal/config"
	"podd/manifest"
	"podd/manifest/source"
	"podd/reconcile"
	"podd/reconcile/plan"
	"podd/reconcile/volume"
	"podd/runtime"
	"podd/runtime/cri"
	"podd/server"
)

// planPatience is how long the sources may take to be seen, and then the runtime.
const planPatience = 15 * time.Second

// Run prints what podd run would do now, and by which rule, and does nothing.
// Targets are pods by name, or manifests that come before the sources: of their
// pods alone is spoken, and of those that the sources had in the same files.
func (c *PlanCmd) Run(ctx context.Context, s Streams) error {
	cfg, err := loadConfig(c.Flags, s)
	if err != nil {
		return err
	}
	pods, files := splitTargets(c.Targets)
	running := beside(ctx, &c.Flags, &cfg, s.Err)
	readAs(running, &cfg)
	cfg.ManifestPaths = slices.Concat(unread(files, cfg.ManifestPaths), cfg.ManifestPaths)
	if len(cfg.ManifestPaths)+len(cfg.ManifestURLs) == 0 && cfg.APIManifestDir == "" {
		return exitWith(codeUsage, errors.New("planning: no source of pods, and no podd runs here; name manifests, or give --pod-manifest-path or --manifest-url"))
	}
	all, set, err := planSources(ctx, &cfg)
	if err != nil {
		return err
	}
	sayUnseen(s.Err, set, all)
	_, allocatable, err := amounts(&cfg)
	if err != nil {
		return err
	}
	in := reconcile.PreviewInput{
		Set: set, Journals: journals(cfg.RootDir),
		Limits: limitsOf(&cfg, allocatable), Adopt: cfg.Adopt, MaxBackoff: cfg.MaxRestartPeriod,
		SourceKinds: sourceKinds(all),
	}
	if cfg.Cluster.Kubeconfig != "" || running != nil && slices.Contains(running.Sources, cluster.SourceName) {
		in.SourceKinds[cluster.SourceName] = manifest.KindAPI // it is not asked: its pods stay
	}
	in.Limits.DevicesUnknown = true // plugins tell the podd that runs
	if in.Instance, err = reconcile.PeekID(cfg.RootDir); err != nil {
		return err
	}
	if in.Kept, err = (volume.Claims{Root: claimsDir(&cfg)}).Kept(); err != nil {
		return err
	}
	looking, cancel := context.WithTimeout(ctx, planPatience)
	defer cancel()
	if in.Seen, in.Node, err = lookOnce(looking, &cfg); err != nil {
		fmt.Fprintf(s.Err, "podd: %v\npodd: planning as if nothing ran\n", err)
		in.Node = runtime.Node{Reachable: true, Ready: true, NetworkReady: true}
	}
	planned, err := reconcile.Preview(in)
	if err != nil {
		return err
	}
	if len(c.Targets) == 0 {
		return printPlan(s.Out, set.Problems, planned, running)
	}
	w := wish{pods, files, running}
	return printPlan(s.Out, w.problems(set.Problems), filter(planned, w.of), running)
}

// planSources returns the sources and what they hold, with what a podd that
// starts now would fall back to.
func planSources(ctx context.Context, cfg *config.Config) ([]source.Source, *manifest.Set, error) {
	ctx, cancel := context.WithTimeout(ctx, planPatience)
	defer cancel()
	all, err := sources(cfg, source.Options{Cache: cacheDir(cfg), CacheReadOnly: true})
	if err != nil {
		return nil, nil, err
	}
	set, err := seeSources(ctx, all)
	return all, set, err
}

// sayUnseen names the sources of which it is not known what they hold.
func sayUnseen(w io.Writer, set *manifest.Set, all []source.Source) {
	for _, s := range all {
		if !set.Complete[s.Name()] {
			fmt.Fprintf(w, "podd: %s was not seen in time; pods that may be its are not planned to stop\n", s.Name())
		}
	}
}

// splitTargets tells manifests from names of pods: a path has a slash or an
// ending.
func splitTargets(targets []string) (pods, files []string) {
	for _, t := range targets {
		if strings.ContainsRune(t, filepath.Separator) || filepath.Ext(t) != "" {
			files = append(files, t)
		} else {
			pods = append(pods, t)
		}
	}
	return pods, files
}

// readSources reads the sources without a cache, as seeSources does. suffix is
// manifest.Options.Suffix.
func readSources(ctx context.Context, cfg *config.Config, suffix string) (*manifest.Set, error) {
	all, err := sources(cfg, source.Options{Suffix: suffix})
	if err != nil {
		return nil, err
	}
	return seeSources(ctx, all)
}

// seeSources returns the first Set in which every source was seen, and the last
// one when ctx ends before that.
func seeSources(ctx context.Context, all []source.Source) (*manifest.Set, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sets := source.Watch(ctx, all...)
	var last *manifest.Set
	for set := range sets {
		last = set
		if complete(set, all) {
			cancel()
			for range sets {
			}
			return set, nil
		}
	}
	if last == nil {
		return nil, errors.New("reading the sources: none was read in time")
	}
	return last, nil
}

func complete(set *manifest.Set, all []source.Source) bool {
	for _, s := range all {
		if !set.Complete[s.Name()] {
			return false
		}
	}
	return true
}

// lookOnce takes one whole snapshot of what runs.
func lookOnce(ctx context.Context, cfg *config.Config) (runtime.Snapshot, runtime.Node, error) {
	quiet := slog.New(slog.DiscardHandler)
	client, err := dial(cfg, quiet, nil)
	if err != nil {
		return runtime.Snapshot{}, runtime.Node{}, err
	}
	defer client.Close()
	node, err := client.Node(ctx)
	if err != nil {
		return runtime.Snapshot{}, node, err
	}
	id, err := reconcile.PeekID(cfg.RootDir)
	if err != nil {
		return runtime.Snapshot{}, node, err
	}
	nobodys, err := looksIntoNobodys(cfg)
	if err != nil {
		return runtime.Snapshot{}, node, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var seen runtime.Snapshot
	err = client.NewObserver(cri.ObserverOptions{Instance: id, Nobodys: nobodys, Logger: quiet}).Run(ctx, func(s runtime.Snapshot) {
		if s.Whole && !seen.Whole {
			seen = s
			cancel()
		}
	})
	if seen.Whole {
		return seen, node, nil
	}
	return seen, node, fmt.Errorf("looking at what runs: %w", err)
}

// printPlan lists problems first, then the decision on each pod; an error among
// the problems makes the code 1. running may be nil.
func printPlan(w io.Writer, problems []manifest.Problem, planned []reconcile.Planned, running *server.View) error {
	failed := false
	for _, p := range problems {
		fmt.Fprintln(w, plain(p.String()))
		failed = failed || p.Severity == manifest.Error
	}
	for _, p := range planned {
		fmt.Fprintf(w, "%s\n", p.Key)
		if p.Replaces {
			fmt.Fprintf(w, "  %s\n", replacing(p, running))
		}
		for line := range strings.Lines(p.Decision.String()) {
			fmt.Fprintf(w, "  %s\n", plain(strings.TrimSuffix(line, "\n")))
		}
	}
	if len(planned) == 0 {
		fmt.Fprintln(w, "nothing to run")
	}
	if failed {
		return exitWith(codeFailed, nil)
	}
	return nil
}

// replacing tells that a pod ends for another version of it; of the one that ends
// only the podd that runs it has the manifest.
func replacing(p reconcile.Planned, running *server.View) string {
	text := "replaces the version that runs"
	if running == nil {
		return text
	}
	if was := running.Pod(server.Key(p.Key)); was != nil {
		if class := plan.ClassChange(was.Pod, p.Pod.Spec); class != "" {
			text += ": " + class
		}
	}
	return text
}
