package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/progress"
	"podd/server"
)

// addTimeout is how long podd may take to add a container: it waits for its turn,
// and then 10 s until the pod shows it.
const addTimeout = time.Minute

// addEphemeral adds a container to a pod that runs, this very one. One that is taken
// and not shown yet is added: to ask again would make another.
func (p *peer) addEphemeral(ctx context.Context, pod *server.PodView, c *v1.EphemeralContainer) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.Pod.UID},
		"spec":     map[string]any{"ephemeralContainers": []*v1.EphemeralContainer{c}},
	})
	if err != nil {
		return fmt.Errorf("writing a patch: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, addTimeout)
	defer cancel()
	path := "/api/v1/namespaces/" + pod.Pod.Namespace + "/pods/" + pod.Pod.Name + "/ephemeralcontainers"
	resp, err := p.send(limited, http.MethodPatch, path, nil, json.RawMessage(patch), http.Header{"Content-Type": {string(types.StrategicMergePatchType)}})
	refused := (*server.Error)(nil)
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusGatewayTimeout:
		return nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return fmt.Errorf("podd at %s has not answered for %s; container %s may have been added: podd describe %s", p.socket, addTimeout, c.Name, pod.Key())
	case err != nil:
		return err
	}
	return resp.Body.Close()
}

// untilRuns returns the pod and the container's status once that runs, or has run.
// What keeps it from running is said as it comes.
func (c *DebugCmd) untilRuns(ctx context.Context, p *peer, of *server.PodView, name string, talk Streams) (*server.PodView, *v1.ContainerStatus, error) {
	key := of.Key()
	foot := progress.New(talk.Err)
	defer foot.Close()
	talk.Err = foot.Writer(talk.Err)
	limited, cancel := context.WithCancel(ctx)
	if c.Timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, c.Timeout)
	}
	defer cancel()
	var pod *server.PodView
	var status *v1.ContainerStatus
	said := ""
	err := p.watch(limited, func(v *server.View) (bool, error) {
		switch pod = v.Pod(key); {
		case pod == nil:
			return false, fmt.Errorf("pod %s went before container %s ran: no manifest has it any more", key, name)
		case pod.Pod.UID != of.Pod.UID:
			return false, fmt.Errorf("pod %s was replaced before container %s ran", key, name)
		}
		foot.Set(pulling(pod))
		if status = ephemeralStatus(pod, name); status == nil {
			return false, nil
		}
		if w := status.State.Waiting; w != nil && w.Message != "" && w.Message != said {
			said = w.Message
			fmt.Fprintln(talk.Err, plain("podd: container "+name+": "+said))
		}
		return status.State.Running != nil || status.State.Terminated != nil, nil
	})
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("container %s of %s does not run after %s%s", name, key, lasted(c.Timeout), plain(behind(": ", said)))
	}
	return pod, status, err
}

// behind is text with what parts it from what stands before; "" for none.
func behind(sep, text string) string {
	if text == "" {
		return ""
	}
	return sep + text
}

// ephemeralStatus is that of an ephemeral container; nil: there is none yet.
func ephemeralStatus(p *server.PodView, name string) *v1.ContainerStatus {
	all := p.Pod.Status.EphemeralContainerStatuses
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

// debugState says how a container does that was added.
func debugState(s *v1.ContainerStatus) string {
	if t := s.State.Terminated; t != nil {
		return "has ended: " + exitText(server.ExitView{ExitCode: t.ExitCode, Reason: t.Reason, Started: t.StartedAt.Time, Finished: t.FinishedAt.Time})
	}
	return "runs"
}
