package cluster

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/merge"
	"podd/reconcile"
	"podd/reconcile/effect"
	"podd/reconcile/journal"
	"podd/reconcile/pull"
	"podd/reconcile/render"
	"podd/reconcile/volume"
	"podd/runtime"
	"podd/runtime/cri"
	"podd/runtime/logs"
	"podd/runtime/runtimetest"
	"podd/server"
)

// logDirs implements effect.LogsAndCgroups. It only creates log directories, in the directory root.
type logDirs struct{ root string }

func (l logDirs) MakeLogDirs(p *manifest.Pod, container string) error {
	return os.MkdirAll(filepath.Join(logs.Dir(l.root, p.Key, p.UID), container), 0o755)
}

func (logDirs) NextAttempts(*manifest.Pod) (map[string]uint32, error)           { return nil, nil }
func (logDirs) HandleStart(*manifest.Pod, string, string, uint32, uint32) error { return nil }
func (logDirs) Remove(context.Context, types.NamespacedName, types.UID) error   { return nil }
func (logDirs) RemoveCgroup(context.Context, types.UID) error                   { return nil }
func (logDirs) LastLines(context.Context, types.NamespacedName, types.UID, string, uint32) (string, error) {
	return "", nil
}

// An agent runs a pod of a testNode on an in-memory runtime, as podd does, and publishes the state of
// the pod in the View of the testNode.
type agent struct {
	*runtimetest.Runtime
	l    *testNode
	root string
	stop func() // stops the agent
}

// start starts the agent with the pod that the API server stores under key.
func (n *agent) start(key types.NamespacedName) {
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	n.stop = func() { cancel(); parts.Wait() }
	log := slog.New(slog.DiscardHandler)
	observer := n.NewObserver(cri.ObserverOptions{Instance: "0123456789abcdef", Logger: log})
	watcher := n.NewNodeObserver(cri.NodeObserverOptions{Logger: log})
	in := reconcile.Inputs{Sets: make(chan *manifest.Set, 1)}
	snapshots, nodes, sets := make(chan runtime.Snapshot), make(chan runtime.Node), make(chan *manifest.Set, 1)
	in.Sets, in.Snapshots, in.Nodes = sets, snapshots, nodes
	p := decode.FromAPI(n.l.StoredPod(key.Namespace, key.Name), decode.Options{Kind: manifest.KindAPI, Source: server.ClusterSource, Path: server.ClusterSource, NodeName: "n1"})
	sets <- merge.Batches([]manifest.Batch{{
		Source: server.ClusterSource, Kind: manifest.KindAPI, Pods: []*manifest.Pod{p}, IsComplete: true,
		Objects: manifest.Objects{Cluster: &manifest.Cluster{Services: map[string]*manifest.Services{}}},
	}})
	router := reconcile.NewRouter(reconcile.Options{
		Effects: &effect.Runner{
			Runtime: n.Client, Images: pull.New(pull.Options{Runtime: n.Client}), Disk: volume.Dir{Root: filepath.Join(n.root, "pods")},
			LogsAndCgroups: logDirs{filepath.Join(n.root, "logs")}, Gate: effect.NewGate(4),
		},
		Journals: journal.Store{Root: filepath.Join(n.root, "pods")}, Log: log, RequestObservation: observer.Refresh, Publish: n.publish,
		SourceKinds: map[string]string{server.ClusterSource: manifest.KindAPI},
		RenderNode:  render.Node{Name: "n1", InstanceID: "0123456789abcdef", HostIPs: []string{"192.0.2.1"}, LogsDir: filepath.Join(n.root, "logs")},
	})
	parts.Go(func() { _ = router.Run(ctx, in) })
	parts.Go(func() { _ = observer.Run(ctx, func(s runtime.Snapshot) { send(ctx, snapshots, s) }) })
	parts.Go(func() { _ = watcher.Run(ctx, func(s runtime.Node) { send(ctx, nodes, s) }) })
}

// send sends v to out. It returns without sending v if ctx is done.
func send[T any](ctx context.Context, out chan<- T, v T) {
	select {
	case out <- v:
	case <-ctx.Done():
	}
}

