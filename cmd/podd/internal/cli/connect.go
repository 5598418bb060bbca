package cli

import (
	"context"

	"podd/cmd/podd/internal/client"
	"podd/server"
)

// findPod requests the state of podd. It returns the state and the pod that word selects.
func findPod(ctx context.Context, p *client.Client, s Select, word string) (state *server.View, pod *server.PodView, err error) {
	v, err := p.State(ctx)
	if err != nil {
		return nil, nil, err
	}
	pod, err = s.findPod(v, word)
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

// connectPod connects to podd and returns the pod that word selects. argument is the
// shortest word that selects this pod.
func connectPod(ctx context.Context, c client.Flags, s Select, word string) (p *client.Client, pod *server.PodView, argument string, err error) {
	p, err = c.Connect(ctx)
	if err != nil {
		return nil, nil, "", err
	}
	v, pod, err := findPod(ctx, p, s, word)
	if err != nil {
		return nil, nil, "", err
	}
	return p, pod, podArgument(v, pod.Key()), nil
}
