package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
	"podd/reconcile/render"
	"podd/runtime"
	"podd/runtime/cri"
	"podd/runtime/runtimetest/stack"
)

// bareRunner starts pods with the minimum of CRI calls. The cost of these calls is the lower bound
// of podd's cost.
type bareRunner struct {
	client  *cri.Client
	runtime api.RuntimeServiceClient // for calls that are not measured
	node    render.Node
	image   string
	volumes map[string]string
}

func newBareRunner(ctx context.Context, b *bench) (*bareRunner, error) {
	client, err := cri.Dial(cri.Options{Endpoint: b.stack.Endpoint()})
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(b.stack.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	dns, err := os.ReadFile("/etc/resolv.conf")
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	image, exists, err := client.ImageStatus(ctx, stack.BusyboxImage)
	if err != nil {
		return nil, fmt.Errorf("querying the status of image %s: %w", stack.BusyboxImage, err)
	}
	if !exists {
		return nil, fmt.Errorf("querying the status of image %s: the containerd of this bench has no such image", stack.BusyboxImage)
	}
	return &bareRunner{
		client: client, runtime: api.NewRuntimeServiceClient(conn), image: image.ID,
		// Any directory can be a volume, because its content does not affect the cost of a mount.
		volumes: map[string]string{"bench": filepath.Dir(b.starts.path), "config": b.dir, "secret": b.dir},
		node: render.Node{
			Name: "floor", HostIPs: []string{"127.0.0.1"}, InstanceID: "floor",
			Capacity: render.Resources{MilliCPU: 2000, Memory: 8 << 30},
			LogsDir:  filepath.Join(b.dir, "floor"), CgroupDriver: "cgroupfs",
			CgroupRoot: b.stack.CgroupParent() + "/floor", DNS: render.ParseResolvConf(string(dns)),
		},
	}, nil
}

// barePod is a pod that a bareRunner starts.
type barePod struct {
	pod       *manifest.Pod
	config    *api.PodSandboxConfig
	sandboxID string
	attempt   uint32 // attempt of the next container
}

// render decodes the manifests of pods and creates their sandbox configs. It makes no CRI calls.
func (f *bareRunner) render(pods []pod) ([]*barePod, error) {
	barePods := make([]*barePod, len(pods))
	for i, p := range pods {
		desired, err := p.decode(f.node.Name)
		if err != nil {
			return nil, err
		}
		config, err := render.Sandbox(render.SandboxInput{Pod: desired, Node: f.node})
		if err != nil {
			return nil, err
		}
		barePods[i] = &barePod{pod: desired, config: config}
	}
	return barePods, nil
}

// start starts pods. It starts at most the given number of pods at the same time.
func (f *bareRunner) start(ctx context.Context, pods []*barePod, concurrency int) error {
	return forEachPod(ctx, pods, concurrency, func(ctx context.Context, p *barePod) (err error) {
		if p.sandboxID, err = f.client.RunPodSandbox(ctx, p.config, ""); err != nil {
			return err
		}
		return f.startContainer(ctx, p)
	})
}

// startContainer creates and starts the next attempt of a pod's container.
func (f *bareRunner) startContainer(ctx context.Context, p *barePod) error {
	config, err := render.Container(render.ContainerInput{
		Pod: p.pod, Container: &p.pod.Object.Spec.Containers[0], Node: f.node, Attempt: p.attempt,
		Image: f.image, Volumes: f.volumes,
	})
	if err != nil {
		return err
	}
	p.attempt++
	id, err := f.client.CreateContainer(ctx, p.sandboxID, config, p.config)
	if err != nil {
		return err
	}
	return f.client.StartContainer(ctx, id)
}

// stop stops pods without a grace period. It stops at most the given number of pods at the same time.
func (f *bareRunner) stop(ctx context.Context, pods []*barePod, concurrency int) error {
	return forEachPod(ctx, pods, concurrency, func(ctx context.Context, p *barePod) error { return f.client.StopPodSandbox(ctx, p.sandboxID) })
}

// remove removes the sandboxes of pods. It removes at most the given number of sandboxes at the same
// time.
func (f *bareRunner) remove(ctx context.Context, pods []*barePod, concurrency int) error {
	return forEachPod(ctx, pods, concurrency, func(ctx context.Context, p *barePod) error { return f.client.RemovePodSandbox(ctx, p.sandboxID) })
}

// forEachPod calls the function do for each pod. The parameter concurrency is the maximum number of
// calls at the same time. forEachPod returns the first error.
func forEachPod(ctx context.Context, pods []*barePod, concurrency int, do func(context.Context, *barePod) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for _, p := range pods {
		group.Go(func() error { return do(ctx, p) })
	}
	return group.Wait()
}

// containerID returns the ID of a pod's running container.
func (f *bareRunner) containerID(ctx context.Context, pod string) (string, error) {
	response, err := f.runtime.ListContainers(ctx, &api.ListContainersRequest{Filter: &api.ContainerFilter{
		LabelSelector: map[string]string{runtime.LabelPodName: pod},
		State:         &api.ContainerStateValue{State: api.ContainerState_CONTAINER_RUNNING},
	}})
	if err != nil || len(response.GetContainers()) != 1 {
		return "", fmt.Errorf("looking up the container of pod %s: got %d running containers, want 1: %w", pod, len(response.GetContainers()), err)
	}
	return response.GetContainers()[0].GetId(), nil
}
