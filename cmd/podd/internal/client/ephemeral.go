package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
)

// addEphemeralTimeout is the timeout of the request for an ephemeral container. podd may first wait
// for another change of the pod, and then up to 10 s until the pod's status contains the container.
const addEphemeralTimeout = time.Minute

// AddEphemeralContainer adds an ephemeral container to a running pod. It returns an error if the pod has
// been replaced by a pod with another UID. AddEphemeralContainer also returns nil if podd has accepted the
// container, but the pod's status does not contain the container yet. An error would lead to a
// second request, which would add another container.
func (p *Client) AddEphemeralContainer(ctx context.Context, pod *server.PodView, c *v1.EphemeralContainer) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.Pod.UID},
		"spec":     map[string]any{"ephemeralContainers": []*v1.EphemeralContainer{c}},
	})
	if err != nil {
		return fmt.Errorf("encoding the patch of pod %s: %w", pod.Key(), err)
	}
	requestCtx, cancel := context.WithTimeout(ctx, addEphemeralTimeout)
	defer cancel()
	path := "/api/v1/namespaces/" + pod.Pod.Namespace + "/pods/" + pod.Pod.Name + "/ephemeralcontainers"
	resp, err := p.callWithHeader(requestCtx, http.MethodPatch, path, nil, json.RawMessage(patch), http.Header{"Content-Type": {string(types.StrategicMergePatchType)}})
	response := (*server.Error)(nil)
	switch {
	case errors.As(err, &response) && response.Status == http.StatusGatewayTimeout:
		return nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return fmt.Errorf("no response from podd at %s within %s; container %s may have been added; run \"podd describe pod %s\" to check", p.socket, addEphemeralTimeout, c.Name, pod.Key())
	case err != nil:
		return err
	}
	return resp.Body.Close()
}
