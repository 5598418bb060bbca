package cli

import (
	"context"
	"fmt"
	"io"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/printer"
	"podd/cmd/podd/internal/progress"
	"podd/server"
)

// waitRunning waits until the container runs or has terminated, and returns the pod and the status
// of the container. While waiting, it prints the reasons why the container is waiting.
func (c *DebugCmd) waitRunning(ctx context.Context, p *client.Client, target *server.PodView, name string, notices io.Writer) (*server.PodView, *v1.ContainerStatus, error) {
	key := target.Key()
	line := progress.New(notices)
	defer line.Close()
	notices = line.Writer(notices)
	waitCtx, cancel := withTimeout(ctx, c.Timeout)
	defer cancel()
	var pod *server.PodView
	var status *v1.ContainerStatus
	lastMessage := ""
	err := p.WatchViews(waitCtx, func(v *server.View) (bool, error) {
		switch pod = v.Pod(key); {
		case pod == nil:
			return false, fmt.Errorf("pod %s was deleted before container %s started", key, name)
		case pod.Pod.UID != target.Pod.UID:
			return false, fmt.Errorf("pod %s was replaced before container %s started", key, name)
		}
		line.SetText(pullProgress(pod))
		if status = ephemeralStatus(pod, name); status == nil {
			return false, nil
		}
		if w := status.State.Waiting; w != nil && w.Message != "" && w.Message != lastMessage {
			lastMessage = w.Message
			fmt.Fprintln(notices, printer.Escape("podd: container "+name+": "+lastMessage))
		}
		return status.State.Running != nil || status.State.Terminated != nil, nil
	})
	if isTimeout(ctx, err) {
		err = fmt.Errorf("container %s of %s is not running after %s", name, key, printer.FormatDuration(c.Timeout))
		if lastMessage != "" {
			err = fmt.Errorf("%w: %s", err, printer.Escape(lastMessage))
		}
	}
	return pod, status, err
}

// ephemeralStatus returns the status of an ephemeral container, or nil if the pod has no such
// status yet.
func ephemeralStatus(p *server.PodView, name string) *v1.ContainerStatus {
	statuses := p.Pod.Status.EphemeralContainerStatuses
	for i := range statuses {
		if statuses[i].Name == name {
			return &statuses[i]
		}
	}
	return nil
}

// debugState describes the state of a debug container.
func debugState(s *v1.ContainerStatus) string {
	if t := s.State.Terminated; t != nil {
		return "has terminated: " + exitText(server.ExitView{ExitCode: t.ExitCode, Reason: t.Reason, Started: t.StartedAt.Time, Finished: t.FinishedAt.Time})
	}
	return "is running"
}
