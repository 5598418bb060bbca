package csinode

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/cmd/podd/internal/cluster/watchable"
	"podd/reconcile/volume/csi"
)

// registeredDrivers implements Drivers.
type registeredDrivers struct{ watchable.Value[[]csi.Driver] }

func (d *registeredDrivers) Registered() ([]csi.Driver, <-chan struct{}) { return d.Get() }

// A testPublisher runs a Publisher for the Node n1 against an API server. A Reflector watches the Node.
type testPublisher struct {
	*clustertest.API
	drivers registeredDrivers
	mu      sync.Mutex // guards errs
	errs    []error    // the errors that were reported
}

// runPublisher starts a Publisher in a synctest bubble and calls test. The API server contains the Node n1
// with the UID u1. prepare may change this before the start; it may be nil.
func runPublisher(t *testing.T, prepare, test func(*testPublisher)) {
	synctest.Test(t, func(t *testing.T) {
		p := &testPublisher{API: &clustertest.API{Version: 1}}
		p.PutNode(clustertest.NewNodeWithUID("u1"), "ADDED")
		if prepare != nil {
			prepare(p)
		}
		client := clustertest.NewClient(t, p.API, apiserver.Options{QPS: 5000, Burst: 5000})
		var nodes apiserver.Store[*v1.Node]
		reflector := apiserver.Reflector[*v1.Node]{
			Client: client, Query: client.NodeQuery("n1"), EmptyList: &v1.NodeList{}, Publish: nodes.Set, Report: func(context.Context, error) {},
		}
		o := Options{Client: client, NodeName: "n1", CSI: &p.drivers, Nodes: &nodes, Report: func(_ context.Context, err error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if err != nil {
				p.errs = append(p.errs, err)
			}
		}}
		ctx, cancel := context.WithCancel(t.Context())
		var parts sync.WaitGroup
		parts.Go(func() { reflector.Run(ctx) })
		parts.Go(func() { new(Publisher).Run(ctx, o) })
		clustertest.Advance(time.Second)
		test(p)
		cancel()
		parts.Wait()
	})
}

// register replaces the registered drivers and lets 1 s pass.
func (p *testPublisher) register(drivers ...csi.Driver) {
	p.drivers.Set(drivers)
	clustertest.Advance(time.Second)
}

// takeErrors returns the errors that were reported since the last call.
func (p *testPublisher) takeErrors() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	errs := p.errs
	p.errs = nil
	return errors.Join(errs...)
}

// checkDrivers checks the drivers in the CSINode.
func (p *testPublisher) checkDrivers(t *testing.T, when string, want ...storage.CSINodeDriver) {
	t.Helper()
	n := p.StoredCSINode()
	if n == nil {
		t.Fatalf("%s: got no CSINode, want one", when)
	}
	if diff := cmp.Diff(want, append([]storage.CSINodeDriver(nil), n.Spec.Drivers...)); diff != "" {
		t.Errorf("%s: drivers in the CSINode (-want +got):\n%s", when, diff)
	}
}

// checkNodeIDs checks the annotation of the Node with the node IDs, and that the Node has the labels of
// disk.
func (p *testPublisher) checkNodeIDs(t *testing.T, when, want string) {
	t.Helper()
	n := p.StoredNode()
	if n.Annotations[AnnotationNodeIDs] != want || n.Labels["disk.example/zone"] != "a" || n.Labels["disk.example/rack"] != "r" {
		t.Errorf("%s: got annotations %v, labels %v of the Node; want the node IDs %q, and the labels of disk.example", when, n.Annotations, n.Labels, want)
	}
}

