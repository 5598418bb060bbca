package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/config"
	"podd/server"
)

// defaultContainer is the annotation by which a pod names the container that
// is meant when none is named, as kubectl reads it.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// LogsCmd is podd logs.
type LogsCmd struct {
	Client
	Select
	Pod           string        `arg:"" help:"A pod, with or without the node's name." complete:"pod"`
	Container     string        `short:"c" xor:"container" placeholder:"NAME" help:"Of this container; else of the pod's first, or the one its annotation names." complete:"container"`
	AllContainers bool          `xor:"container" help:"Of all containers, init containers included, with their names."`
	Follow        bool          `short:"f" help:"Go on with what is written."`
	Previous      bool          `short:"p" help:"Of the newest run that has ended."`
	Tail          int64         `default:"-1" placeholder:"N" help:"The last N lines only."`
	Since         time.Duration `placeholder:"DURATION" help:"What is newer only."`
	Timestamps    bool          `help:"With the time of each line."`
}

// Run copies logs to stdout as they were written.
func (c *LogsCmd) Run(ctx context.Context, s Streams) error {
	p, pod, word, err := c.reach(ctx, c.Select, c.Pod)
	if err != nil {
		return err
	}
	if c.AllContainers {
		return c.all(ctx, p, pod, word, s)
	}
	container, err := chooseContainer(pod, c.Container, "-c NAME or --all-containers", s)
	if err != nil {
		return err
	}
	return hint(p.logs(ctx, c.request(pod, container), s.Out), word)
}

// hint names podd why where there is no log because nothing ran, see noLog, or
// nothing is known of what might have.
func hint(err error, word string) error {
	answer := (*server.Error)(nil)
	if errors.As(err, &answer) && (answer.Reason == server.NoLog || answer.Status == http.StatusNotFound) {
		return fmt.Errorf("%w; podd why %s", err, word)
	}
	return err
}

func (c *LogsCmd) request(p *server.PodView, container string) server.LogRequest {
	req := server.LogRequest{
		Pod: types.NamespacedName(p.Key()), Container: container,
		Previous: c.Previous, Follow: c.Follow, Tail: c.Tail, Timestamps: c.Timestamps,
	}
	if c.Since > 0 {
		req.Since = time.Now().Add(-c.Since)
	}
	return req
}

// chooseContainer is the one container meant: the named one, else the pod's
// default; of several it says which it took, and how to have others.
func chooseContainer(p *server.PodView, named, others string, s Streams) (string, error) {
	if named != "" {
		return named, checkContainer(p, named)
	}
	var names []string
	for _, k := range p.Pod.Spec.Containers {
		names = append(names, k.Name)
	}
	if len(names) == 0 {
		return "", fmt.Errorf("the manifest of %s is gone, so its containers are not known; name one with -c", p.Key())
	}
	name := p.Pod.Annotations[defaultContainer]
	if !slices.Contains(names, name) {
		name = names[0]
	}
	if len(names) > 1 {
		fmt.Fprintf(s.Err, "podd: container %s of %s; %s for others\n", name, strings.Join(names, ", "), others)
	}
	return name, nil
}

// checkContainer is an error with what there is, unless p has the container or
// nothing is known of its containers.
func checkContainer(p *server.PodView, name string) error {
	names := containerNames(p.Pod)
	if len(names) == 0 || slices.Contains(names, name) {
		return nil
	}
	if near := config.Nearest(name, names); near != "" {
		return fmt.Errorf("pod %s has no container %q; did you mean %q?", p.Key(), name, near)
	}
	return fmt.Errorf("pod %s has no container %q; it has %s", p.Key(), name, strings.Join(names, ", "))
}

// containerNames are all of a pod's, in the order in which they start.
func containerNames(p *v1.Pod) []string {
	var names []string
	for i := range p.Spec.InitContainers {
		names = append(names, p.Spec.InitContainers[i].Name)
	}
	for i := range p.Spec.Containers {
		names = append(names, p.Spec.Containers[i].Name)
	}
	for i := range p.Spec.EphemeralContainers {
		names = append(names, p.Spec.EphemeralContainers[i].Name)
	}
	return names
}

// all reads every container's log: side by side when following, else one
// after the other. One that cannot be read does not keep back the others.
func (c *LogsCmd) all(ctx context.Context, p *peer, pod *server.PodView, word string, s Streams) error {
	names := containerNames(pod.Pod)
	failed := make([]error, len(names))
	var mu sync.Mutex // guards s.Out
	read := func(i int) {
		w := &prefixed{to: s.Out, mu: &mu, prefix: word + "/" + names[i] + " | "}
		failed[i] = hint(errors.Join(p.logs(ctx, c.request(pod, names[i]), w), w.finish()), word)
	}
	var group sync.WaitGroup
	for i := range names {
		if c.Follow {
			group.Go(func() { read(i) })
		} else {
			read(i)
		}
	}
	group.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(failed...)
}
