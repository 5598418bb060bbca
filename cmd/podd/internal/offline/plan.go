package offline

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

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/host"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/printer"
	"podd/cmd/podd/internal/rootdir"
	"podd/cmd/podd/internal/sources"
	"podd/cmd/podd/internal/wiring"
	"podd/manifest"
	"podd/manifest/source"
	"podd/reconcile"
	"podd/reconcile/eviction/pressure"
	"podd/reconcile/plan"
	"podd/reconcile/volume/claim"
	"podd/runtime"
	"podd/runtime/cri"
	"podd/server"
)

// planTimeout limits the time for reading the sources, and separately the time for reading the
// state of the runtime.
const planTimeout = 15 * time.Second

// PlanCmd is the podd plan command. It accepts the flags of podd run in order to find the same
// sources and runtime. If podd is running and the flags set no sources, PlanCmd uses the sources of
// the running podd.
type PlanCmd struct {
	config.Flags
	Targets []string `arg:"" optional:"" name:"pod|file" help:"Pods of the sources, or manifests to read in addition to the sources. Default: all pods of the sources." complete:"pod,file"`
}

// KubeletFlags returns the flags that PlanCmd shares with podd run. Package main adds the flags
// that only the kubelet has.
func (c *PlanCmd) KubeletFlags() *config.Flags { return &c.Flags }

// Run prints the actions that podd run would take now and the rule for each of them. Targets are
// names of pods, or manifests that are read in addition to the sources. With targets, Run prints
// only the named pods, the pods in the named manifests, and the pods that were read from these
// manifests earlier.
func (c *PlanCmd) Run(ctx context.Context, s iostreams.Streams) error {
	cfg, warnings, err := config.LoadForHost(c.Flags)
	config.WriteWarnings(s.Err, warnings)
	if err != nil {
		return err
	}
	pods, files := splitTargets(c.Targets)
	running := fetchRunningView(ctx, &c.Flags, &cfg, s.Err)
	if err := cfg.CheckNodeName(); err != nil {
		return err
	}
	useRunningSources(running, &cfg.Sources)
	cfg.ManifestPaths = slices.Concat(unreadFiles(files, cfg.ManifestPaths), cfg.ManifestPaths)
	if len(cfg.ManifestPaths)+len(cfg.ManifestURLs) == 0 && cfg.APIManifestDir == "" {
		return exit.NewError(exit.Usage, errors.New("planning: no source of pods is configured and podd is not running; specify manifests, --pod-manifest-path or --manifest-url"))
	}
	planSources, set, err := readPlanSources(ctx, &cfg)
	if err != nil {
		return err
	}
	warnUnreadSources(s.Err, set, planSources)
	in, err := newPreviewInput(&cfg, set, planSources, running)
	if err != nil {
		return err
	}
	observeCtx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	if in.Observed, in.Node, in.Images, err = observeOnce(observeCtx, &cfg, set); err != nil {
		fmt.Fprintf(s.Err, "podd: warning: %v; planning as if no pods were running\n", err)
		in.Node = runtime.Node{Reachable: true, Ready: true, NetworkReady: true}
	}
	planned, err := reconcile.Preview(in)
	if err != nil {
		return err
	}
	if len(c.Targets) == 0 {
		return printPlan(s.Out, set.Problems, planned, running)
	}
	f := planFilter{pods, files, running}
	if unknownPods := f.unknownPods(planned); len(unknownPods) > 0 {
		return fmt.Errorf("planning pod %s: pod not found in the manifests or on this node; write the path of a manifest with a slash or an extension", strings.Join(unknownPods, ", "))
	}
	return printPlan(s.Out, f.problems(set.Problems), slices.DeleteFunc(planned, func(p reconcile.PlannedPod) bool { return !f.includes(p) }), running)
}

// readPlanSources returns the sources and their pods. The pods include the cached pods that podd run
// would use now.
func readPlanSources(ctx context.Context, cfg *config.Config) ([]source.Source, *manifest.Set, error) {
	ctx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	planSources, err := sources.New(cfg, source.Options{CacheDir: rootdir.SourcesPath(cfg.RootDir), IsCacheReadOnly: true})
	if err != nil {
		return nil, nil, err
	}
	set, err := sources.ReadComplete(ctx, planSources)
	return planSources, set, err
}

// warnUnreadSources prints a warning for each source that could not be read.
func warnUnreadSources(w io.Writer, set *manifest.Set, planSources []source.Source) {
	for _, s := range planSources {
		if !set.CompleteSources[s.Name()] {
			fmt.Fprintf(w, "podd: warning: reading source %s timed out; the plan stops no pods that may come from it\n", s.Name())
		}
	}
}

// splitTargets separates the names of pods from the paths of manifests. A path contains a
// slash or an extension.
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

