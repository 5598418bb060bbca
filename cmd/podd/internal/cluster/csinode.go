package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"podd/reconcile/volume/csi"
)

// annotationNodeIDs contains the node IDs of the CSI drivers as JSON.
const annotationNodeIDs = "csi.volume.kubernetes.io/nodeid"

// updatedCSINode returns the CSINode of n after adding the driver with, which may be nil, and
// removing the driver without, which may be "". present is the current CSINode, or nil.
// Entries of other drivers are kept. The kubelet's annotation of migrated in-tree plugins is removed,
// because podd passes no in-tree volumes to CSI drivers. The controllers of 1.34 do not
// need it for any cloud, and without it the scheduler uses the volume's own source.
func updatedCSINode(present *storage.CSINode, n *v1.Node, with *csi.Driver, without string) *storage.CSINode {
	next := &storage.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n.Name}, Spec: storage.CSINodeSpec{Drivers: []storage.CSINodeDriver{}}}
	if present != nil {
		next = present.DeepCopy()
	}
	next.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID}}
	delete(next.Annotations, v1.MigratedPluginsAnnotationKey)
	next.Spec.Drivers = slices.DeleteFunc(next.Spec.Drivers, func(d storage.CSINodeDriver) bool { return d.Name == without })
	if with == nil {
		return next
	}
	entry := storage.CSINodeDriver{Name: with.Name, NodeID: with.NodeID, TopologyKeys: slices.Sorted(maps.Keys(with.Topology))}
	if with.MaxVolumes > 0 {
		entry.Allocatable = &storage.VolumeNodeResources{Count: new(int32(min(with.MaxVolumes, math.MaxInt32)))}
	}
	at := slices.IndexFunc(next.Spec.Drivers, func(d storage.CSINodeDriver) bool { return d.Name == with.Name })
	if at < 0 {
		next.Spec.Drivers = append(next.Spec.Drivers, entry)
	} else {
		next.Spec.Drivers[at] = entry
	}
	return next
}

// checkDriver returns the reason for which a driver cannot be published, or "".
func checkDriver(n *v1.Node, d *csi.Driver) string {
	if d.NodeID == "" {
		return fmt.Sprintf("CSI driver %s reported no ID of this node", d.Name)
	}
	for _, key := range slices.Sorted(maps.Keys(d.Topology)) {
		value := d.Topology[key]
		if len(validation.IsQualifiedName(key))+len(validation.IsValidLabelValue(value)) > 0 {
			return fmt.Sprintf("CSI driver %s reported the topology %q:%q, which is not a valid label", d.Name, key, value)
		}
		if present, exists := n.Labels[key]; exists && present != value {
			return fmt.Sprintf("detected topology value collision: CSI driver %s reported %q:%q but existing label is %q:%q", d.Name, key, value, key, present)
		}
	}
	return ""
}

// driverPatch returns a patch of the labels and annotations of n that adds the driver with,
// which may be nil, and removes the driver without, which may be "". It returns nil if nothing
// changes. As in the kubelet, labels are not removed.
func driverPatch(n *v1.Node, with *csi.Driver, without string) []byte {
	ids := map[string]string{}
	if err := json.Unmarshal([]byte(n.Annotations[annotationNodeIDs]), &ids); err != nil {
		ids = map[string]string{} // an invalid annotation is replaced
	}
	labels := map[string]string{}
	delete(ids, without)
	if with != nil {
		ids[with.Name] = with.NodeID
		for key, value := range with.Topology {
			if n.Labels[key] != value {
				labels[key] = value
			}
		}
	}
	present, exists := n.Annotations[annotationNodeIDs]
	annotations := map[string]any{annotationNodeIDs: nil} // null removes it
	if len(ids) > 0 {
		annotations[annotationNodeIDs] = mustEncode(ids)
	}
	if isSame := exists == (len(ids) > 0) && (!exists || present == annotations[annotationNodeIDs]); isSame && len(labels) == 0 {
		return nil
	}
	return []byte(mustEncode(map[string]any{"metadata": map[string]any{"annotations": annotations, "labels": labels}}))
}

// mustEncode returns the JSON form of a value that consists of strings, numbers and maps.
func mustEncode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("cluster: encoding JSON: " + err.Error())
	}
	return string(b)
}
