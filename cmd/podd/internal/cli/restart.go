package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/containers"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/printer"
	"podd/cmd/podd/internal/progress"
	"podd/server"
)

// RestartCmd is the podd restart command.
type RestartCmd struct {
	client.Flags
	PodSelector
	Pod       string        `arg:"" help:"Pod name. The node name at its end may be omitted." complete:"pod"`
	Container string        `short:"c" placeholder:"NAME" help:"Restart only this container. Default: all containers except completed init containers." complete:"container"`
	Timeout   time.Duration `default:"2m" placeholder:"DURATION" help:"The length of time to wait until the pod is ready again (2m). 0 does not wait."`
}

// Run restarts containers and waits until the pod is ready.
func (c *RestartCmd) Run(ctx context.Context, s iostreams.Streams) error {
	p, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	v, pod, err := findPod(ctx, p, c.PodSelector, c.Pod)
	if err != nil {
		return err
	}
	if c.Container != "" {
		if err := containers.CheckExists(pod, c.Container); err != nil {
			return err
		}
	}
	startTime := time.Now()
	key := pod.Key()
	previousIDs := runningContainerIDs(pod, c.Container)
	if err := p.Restart(ctx, server.ContainerTarget{Namespace: key.Namespace, Pod: key.Name, Container: c.Container}); err != nil {
		return err
	}
	name := displayName(v, key)
	if c.Timeout <= 0 {
		fmt.Fprintf(s.Err, "podd: %s is restarting\n", name)
		return nil
	}
	return c.waitReady(ctx, p, key, previousIDs, startTime, s)
}

// waitReady waits until the restarted containers have stopped and the pod is ready. previousIDs
// contains the IDs that these containers had before the restart. After a timeout, waitReady prints
// the condition that the pod waits for, and returns an error.
func (c *RestartCmd) waitReady(ctx context.Context, p *client.Client, key server.Key, previousIDs []string, startTime time.Time, s iostreams.Streams) error {
	waitCtx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	line := progress.New(s.Err)
	defer line.Close()
	s.Err = line.Writer(s.Err)
	var last *server.View
	err := p.WatchViews(waitCtx, func(v *server.View) (bool, error) {
		last = v
		pod := v.Pod(key)
		if pod == nil {
			return false, fmt.Errorf("%s was deleted during its restart", displayName(v, key))
		}
		line.SetText(pullProgress(pod))
		isRestarted := !slices.ContainsFunc(runningContainerIDs(pod, c.Container), func(id string) bool { return slices.Contains(previousIDs, id) })
		return isRestarted && pod.Ready && pod.Pod.DeletionTimestamp == nil, nil
	})
	took := printer.FormatDuration(time.Since(startTime))
	switch {
	case err == nil:
		fmt.Fprintf(s.Err, "podd: %s restarted, ready after %s\n", displayName(last, key), took)
		return nil
	case !isTimeout(ctx, err) || last == nil:
		return err
	}
	return explainNotReady(newExplainer(ctx, p, last), key, took, s)
}

// explainNotReady prints what the restarted pod waits for, and returns an error.
func explainNotReady(r *explainer, key server.Key, took string, s iostreams.Streams) error {
	io.WriteString(s.Err, r.explain(subject{key: key}))
	return fmt.Errorf("%s is not ready %s after its restart", displayName(r.view, key), took)
}

// runningContainerIDs returns the ID of the running container with a name. If the name is "", it
// returns the IDs of all running containers.
func runningContainerIDs(p *server.PodView, container string) []string {
	var ids []string
	for _, c := range slices.Concat(p.Pod.Status.InitContainerStatuses, p.Pod.Status.ContainerStatuses) {
		if isRunning(c) && (container == "" || c.Name == container) {
			ids = append(ids, c.ContainerID)
		}
	}
	return ids
}

func isRunning(c v1.ContainerStatus) bool { return c.State.Running != nil }
