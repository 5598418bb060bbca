package cli

import (
	"context"

	"podd/cmd/podd/internal/client"
	"podd/server"
)

// findPod requests the state of podd, and returns the state and the pod that arg selects.
func findPod(ctx context.Context, p *client.Client, s PodSelector, arg string) (state *server.View, pod *server.PodView, err error) {
	v, err := p.FetchView(ctx)
	if err != nil {
		return nil, nil, err
	}
	pod, err = s.findPod(v, arg)
	return v, pod, err
}

// connectAndFetchState connects to podd and returns the connection and the state of podd.
func connectAndFetchState(ctx context.Context, c client.Flags) (p *client.Client, state *server.View, err error) {
	p, err = c.Connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	state, err = p.FetchView(ctx)
	return p, state, err
}

// connectAndFindPod connects to podd and returns the connection and the pod that arg selects. The
// result podArg is the shortest argument that selects this pod.
func connectAndFindPod(ctx context.Context, c client.Flags, s PodSelector, arg string) (p *client.Client, pod *server.PodView, podArg string, err error) {
	p, err = c.Connect(ctx)
	if err != nil {
		return nil, nil, "", err
	}
	v, pod, err := findPod(ctx, p, s, arg)
	if err != nil {
		return nil, nil, "", err
	}
	return p, pod, podArgument(v, pod.Key()), nil
}