// TestPublisher checks that podd adds and removes its drivers in the CSINode and the Node, and keeps
// entries that it has not written. podd must send no requests while nothing changes.
func TestPublisher(t *testing.T) {
	runPublisher(t, nil, func(p *testPublisher) {
		p.checkDrivers(t, "without drivers")
		if o := p.StoredCSINode().OwnerReferences; len(o) != 1 || o[0].UID != "u1" {
			t.Errorf("got owners %+v of the CSINode, want the Node with the UID u1", o)
		}
		p.CountRequests()
		clustertest.Advance(time.Hour)
		if c := p.CountRequests("GET csinodes", "PUT csinodes", "POST csinodes", "PATCH nodes"); c[0]+c[1]+c[2]+c[3] > 0 {
			t.Errorf("hour without changes: got %d GETs, %d PUTs, %d POSTs of the CSINode, %d patches of the Node; want none", c[0], c[1], c[2], c[3])
		}
		old := storage.CSINodeDriver{Name: "old.example", NodeID: "x"}
		p.Change(func() { // an entry of an earlier podd or another agent; the next PUT causes a conflict
			other := p.Objects["csinodes//n1"].(*storage.CSINode).DeepCopy()
			other.Spec.Drivers = []storage.CSINodeDriver{old}
			p.PutObject("csinodes", other, "MODIFIED")
		})
		p.register(disk)
		p.checkDrivers(t, "after the registration", old, diskEntry)
		p.checkNodeIDs(t, "after the registration", `{"disk.example":"i-1"}`)
		limited, limitedEntry := disk, diskEntry
		limited.MaxVolumes, limitedEntry.Allocatable = 4, &storage.VolumeNodeResources{Count: new(int32(4))}
		p.CountRequests()
		p.register(limited)
		p.checkDrivers(t, "after a change of the limit", old, limitedEntry)
		if c := p.CountRequests("GET csinodes", "PUT csinodes", "PATCH nodes"); c[0] != 0 || c[1] != 1 || c[2] != 0 {
			t.Errorf("change of the limit: got %d GETs, %d PUTs of the CSINode, %d patches of the Node; want one PUT", c[0], c[1], c[2])
		}
		p.register(limited)
		if c := p.CountRequests("GET csinodes", "PUT csinodes", "PATCH nodes"); c[0]+c[1]+c[2] > 0 {
			t.Errorf("same drivers registered again: got %d GETs, %d PUTs of the CSINode, %d patches of the Node; want none", c[0], c[1], c[2])
		}
		p.register()
		p.checkDrivers(t, "after the end of the registration", old)
		p.checkNodeIDs(t, "after the end of the registration", "")
		p.Change(func() { // another agent adds an entry with the same name
			other := p.Objects["csinodes//n1"].(*storage.CSINode).DeepCopy()
			other.Spec.Drivers = append(other.Spec.Drivers, diskEntry)
			p.PutObject("csinodes", other, "MODIFIED")
		})
		p.register(csi.Driver{Name: "new.example", NodeID: "n"})
		p.checkDrivers(t, "after another agent has published the same driver", old, diskEntry, storage.CSINodeDriver{Name: "new.example", NodeID: "n"})
		if err := p.takeErrors(); err != nil {
			t.Errorf("got reported errors %v, want none", err)
		}
	})
}

// TestPublisher_InvalidDriver checks that podd reports a driver with a conflicting topology, and publishes
// the remaining drivers.
func TestPublisher_InvalidDriver(t *testing.T) {
	prepare := func(p *testPublisher) { p.Node.Labels = map[string]string{v1.LabelHostname: "n1"} }
	runPublisher(t, prepare, func(p *testPublisher) {
		p.register(csi.Driver{Name: "bad.example", NodeID: "i-1", Topology: map[string]string{v1.LabelHostname: "n2"}}, disk)
		p.checkDrivers(t, "with an invalid driver", diskEntry)
		p.checkNodeIDs(t, "with an invalid driver", `{"disk.example":"i-1"}`)
		if err := p.takeErrors(); err == nil || !strings.Contains(err.Error(), `topology value collision: CSI driver bad.example reported "kubernetes.io/hostname":"n2"`) {
			t.Errorf("got reported errors %v, want a topology value collision of bad.example", err)
		}
		p.CountRequests()
		clustertest.Advance(time.Hour)
		if c := p.CountRequests("GET csinodes", "PUT csinodes", "PATCH nodes"); c[0]+c[1]+c[2] > 0 {
			t.Errorf("hour with an invalid driver: got %d GETs, %d PUTs of the CSINode, %d patches of the Node; want none", c[0], c[1], c[2])
		}
		if err := p.takeErrors(); err == nil {
			t.Error("hour with an invalid driver: got no reported errors, want one for each attempt")
		}
		for i := range 60 {
			p.Change(func() { n := p.Node.DeepCopy(); n.Annotations["a"] = fmt.Sprint(i); p.PutNode(n, "MODIFIED") })
			clustertest.Advance(time.Second)
		}
		if err := p.takeErrors(); err == nil || strings.Count(err.Error(), "collision") > 4 {
			t.Errorf("minute with a change of the Node each second: got reported errors %v, want one for each of at most four attempts", err)
		}
		p.Change(func() { n := p.Node.DeepCopy(); delete(n.Labels, v1.LabelHostname); p.PutNode(n, "MODIFIED") })
		clustertest.Advance(apiserver.MaxCachedWait)
		if n := p.StoredCSINode(); len(n.Spec.Drivers) != 2 {
			t.Errorf("after the conflicting label was removed: got drivers %+v, want both", n.Spec.Drivers)
		}
	})
}

// TestPublisher_Outage checks that podd publishes a change during an outage after the outage.
func TestPublisher_Outage(t *testing.T) {
	runPublisher(t, nil, func(p *testPublisher) {
		p.register(disk)
		p.Change(func() {
			p.Fault = func(*http.Request) (*http.Response, error) { return nil, errors.New("unreachable") }
		})
		p.register()
		if p.takeErrors() == nil {
			t.Error("during the outage: got no reported error, want one")
		}
		clustertest.Advance(10 * time.Minute)
		p.Change(func() { p.Fault = nil })
		clustertest.Advance(apiserver.MaxCachedWait)
		p.checkDrivers(t, "after the outage")
		p.checkNodeIDs(t, "after the outage", "")
	})
}

