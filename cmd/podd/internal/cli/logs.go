package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/containers"
	"podd/cmd/podd/internal/iostreams"
	"podd/server"
)

// defaultContainerAnnotation is kubectl's annotation that names the container to use if the user
// names none.
const defaultContainerAnnotation = "kubectl.kubernetes.io/default-container"

// LogsCmd is the podd logs command.
type LogsCmd struct {
	client.Flags
	PodSelector
	Pod           string        `arg:"" help:"Pod name. The node name at its end may be omitted." complete:"pod"`
	Container     string        `short:"c" xor:"container" placeholder:"NAME" help:"Print the logs of this container. If omitted, use the kubectl.kubernetes.io/default-container annotation or the first container in the pod." complete:"container"`
	AllContainers bool          `xor:"container" help:"Get all containers' logs in the pod, including init containers, and prefix each line with the pod and container name."`
	Follow        bool          `short:"f" help:"Stream the logs."`
	Previous      bool          `short:"p" help:"Print the logs for the previous instance of the container in a pod if it exists."`
	Tail          int64         `default:"-1" placeholder:"N" help:"Lines of recent log to display. Default: all."`
	Since         time.Duration `placeholder:"DURATION" help:"Only return logs newer than a relative duration like 5s, 2m, or 3h. Default: all logs."`
	Timestamps    bool          `help:"Include timestamps on each line in the log output."`
}

// Run copies logs to stdout unchanged.
func (c *LogsCmd) Run(ctx context.Context, s iostreams.Streams) error {
	p, pod, podArg, err := connectAndFindPod(ctx, c.Flags, c.PodSelector, c.Pod)
	if err != nil {
		return err
	}
	if c.AllContainers {
		return c.copyAllLogs(ctx, p, pod, podArg, s)
	}
	container, err := chooseContainer(pod, c.Container, "-c NAME or --all-containers", s.Err)
	if err != nil {
		return err
	}
	return withWhyHint(p.CopyLog(ctx, c.newLogRequest(pod, container), s.Out), podArg)
}

// withWhyHint adds the command podd why to an error if no container has run (server.ReasonNoLog) or
// an object was not found.
func withWhyHint(err error, podArg string) error {
	response := (*server.Error)(nil)
	if errors.As(err, &response) && (response.Reason == server.ReasonNoLog || response.Status == http.StatusNotFound) {
		return fmt.Errorf("%w; run \"podd why %s\" for the reason", err, podArg)
	}
	return err
}

// newLogRequest returns the request for the log of a container according to the flags.
func (c *LogsCmd) newLogRequest(p *server.PodView, container string) server.LogRequest {
	req := server.LogRequest{
		Pod: types.NamespacedName(p.Key()), Container: container,
		Previous: c.Previous, Follow: c.Follow, Tail: c.Tail, Timestamps: c.Timestamps,
	}
	if c.Since > 0 {
		req.Since = time.Now().Add(-c.Since)
	}
	return req
}

// chooseContainer returns the name of the container that a command uses. requested is the name that
// the user has set, and must be a container of the pod. If requested is "", chooseContainer returns
// the default container. If the pod has several containers, it also prints a notice. otherFlags names
// in this notice the flags that choose another container.
func chooseContainer(p *server.PodView, requested, otherFlags string, notices io.Writer) (string, error) {
	if requested != "" {
		return requested, containers.CheckExists(p, requested)
	}
	var names []string
	for _, c := range p.Pod.Spec.Containers {
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		return "", fmt.Errorf("the manifest of %s was deleted, so its containers are unknown; specify a container with -c", p.Key())
	}
	name := p.Pod.Annotations[defaultContainerAnnotation]
	if !slices.Contains(names, name) {
		name = names[0]
	}
	if len(names) > 1 {
		fmt.Fprintf(notices, "podd: defaulted container %q out of: %s; use %s for others\n", name, strings.Join(names, ", "), otherFlags)
	}
	return name, nil
}

// copyAllLogs copies the logs of all containers. With -f it copies them concurrently, otherwise
// one after the other. It continues after an error.
func (c *LogsCmd) copyAllLogs(ctx context.Context, p *client.Client, pod *server.PodView, podArg string, s iostreams.Streams) error {
	names := containers.Names(pod.Pod)
	errs := make([]error, len(names))
	var mu sync.Mutex // guards s.Out
	read := func(i int) {
		w := &prefixWriter{out: s.Out, mu: &mu, prefix: podArg + "/" + names[i] + " | "}
		errs[i] = withWhyHint(errors.Join(p.CopyLog(ctx, c.newLogRequest(pod, names[i]), w), w.flush()), podArg)
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
	return errors.Join(errs...)
}
