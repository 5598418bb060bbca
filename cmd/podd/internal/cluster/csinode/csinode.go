package csinode

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"podd/cmd/podd/internal/cluster/mergepatch"
	"podd/manifest/intree"
	"podd/reconcile/volume/csi"
)

// AnnotationNodeIDs is the annotation of the Node that contains the node IDs of the CSI drivers,
// as a JSON object.
const AnnotationNodeIDs = "csi.volume.kubernetes.io/nodeid"

// updatedCSINode returns the new CSINode of n. stored is the current CSINode, or nil. If added is
// not nil, updatedCSINode adds this driver. If removed is not "", it removes the driver with this
// name. It keeps the entries of other drivers.
//
// updatedCSINode also sets the annotation with the in-tree plugins whose volumes the node passes to
// CSI drivers, as the kubelet does. The scheduler needs the annotation to count these volumes.
func updatedCSINode(stored *storage.CSINode, n *v1.Node, added *csi.Driver, removed string) *storage.CSINode {
	next := &storage.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n.Name}, Spec: storage.CSINodeSpec{Drivers: []storage.CSINodeDriver{}}}
	if stored != nil {
		next = stored.DeepCopy()
	}
	next.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID}}
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	next.Annotations[v1.MigratedPluginsAnnotationKey] = strings.Join(intree.Plugins(), ",")
	next.Spec.Drivers = slices.DeleteFunc(next.Spec.Drivers, func(d storage.CSINodeDriver) bool { return d.Name == removed })
	if added == nil {
		return next
	}
	entry := storage.CSINodeDriver{Name: added.Name, NodeID: added.NodeID, TopologyKeys: slices.Sorted(maps.Keys(added.Topology))}
	if added.MaxVolumes > 0 {
		entry.Allocatable = &storage.VolumeNodeResources{Count: new(int32(min(added.MaxVolumes, math.MaxInt32)))}
	}
	at := slices.IndexFunc(next.Spec.Drivers, func(d storage.CSINodeDriver) bool { return d.Name == added.Name })
	if at < 0 {
		next.Spec.Drivers = append(next.Spec.Drivers, entry)
	} else {
		next.Spec.Drivers[at] = entry
	}
	return next
}

// checkDriver returns the reason why a driver cannot be published for the Node n, or "".
func checkDriver(n *v1.Node, d *csi.Driver) string {
	if d.NodeID == "" {
		return fmt.Sprintf("CSI driver %s reported an empty node ID for this node", d.Name)
	}
	for _, key := range slices.Sorted(maps.Keys(d.Topology)) {
		value := d.Topology[key]
		if len(validation.IsQualifiedName(key))+len(validation.IsValidLabelValue(value)) > 0 {
			return fmt.Sprintf("CSI driver %s reported the topology %q:%q, which is not a valid label", d.Name, key, value)
		}
		if stored, exists := n.Labels[key]; exists && stored != value {
			return fmt.Sprintf("detected topology value collision: CSI driver %s reported %q:%q but existing label is %q:%q", d.Name, key, value, key, stored)
		}
	}
	return ""
}

// driverPatch returns a patch of the labels and annotations of n. If added is not nil, the patch
// adds this driver. If removed is not "", the patch removes the driver with this name. driverPatch
// returns nil if the patch would change nothing. Like the kubelet, it never removes labels.
func driverPatch(n *v1.Node, added *csi.Driver, removed string) []byte {
	ids := map[string]string{}
	if err := json.Unmarshal([]byte(n.Annotations[AnnotationNodeIDs]), &ids); err != nil {
		ids = map[string]string{} // an invalid annotation is replaced
	}
	labels := map[string]string{}
	delete(ids, removed)
	if added != nil {
		ids[added.Name] = added.NodeID
		for key, value := range added.Topology {
			if n.Labels[key] != value {
				labels[key] = value
			}
		}
	}
	stored, exists := n.Annotations[AnnotationNodeIDs]
	annotations := map[string]any{AnnotationNodeIDs: nil} // null removes the key
	if len(ids) > 0 {
		annotations[AnnotationNodeIDs] = mergepatch.Encode(ids)
	}
	if isUnchanged := exists == (len(ids) > 0) && (!exists || stored == annotations[AnnotationNodeIDs]); isUnchanged && len(labels) == 0 {
		return nil
	}
	return []byte(mergepatch.Encode(map[string]any{"metadata": map[string]any{"annotations": annotations, "labels": labels}}))
}