// newPreviewInput returns a PreviewInput with everything except the state of the runtime. set was read
// from planSources. running is nil if podd is not running.
func newPreviewInput(cfg *config.Config, set *manifest.Set, planSources []source.Source, running *server.View) (in reconcile.PreviewInput, err error) {
	capacity, allocatable, err := host.ReadResources(cfg)
	if err != nil {
		return in, err
	}
	in = reconcile.PreviewInput{
		Set: set, Journals: rootdir.Journals(cfg.RootDir),
		Limits: host.AdmissionLimits(cfg, capacity, allocatable), AdoptKubeletPods: cfg.Adopt, MaxBackoff: cfg.MaxRestartPeriod, DeadContainers: host.DeadContainerPolicy(&cfg.Runtime),
		SourceKinds: sources.KindsByName(planSources),
	}
	if cfg.Cluster.Kubeconfig != "" || running != nil && slices.Contains(running.Sources, server.ClusterSource) {
		in.SourceKinds[server.ClusterSource] = manifest.KindAPI // the pods of the cluster stay unchanged, because podd plan does not contact the API server
	}
	if running != nil {
		in.Limits.Pressure = pressure.NewConditions(running.Pressure)
	}
	in.Limits.DevicesUnknown = true // device plugins register only with the running podd, so podd plan cannot count devices
	if in.InstanceID, _, err = reconcile.ReadInstanceIDs(cfg.RootDir); err != nil {
		return in, err
	}
	in.StoredClaims, err = (claim.Store{Root: rootdir.ClaimsPath(cfg.RootDir)}).ClaimsWithData()
	return in, err
}

// observeOnce returns a complete snapshot of the runtime, the state of the runtime, and the result of
// findImages.
func observeOnce(ctx context.Context, cfg *config.Config, set *manifest.Set) (runtime.Snapshot, runtime.Node, map[string]string, error) {
	quiet := slog.New(slog.DiscardHandler)
	client, err := wiring.Dial(&cfg.Runtime, quiet, wiring.Calls{})
	if err != nil {
		return runtime.Snapshot{}, runtime.Node{}, nil, err
	}
	defer client.Close()
	observed, node, err := observePods(ctx, cfg, client)
	if err != nil {
		return observed, node, nil, err
	}
	return observed, node, findImages(ctx, client, set), nil
}

// findImages maps the name of each image that a container in set uses to the ID of the image in the
// runtime. The ID is "" if the image is not on the node or cannot be queried.
func findImages(ctx context.Context, client *cri.Client, set *manifest.Set) map[string]string {
	imageIDs := map[string]string{}
	for _, p := range set.Pods {
		for _, c := range slices.Concat(p.Object.Spec.InitContainers, p.Object.Spec.Containers) {
			if _, isQueried := imageIDs[c.Image]; isQueried {
				continue
			}
			image, _, _ := client.ImageStatus(ctx, c.Image) // zero after an error
			imageIDs[c.Image] = image.ID
		}
	}
	return imageIDs
}

// observePods returns a complete snapshot of the runtime, and the state of the runtime.
func observePods(ctx context.Context, cfg *config.Config, client *cri.Client) (runtime.Snapshot, runtime.Node, error) {
	node, err := client.Node(ctx)
	if err != nil {
		return runtime.Snapshot{}, node, err
	}
	id, adoptedIDs, err := reconcile.ReadInstanceIDs(cfg.RootDir)
	if err != nil {
		return runtime.Snapshot{}, node, err
	}
	includesUnlabelled, err := wiring.IncludesUnlabelled(cfg)
	if err != nil {
		return runtime.Snapshot{}, node, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var snapshot runtime.Snapshot
	noLog := slog.New(slog.DiscardHandler)
	err = client.NewObserver(cri.ObserverOptions{Instance: id, AdoptedInstances: slices.Concat(adoptedIDs, cfg.AdoptInstances), IncludeUnlabelled: includesUnlabelled, Logger: noLog}).Run(ctx, func(s runtime.Snapshot) {
		if s.IsComplete && !snapshot.IsComplete {
			snapshot = s
			cancel()
		}
	})
	if snapshot.IsComplete {
		return snapshot, node, nil
	}
	return snapshot, node, fmt.Errorf("listing the pods of the runtime: %w", err)
}

// printPlan prints the problems, and then the decision for each pod. If a problem is an error,
// printPlan returns an error with exit code 1. running is nil if podd is not running.
func printPlan(w io.Writer, problems []manifest.Problem, planned []reconcile.PlannedPod, running *server.View) error {
	hasError := false
	for _, p := range problems {
		fmt.Fprintln(w, printer.Escape(p.String()))
		hasError = hasError || p.Severity == manifest.Error
	}
	for _, p := range planned {
		fmt.Fprintf(w, "%s\n", p.Key)
		if p.ReplacesRunning {
			fmt.Fprintf(w, "  %s\n", replacementText(p, running))
		}
		for line := range strings.Lines(p.Decision.String()) {
			fmt.Fprintf(w, "  %s\n", printer.Escape(strings.TrimSuffix(line, "\n")))
		}
	}
	if len(planned) == 0 {
		fmt.Fprintln(w, "nothing to run")
	}
	if hasError {
		return exit.NewError(exit.Failed, nil)
	}
	return nil
}

// replacementText describes the replacement of a pod by another version. It includes the
// reason only if running is not nil, because only a running podd has the manifest of the
// old version.
func replacementText(p reconcile.PlannedPod, running *server.View) string {
	text := "replaces the running version"
	if running == nil {
		return text
	}
	if runningPod := running.Pod(server.Key(p.Key)); runningPod != nil {
		if class := plan.DescribeQoSChange(runningPod.Pod, p.Pod.Object); class != "" {
			text += ": " + class
		}
	}
	return text
}