// TestPublisher_OtherClients checks that podd restores a label of its driver that a user has removed. After
// the deletion of the CSINode, the next change of a driver must create the CSINode again.
func TestPublisher_OtherClients(t *testing.T) {
	runPublisher(t, nil, func(p *testPublisher) {
		p.register(disk)
		p.Change(func() { n := p.Node.DeepCopy(); delete(n.Labels, "disk.example/rack"); p.PutNode(n, "MODIFIED") })
		clustertest.Advance(time.Second)
		p.checkNodeIDs(t, "after the label was removed", `{"disk.example":"i-1"}`)
		p.Change(func() { p.PutObject("csinodes", p.Objects["csinodes//n1"], "DELETED") })
		changed, entry := disk, diskEntry
		changed.NodeID, entry.NodeID = "i-2", "i-2"
		p.register(changed)
		p.checkDrivers(t, "after the deletion of the CSINode", entry)
		p.checkNodeIDs(t, "after the deletion of the CSINode", `{"disk.example":"i-2"}`)
		if err := p.takeErrors(); err != nil {
			t.Errorf("got reported errors %v, want none", err)
		}
	})
}

// TestPublisher_NewNode checks that podd publishes its drivers in a Node that replaces a deleted one, and
// makes the new Node the owner of the CSINode. podd must send no requests while there is no Node.
func TestPublisher_NewNode(t *testing.T) {
	runPublisher(t, nil, func(p *testPublisher) {
		p.register(disk)
		p.Change(func() { p.PutNode(p.Node.DeepCopy(), "DELETED") })
		p.CountRequests()
		p.register()
		p.register(disk)
		if c := p.CountRequests("GET csinodes", "PUT csinodes", "PATCH nodes"); c[0]+c[1]+c[2] > 0 {
			t.Errorf("without a Node: got %d GETs, %d PUTs of the CSINode, %d patches of the Node; want none", c[0], c[1], c[2])
		}
		p.Change(func() { p.PutNode(clustertest.NewNodeWithUID("u2"), "ADDED") })
		clustertest.Advance(time.Second)
		p.checkDrivers(t, "after the Node was replaced", diskEntry)
		p.checkNodeIDs(t, "after the Node was replaced", `{"disk.example":"i-1"}`)
		if o := p.StoredCSINode().OwnerReferences; len(o) != 1 || o[0].UID != "u2" {
			t.Errorf("after the Node was replaced: got owners %+v of the CSINode, want the Node with the UID u2", o)
		}
		p.register()
		p.Change(func() { p.PutNode(p.Node.DeepCopy(), "DELETED") })
		p.Change(func() { p.PutNode(clustertest.NewNodeWithUID("u3"), "ADDED") })
		clustertest.Advance(time.Second)
		if o := p.StoredCSINode().OwnerReferences; len(o) != 1 || o[0].UID != "u3" {
			t.Errorf("after the Node was replaced while no driver was registered: got owners %+v of the CSINode, want the Node with the UID u3", o)
		}
	})
}

// TestPublisher_NextConnection checks that a driver that unregisters between two connections is removed.
func TestPublisher_NextConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &clustertest.API{Version: 1}
		api.PutNode(clustertest.NewNodeWithUID("u1"), "ADDED")
		api.Node.Labels = map[string]string{}
		client := clustertest.NewClient(t, api, apiserver.Options{QPS: 5000, Burst: 5000})
		var p Publisher
		connect := func(drivers ...csi.Driver) {
			var d registeredDrivers
			d.Set(drivers)
			var nodes apiserver.Store[*v1.Node]
			nodes.Set(apiserver.Snapshot[*v1.Node]{Items: map[types.NamespacedName]*v1.Node{{Name: "n1"}: api.StoredNode()}})
			ctx, cancel := context.WithCancel(t.Context())
			var part sync.WaitGroup
			part.Go(func() {
				p.Run(ctx, Options{Client: client, NodeName: "n1", CSI: &d, Nodes: &nodes, Report: func(_ context.Context, err error) {
					if err != nil {
						t.Error(err)
					}
				}})
			})
			synctest.Wait()
			cancel()
			part.Wait()
		}
		connect(disk)
		if n := api.StoredCSINode(); n == nil || len(n.Spec.Drivers) != 1 {
			t.Fatalf("first connection: got CSINode %+v, want one with a driver", n)
		}
		connect()
		if n := api.StoredCSINode(); len(n.Spec.Drivers) > 0 || api.StoredNode().Annotations[AnnotationNodeIDs] != "" {
			t.Errorf("second connection without the driver: got drivers %+v, annotations %v of the Node; want neither the driver nor its node ID", n.Spec.Drivers, api.StoredNode().Annotations)
		}
	})
}