// publish publishes a View with the reports of the router.
func (n *agent) publish(c reconcile.Change) {
	if len(c.Reports) == 0 {
		return
	}
	v := *n.l.state.View()
	v.Revision++
	v.Pods, v.Starting = nil, c.Starting
	for _, r := range c.Reports {
		if r.Pod != nil {
			v.Pods = append(v.Pods, &server.PodView{Pod: r.Pod, Rule: string(r.Decision.Rule), Exists: r.ExistsOnNode})
		}
	}
	n.l.state.Publish(&v)
}

// TestUnreportedExit checks that podd writes no final phase of a pod to the API server before the
// runtime has reported the exit code of the pod's container.
func TestUnreportedExit(t *testing.T) {
	for name, c := range map[string]struct {
		fault         runtimetest.Fault // fault of ContainerStatus after the exit
		reportedAfter time.Duration     // time from the exit until the runtime reports the exit code; 0: never
		restarts      bool              // podd stops before the exit and starts after it
		policy        v1.RestartPolicy
	}{
		"late":                             {runtimetest.Fault{Delay: 30 * time.Second}, 30 * time.Second, false, v1.RestartPolicyNever},
		"late, podd restarts":              {runtimetest.Fault{Delay: 30 * time.Second}, 30 * time.Second, true, v1.RestartPolicyNever},
		"late, podd restarts, on failure":  {runtimetest.Fault{Delay: 30 * time.Second}, 30 * time.Second, true, v1.RestartPolicyOnFailure},
		"never":                            {runtimetest.Fault{Hangs: true}, 0, false, v1.RestartPolicyNever},
		"never, podd restarts":             {runtimetest.Fault{Hangs: true}, 0, true, v1.RestartPolicyNever},
		"fails, podd restarts":             {runtimetest.Fault{Err: status.Error(codes.Unknown, "boom")}, 0, true, v1.RestartPolicyNever},
		"never, podd restarts, on failure": {runtimetest.Fault{Hangs: true}, 0, true, v1.RestartPolicyOnFailure},
	} {
		t.Run(name, func(t *testing.T) {
			runNode(t, nil, func(l *testNode) {
				t := l.t // the T of the synctest bubble
				p := clustertest.NewBoundPod("job", "1")
				p.UID, p.Spec.RestartPolicy = "u", c.policy
				p.Spec.Containers = []v1.Container{{Name: "app", Image: "job:1", Command: []string{"sleep", "inf"}}}
				var phases []v1.PodPhase
				l.Change(func() {
					l.PutPod(p, "ADDED")
					l.DropPodFields = func(p *v1.Pod) { phases = append(phases, p.Status.Phase) }
				})
				n := &agent{Runtime: runtimetest.New(t, runtimetest.Options{}), l: l, root: t.TempDir()}
				n.AddImages("job:1")
				n.Inject(runtimetest.Fault{Method: "ListContainers", Delay: time.Millisecond}) // a real runtime also needs time to respond
				n.start(apiserver.ObjectKey(p))
				defer func() { n.stop() }()
				clustertest.Advance(20 * time.Second)
				if got := l.StoredPod("default", "job").Status; got.Phase != v1.PodRunning {
					t.Fatalf("before the exit: got %+v, want phase Running", got)
				}
				c.fault.Method = "ContainerStatus"
				n.Inject(c.fault)
				if c.restarts {
					n.stop()
				}
				n.ExitContainer("default/job/app", 0)
				if c.restarts {
					n.start(apiserver.ObjectKey(p))
				}
				wait := c.reportedAfter - time.Second
				if c.reportedAfter == 0 {
					wait = time.Hour
				}
				clustertest.Advance(wait)
				l.Change(func() {
					for _, phase := range phases {
						if phase == v1.PodFailed || phase == v1.PodSucceeded {
							t.Fatalf("before the runtime has reported the exit code: got phases %q in the API server, want no final phase", phases)
						}
					}
				})
				if c.reportedAfter == 0 {
					return
				}
				clustertest.Advance(time.Minute)
				got := l.StoredPod("default", "job").Status
				if end := got.ContainerStatuses[0].State.Terminated; got.Phase != v1.PodSucceeded || end == nil || end.ExitCode != 0 {
					t.Errorf("after the runtime has reported the exit code: got phase %s, containers %+v; want Succeeded with exit code 0", got.Phase, got.ContainerStatuses)
				}
			})
		})
	}
}
