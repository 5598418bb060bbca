package boundpods

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/cmd/podd/internal/cluster/watchable"
	"podd/manifest"
)

// A testSource runs a Source of the pods bound to the Node n1, which has the label tier=edge.
type testSource struct {
	*clustertest.API
	pods  apiserver.Store[*v1.Pod]
	nodes apiserver.Store[*v1.Node]
	last  *manifest.Batch // the last batch; nil before the first
}

// runSource starts a Source that stores its origin in the file path, in a synctest bubble, and calls test.
// The pods and the Node are not listed yet.
func runSource(t *testing.T, path string, test func(*testSource)) {
	synctest.Test(t, func(t *testing.T) {
		s := &testSource{API: &clustertest.API{Version: 1}}
		s.PutNode(clustertest.NewLocalNode(), "ADDED")
		client := clustertest.NewClient(t, s.API, apiserver.Options{QPS: 50, Burst: 100})
		var objects watchable.Value[manifest.Objects]
		o := Options{
			NodeName: "n1", OriginFile: path, Client: func() *apiserver.Client { return client }, Pods: &s.pods, Nodes: &s.nodes, Objects: objects.Get,
			Deletions: &watchable.Value[map[types.UID]uint64]{}, Log: slog.New(slog.DiscardHandler),
		}
		ctx, cancel := context.WithCancel(t.Context())
		var part sync.WaitGroup
		part.Go(func() {
			if err := New(o).Run(ctx, func(b manifest.Batch) { s.last = &b }); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		test(s)
		cancel()
		part.Wait()
	})
}

// list sets the listed pods and waits for the batch.
func (s *testSource) list(pods ...*v1.Pod) {
	items := map[types.NamespacedName]*v1.Pod{}
	for _, p := range pods {
		items[apiserver.ObjectKey(p)] = p
	}
	s.pods.Set(apiserver.Snapshot[*v1.Pod]{Items: items, ListCount: 1, Origin: apiserver.Origin{CADigest: "ca", ServiceUID: "s1", NodeUID: s.Node.UID}})
	synctest.Wait()
}

// cacheNode sets the Node in the cache to the Node in the API server and waits for the batch.
func (s *testSource) cacheNode() {
	s.nodes.Set(apiserver.Snapshot[*v1.Node]{Items: map[types.NamespacedName]*v1.Node{{Name: "n1"}: s.StoredNode()}, ListCount: 1})
	synctest.Wait()
}

// setTier sets the label tier of the Node in the API server. The cache does not change.
func (s *testSource) setTier(tier string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	n := s.Node.DeepCopy()
	s.Version++
	n.Labels["tier"], n.ResourceVersion = tier, strconv.Itoa(s.Version)
	s.Node = n
}

// TestSource_FirstBatch checks that the Source emits nothing before the pods and the Node were listed, and
// stores the origin of the pods before it emits them.
func TestSource_FirstBatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cluster.json")
	runSource(t, path, func(s *testSource) {
		if s.last != nil {
			t.Errorf("before the lists: got batch %+v, want none", s.last)
		}
		s.list(clustertest.NewPodWithUID("a"))
		if _, err := os.Stat(path); s.last != nil || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("before the list of the Node: got batch %+v, error %v of the origin file; want neither a batch nor the file", s.last, err)
		}
		s.cacheNode()
		if s.last == nil || !s.last.IsComplete || clustertest.PodNames(s.last.Pods) != "a" {
			t.Fatalf("after both lists: got batch %+v, want a complete batch with pod a", s.last)
		}
		want := apiserver.Origin{CADigest: "ca", ServiceUID: "s1", NodeUID: "own"}
		if got, err := apiserver.ReadOrigin(path); got != want || err != nil {
			t.Errorf("after the first batch: got stored origin %v, error %v; want %v", got, err, want)
		}
	})
}

// TestSource_OutdatedNode checks a new pod that does not match the labels of the cached Node. Because
// the watch of the Node may lag behind the watch of the pods, podd must read the Node before it emits
// the pod. The batch must contain the labels that the Node has in the API server.
func TestSource_OutdatedNode(t *testing.T) {
	newCorePod := func(name string) *v1.Pod {
		p := clustertest.NewPodWithUID(name)
		p.Spec.NodeSelector = map[string]string{"tier": "core"}
		return p
	}
	a, b, c, d := clustertest.NewPodWithUID("a"), newCorePod("b"), newCorePod("c"), newCorePod("d")
	runSource(t, filepath.Join(t.TempDir(), "cluster.json"), func(s *testSource) {
		check := func(when, wantTier, wantPods string, wantReads int) {
			t.Helper()
			reads := s.CountRequests("GET nodes")[0]
			if tier, pods := s.last.Node.Labels["tier"], clustertest.PodNames(s.last.Pods); tier != wantTier || pods != wantPods || reads != wantReads {
				t.Errorf("%s: got the label tier=%s, pods %q, %d reads of the Node; want tier=%s, pods %q, %d reads", when, tier, pods, reads, wantTier, wantPods, wantReads)
			}
		}
		s.cacheNode()
		s.list(a)
		check("pod that matches", "edge", "a", 0)
		s.list(a, b)
		check("pod that does not match", "edge", "a b", 1)
		s.setTier("core")
		s.list(a, b, c)
		check("pod that matches only the Node in the API server", "core", "a b c", 1)
		s.list(b, c, d)
		check("next pod that matches only the Node in the API server", "core", "b c d", 0)
		s.setTier("lab")
		s.cacheNode()
		check("newer Node in the cache", "lab", "b c d", 0)
	})
}

// TestSource_InvalidOrigin checks that podd emits the pods and replaces the origin file if the content
// of the file is invalid.
func TestSource_InvalidOrigin(t *testing.T) {
	for name, text := range map[string]string{"truncated": `{"authority":`, "empty": "", "another type": "[1]"} {
		path := filepath.Join(t.TempDir(), "cluster.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		runSource(t, path, func(s *testSource) {
			s.cacheNode()
			s.list(clustertest.NewPodWithUID("a"))
			if b := s.last; b == nil || !b.IsComplete || clustertest.PodNames(b.Pods) != "a" {
				t.Errorf("%s: got batch %+v, want a complete batch with pod a", name, b)
			}
		})
		if stored, err := apiserver.ReadOrigin(path); stored.ServiceUID != "s1" || err != nil {
			t.Errorf("%s: got stored origin %v, %v; want one of the Service with the UID s1", name, stored, err)
		}
	}
}
