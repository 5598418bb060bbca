package cli

import (
	"context"

	"podd/cmd/podd/internal/client"
	"podd/server"
)

// findPod requests the state of podd and returns it with the pod that word refers to.
func findPod(ctx context.Context, p *client.Client, s Select, word string) (*server.View, *server.PodView, error) {
	v, err := p.State(ctx)
	if err != nil {
		return nil, nil, err
	}
	pod, err := s.findPod(v, word)
	return v, pod, err
}

// connectState connects to podd and returns its state.
func connectState(ctx context.Context, c client.Flags) (*client.Client, *server.View, error) {
	p, err := c.Connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	v, err := p.State(ctx)
	return p, v, err
}

// connectPod connects to podd and returns the pod that word refers to, and the shortest
// argument that selects it.
func connectPod(ctx context.Context, c client.Flags, s Select, word string) (*client.Client, *server.PodView, string, error) {
	p, err := c.Connect(ctx)
	if err != nil {
		return nil, nil, "", err
	}
	v, pod, err := findPod(ctx, p, s, word)
	if err != nil {
		return nil, nil, "", err
	}
	return p, pod, podArgument(v, pod.Key()), nil
}
