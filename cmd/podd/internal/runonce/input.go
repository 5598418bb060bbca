package runonce

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/filecheck"
	"podd/cmd/podd/internal/host"
	"podd/cmd/podd/internal/printer"
	"podd/cmd/podd/internal/sources"
	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/refs"
)

// sourceTimeout limits the time for reading all sources.
const sourceTimeout = 30 * time.Second

// An inputSet contains the pods of a run.
type inputSet struct {
	set   *manifest.Set
	order []types.NamespacedName // keys of the pods in the order of the manifests
}

// readInput reads the named manifests or the sources. It adds the environment variables of the
// command line to every container. It prints problems to messages. If a problem is an error, it
// returns an error, so that the run does not start.
func (r *execution) readInput(ctx context.Context, messages io.Writer) (*inputSet, error) {
	env, err := r.parseEnv(messages)
	if err != nil {
		return nil, err
	}
	in, problems, err := r.readPods(ctx)
	if err == nil {
		problems = append(problems, refs.CheckMissing(in.withEnv(env), in.set.ObjectsBySource, manifest.Error)...)
	}
	errs := 0
	for _, p := range problems {
		fmt.Fprintln(messages, printer.Escape(p.String()))
		if p.Severity == manifest.Error || p.CausesRefusal {
			errs++
		}
	}
	switch {
	case err != nil:
		return nil, err
	case errs > 0:
		return nil, fmt.Errorf("%s in the manifests; nothing was started", printer.FormatCount(errs, "error"))
	case len(in.order) == 0:
		return nil, errors.New("there is no pod to run; specify manifests, - for stdin, --pod-manifest-path or --manifest-url")
	}
	return in, nil
}

// withEnv adds the variables to every pod, and returns the pods in the order of the
// manifests.
func (in *inputSet) withEnv(env []v1.EnvVar) []*manifest.Pod {
	var pods []*manifest.Pod
	for _, key := range in.order {
		p := podWithEnv(in.set.Pods[key], env)
		in.set.Pods[key] = p
		pods = append(pods, p)
	}
	return pods
}

// readPods returns the pods and problems of the named manifests. If no manifest is named, it
// returns the pods and problems of the sources.
func (r *execution) readPods(ctx context.Context) (*inputSet, []manifest.Problem, error) {
	if len(r.cmd.Files) > 0 {
		texts, err := r.readFiles(ctx)
		if err != nil {
			return nil, nil, err
		}
		c := filecheck.Check(texts, decode.Options{NodeName: r.cfg.NodeName, NodeLabels: host.NodeLabels(&r.cfg.Node), NameSuffix: r.suffix, Strict: r.cfg.Strict})
		c.AddProblems(manifest.FindHostPortConflicts(c.Pods))
		in := &inputSet{set: c.Set}
		for _, p := range c.Pods {
			in.order = append(in.order, p.Key)
		}
		return in, c.Problems, nil
	}
	return r.readSources(ctx)
}

// readFiles reads the named manifests. It returns when ctx is done, although a goroutine
// may still be reading stdin.
func (r *execution) readFiles(ctx context.Context) ([]filecheck.Input, error) {
	inputs := make(chan []filecheck.Input, 1)
	go func() { inputs <- filecheck.Read(ctx, r.cmd.Files, r.streams.In) }()
	select {
	case texts := <-inputs:
		return texts, ctx.Err()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// readSources reads each source once.
func (r *execution) readSources(ctx context.Context) (*inputSet, []manifest.Problem, error) {
	in := &inputSet{set: &manifest.Set{}}
	if len(r.cfg.ManifestPaths)+len(r.cfg.ManifestURLs) == 0 {
		return in, nil, nil
	}
	for _, path := range r.cfg.ManifestPaths {
		if _, err := os.Stat(path); err != nil { // fail at once, although a daemon would wait until the path exists
			return nil, nil, fmt.Errorf("reading %s: %w; nothing was started", path, filecheck.NewReadError(err))
		}
	}
	readCtx, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	set, err := sources.Read(readCtx, r.cfg, r.suffix)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if err != nil {
		return nil, nil, err
	}
	in.set = set
	pods := make([]*manifest.Pod, 0, len(set.Pods))
	for _, p := range set.Pods {
		pods = append(pods, p)
	}
	slices.SortFunc(pods, func(a, b *manifest.Pod) int {
		return cmp.Or(cmp.Compare(a.Origin.Path, b.Origin.Path), cmp.Compare(a.Origin.Line, b.Origin.Line), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	for _, p := range pods {
		in.order = append(in.order, p.Key)
	}
	problems := slices.Concat(set.Problems, manifest.FindHostPortConflicts(pods))
	for name, complete := range set.CompleteSources {
		if !complete {
			return in, problems, fmt.Errorf("reading %s: timed out after %s; nothing was started", name, sourceTimeout)
		}
	}
	return in, problems, nil
}
