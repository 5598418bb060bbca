package csinode

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/cmd/podd/internal/cluster/clustertest"
	"podd/manifest/intree"
	"podd/reconcile/volume/csi"
)

// disk is a driver with all fields that are published.
var disk = csi.Driver{Name: "disk.example", NodeID: "i-1", Topology: map[string]string{"disk.example/zone": "a", "disk.example/rack": "r"}, MaxVolumes: 5}

// diskEntry is the entry of disk in the CSINode.
var diskEntry = storage.CSINodeDriver{
	Name: "disk.example", NodeID: "i-1", TopologyKeys: []string{"disk.example/rack", "disk.example/zone"}, Allocatable: &storage.VolumeNodeResources{Count: new(int32(5))},
}

// TestUpdatedCSINode checks the drivers in the updated CSINode.
func TestUpdatedCSINode(t *testing.T) {
	other := storage.CSINodeDriver{Name: "other.example", NodeID: "x"}
	withLimit := func(limit int64) *csi.Driver { d := disk; d.MaxVolumes = limit; return &d }
	entryWithLimit := func(r *storage.VolumeNodeResources) storage.CSINodeDriver {
		e := diskEntry
		e.Allocatable = r
		return e
	}
	for name, c := range map[string]struct {
		stored  []storage.CSINodeDriver
		added   *csi.Driver
		removed string
		want    []storage.CSINodeDriver
	}{
		"no drivers":                       {nil, nil, "", []storage.CSINodeDriver{}},
		"first driver":                     {nil, &disk, "", []storage.CSINodeDriver{diskEntry}},
		"second driver":                    {[]storage.CSINodeDriver{other}, &disk, "", []storage.CSINodeDriver{other, diskEntry}},
		"changed driver":                   {[]storage.CSINodeDriver{{Name: disk.Name, NodeID: "i-0"}, other}, &disk, "", []storage.CSINodeDriver{diskEntry, other}},
		"removed driver":                   {[]storage.CSINodeDriver{diskEntry, other}, nil, disk.Name, []storage.CSINodeDriver{other}},
		"removed last driver":              {[]storage.CSINodeDriver{diskEntry}, nil, disk.Name, []storage.CSINodeDriver{}},
		"driver removed by another client": {[]storage.CSINodeDriver{other}, nil, disk.Name, []storage.CSINodeDriver{other}},
		"no limit":                         {nil, withLimit(0), "", []storage.CSINodeDriver{entryWithLimit(nil)}},
		"invalid limit":                    {nil, withLimit(-1), "", []storage.CSINodeDriver{entryWithLimit(nil)}},
		"limit too large":                  {nil, withLimit(math.MaxInt32 + 1), "", []storage.CSINodeDriver{entryWithLimit(&storage.VolumeNodeResources{Count: new(int32(math.MaxInt32))})}},
	} {
		stored := &storage.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: storage.CSINodeSpec{Drivers: c.stored}}
		got := updatedCSINode(stored, clustertest.NewNodeWithUID("u1"), c.added, c.removed)
		if diff := cmp.Diff(c.want, append([]storage.CSINodeDriver{}, got.Spec.Drivers...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestUpdatedCSINode_Meta checks the metadata of a new and of a stored CSINode. The Node must become the
// owner, and annotations of other clients must remain. The stored CSINode must not change, because it is
// compared with the result.
func TestUpdatedCSINode_Meta(t *testing.T) {
	migrated := strings.Join(intree.Plugins(), ",")
	owner := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "u1"}}
	created := updatedCSINode(nil, clustertest.NewNodeWithUID("u1"), nil, "")
	want := metav1.ObjectMeta{Name: "n1", OwnerReferences: owner, Annotations: map[string]string{v1.MigratedPluginsAnnotationKey: migrated}}
	if diff := cmp.Diff(want, created.ObjectMeta); diff != "" || created.Spec.Drivers == nil {
		t.Errorf("new CSINode: got drivers %v, want a list that is not nil; metadata (-want +got):\n%s", created.Spec.Drivers, diff)
	}
	stored := &storage.CSINode{ObjectMeta: metav1.ObjectMeta{
		Name: "n1", ResourceVersion: "7", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "u0"}},
		Annotations: map[string]string{v1.MigratedPluginsAnnotationKey: "kubernetes.io/rbd", "a": "b"},
	}}
	before := stored.DeepCopy()
	updated := updatedCSINode(stored, clustertest.NewNodeWithUID("u1"), &disk, "")
	want.ResourceVersion, want.Annotations["a"] = "7", "b"
	if diff := cmp.Diff(want, updated.ObjectMeta); diff != "" {
		t.Errorf("stored CSINode of a deleted Node (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, stored); diff != "" {
		t.Errorf("updatedCSINode modified its argument (-before +after):\n%s", diff)
	}
}

