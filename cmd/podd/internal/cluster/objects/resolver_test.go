package objects

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	nodes "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/cmd/podd/internal/cluster/inuse"
	"podd/cmd/podd/internal/cluster/watchable"
	"podd/manifest"
)

// A testResolver runs a Resolver for the Node n1 against an API server. Reflectors watch the pods and the
// Node.
type testResolver struct {
	*clustertest.API
	t        *testing.T
	resolver *Resolver
	podStore apiserver.Store[*v1.Pod]
	nodes    apiserver.Store[*v1.Node]
	volumes  inuse.Volumes
	limits   fakeLimits
	// reportsVolumes is set if the volumes of the bound pods are reported in volumesInUse of the Node's
	// status at once.
	reportsVolumes watchable.Value[bool]
}

// runResolver starts a Resolver in a synctest bubble, lets 2 s pass and calls test. prepare may be nil.
func runResolver(t *testing.T, prepare func(*testResolver, *Options), test func(*testResolver)) {
	synctest.Test(t, func(t *testing.T) {
		l := &testResolver{API: &clustertest.API{Version: 1, Service: "s1"}, t: t}
		l.PutNode(clustertest.NewNodeWithUID("u1"), "ADDED")
		l.reportsVolumes.Set(true)
		o := Options{
			NodeName: "n1", EnableControllerAttachDetach: true, Pods: &l.podStore, Nodes: &l.nodes, VolumesInUse: &l.volumes, AttachFailures: &l.limits,
			ClaimUpdates: &watchable.Value[map[types.NamespacedName]int]{},
		}
		if prepare != nil {
			prepare(l, &o)
		}
		client := clustertest.NewClient(t, l.API, apiserver.Options{QPS: 50, Burst: 100})
		ignore := func(context.Context, error) {}
		pods := apiserver.Reflector[*v1.Pod]{Client: client, Query: client.PodsQuery("n1"), EmptyList: &v1.PodList{}, Publish: l.podStore.Set, Report: ignore}
		nodes := apiserver.Reflector[*v1.Node]{Client: client, Query: client.NodeQuery("n1"), EmptyList: &v1.NodeList{}, Publish: l.nodes.Set, Report: ignore}
		l.resolver = NewResolver(o)
		ctx, cancel := context.WithCancel(t.Context())
		var parts sync.WaitGroup
		parts.Go(func() { pods.Run(ctx) })
		parts.Go(func() { nodes.Run(ctx) })
		parts.Go(func() { l.resolver.Run(ctx, client, ignore, ignore) })
		parts.Go(func() { l.reportVolumes(ctx) })
		clustertest.Advance(2 * time.Second)
		test(l)
		cancel()
		parts.Wait()
	})
}

// reportVolumes reports the volumes of the bound pods while reportsVolumes is set, until ctx is done.
func (l *testResolver) reportVolumes(ctx context.Context) {
	for {
		isReporting, modeChanged := l.reportsVolumes.Get()
		names, desiredChanged := l.volumes.Names(nil, nil, nil)
		if isReporting {
			l.volumes.SetReported(names)
		}
		select {
		case <-modeChanged:
		case <-desiredChanged:
		case <-ctx.Done():
			return
		}
	}
}

// objects returns the published objects.
func (l *testResolver) objects() *manifest.Objects {
	o, _ := l.resolver.Objects()
	return &o
}

// newConfigMap returns a ConfigMap with a value for the key "a".
func newConfigMap(name, value string) *v1.ConfigMap {
	return &v1.ConfigMap{ObjectMeta: clustertest.Meta(name), Data: map[string]string{"a": value}}
}

// TestResolver_RuntimeClassesAndServices checks that podd publishes the handler of a RuntimeClass and
// the Services with a cluster IP, and reuses the Services of unchanged namespaces.
func TestResolver_RuntimeClassesAndServices(t *testing.T) {
	service := func(namespace, name, ip string) *v1.Service {
		s := &v1.Service{Spec: v1.ServiceSpec{ClusterIP: ip, Ports: []v1.ServicePort{{Port: 80}}}}
		s.Namespace, s.Name = namespace, name
		return s
	}
	prepare := func(l *testResolver, _ *Options) {
		l.PutObject("services", service("default", "kubernetes", "10.0.0.1"), "ADDED")
		l.PutObject("services", service("default", "headless", "None"), "ADDED")
	}
	runResolver(t, prepare, func(l *testResolver) {
		class := &nodes.RuntimeClass{Handler: "runsc"}
		class.Name = "gvisor"
		p := clustertest.NewPodWithVolumes("a")
		p.Spec.RuntimeClassName = &class.Name
		l.Change(func() { l.PutObject("runtimeclasses", class, "ADDED"); l.PutPod(p, "ADDED") })
		c := l.objects().Cluster
		if c.RuntimeHandlers["gvisor"] != "runsc" || len(c.Services["default"].ByName) != 1 {
			t.Errorf("got objects %+v, want the handler runsc, and only the Service kubernetes in default", c)
		}
		own := c.Services["default"]
		l.Change(func() { l.PutObject("services", service("shop", "web", "10.0.0.2"), "ADDED") })
		c = l.objects().Cluster
		if c.Services["default"] != own || c.Services["shop"].ByName["web"].IP != "10.0.0.2" {
			t.Errorf("Service shop/web added: got %+v, want the same Services of default, and the Service shop/web", c.Services)
		}
		l.Change(func() { l.PutObject("services", service("shop", "web", "10.0.0.2"), "DELETED") })
		if c = l.objects().Cluster; c.Services["shop"] != nil {
			t.Errorf("Service shop/web deleted: got %+v, want no Services of shop", c.Services)
		}
	})
}