// TestCheckDriver checks which drivers can be published.
func TestCheckDriver(t *testing.T) {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"zone": "a"}}}
	for name, c := range map[string]struct {
		d    csi.Driver
		want string
	}{
		"no topology":       {csi.Driver{Name: "d", NodeID: "i"}, ""},
		"new label":         {csi.Driver{Name: "d", NodeID: "i", Topology: map[string]string{"d.example/rack": "r"}}, ""},
		"same label":        {csi.Driver{Name: "d", NodeID: "i", Topology: map[string]string{"zone": "a"}}, ""},
		"empty label value": {csi.Driver{Name: "d", NodeID: "i", Topology: map[string]string{"d.example/rack": ""}}, ""},
		"no node ID":        {csi.Driver{Name: "d"}, "CSI driver d reported an empty node ID for this node"},
		"conflicting label": {csi.Driver{Name: "d", NodeID: "i", Topology: map[string]string{"zone": "b"}}, `detected topology value collision: CSI driver d reported "zone":"b" but existing label is "zone":"a"`},
		"invalid key":       {csi.Driver{Name: "d", NodeID: "i", Topology: map[string]string{"a b": "c"}}, `CSI driver d reported the topology "a b":"c", which is not a valid label`},
		"invalid value":     {csi.Driver{Name: "d", NodeID: "i", Topology: map[string]string{"a": "b c"}}, `CSI driver d reported the topology "a":"b c", which is not a valid label`},
	} {
		if got := checkDriver(n, &c.d); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestDriverPatch checks the patch of the Node. "" means that the Node needs no patch.
func TestDriverPatch(t *testing.T) {
	labels := disk.Topology
	for name, c := range map[string]struct {
		ids     string // the annotation with the node IDs; "" if the Node has none
		labels  map[string]string
		added   *csi.Driver
		removed string
		want    string
	}{
		"first driver":                    {"", nil, &disk, "", `{"metadata":{"annotations":{"csi.volume.kubernetes.io/nodeid":"{\"disk.example\":\"i-1\"}"},"labels":{"disk.example/rack":"r","disk.example/zone":"a"}}}`},
		"second driver":                   {`{"a.example":"x"}`, labels, &disk, "", `{"metadata":{"annotations":{"csi.volume.kubernetes.io/nodeid":"{\"a.example\":\"x\",\"disk.example\":\"i-1\"}"},"labels":{}}}`},
		"changed node ID":                 {`{"disk.example":"i-0"}`, labels, &disk, "", `{"metadata":{"annotations":{"csi.volume.kubernetes.io/nodeid":"{\"disk.example\":\"i-1\"}"},"labels":{}}}`},
		"label removed by a user":         {`{"disk.example":"i-1"}`, map[string]string{"disk.example/zone": "a"}, &disk, "", `{"metadata":{"annotations":{"csi.volume.kubernetes.io/nodeid":"{\"disk.example\":\"i-1\"}"},"labels":{"disk.example/rack":"r"}}}`},
		"published driver":                {`{"disk.example":"i-1"}`, labels, &disk, "", ""},
		"invalid annotation":              {"{", labels, &disk, "", `{"metadata":{"annotations":{"csi.volume.kubernetes.io/nodeid":"{\"disk.example\":\"i-1\"}"},"labels":{}}}`},
		"removed driver":                  {`{"a.example":"x","disk.example":"i-1"}`, labels, nil, disk.Name, `{"metadata":{"annotations":{"csi.volume.kubernetes.io/nodeid":"{\"a.example\":\"x\"}"},"labels":{}}}`},
		"removed last driver":             {`{"disk.example":"i-1"}`, labels, nil, disk.Name, `{"metadata":{"annotations":{"csi.volume.kubernetes.io/nodeid":null},"labels":{}}}`},
		"driver that was not in the Node": {`{"a.example":"x"}`, nil, nil, disk.Name, ""},
		"no annotation":                   {"", nil, nil, disk.Name, ""},
	} {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: c.labels}}
		if c.ids != "" {
			n.Annotations = map[string]string{AnnotationNodeIDs: c.ids}
		}
		if got := string(driverPatch(n, c.added, c.removed)); got != c.want {
			t.Errorf("%s: got patch\n%s\nwant\n%s", name, got, c.want)
		}
	}
}
