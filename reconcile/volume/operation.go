package volume

import (
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest/volumeplugin"
	"podd/reconcile/volume/claim"
	"podd/reconcile/volume/csi"
	"podd/reconcile/volume/disk"
	"podd/runtime/safepath"
)

// An Operation describes a completed operation on a volume, with the kubelet's names.
type Operation struct {
	PodUID types.UID
	Volume string // name of the volume in the pod
	Plugin string // name of the volume plugin, such as "kubernetes.io/empty-dir"
	Name   string // name of the operation, such as "volume_mount"
	Took   time.Duration
	Err    error // nil if the operation succeeded
}

// Names of operations. The operations on a block device have different names than the operations on
// a mount.
const (
	OperationMount    = "volume_mount"
	operationUnmount  = "volume_unmount"
	operationMap      = "map_volume"
	operationUnmap    = "unmap_volume"
	operationSetGroup = "volume_apply_access_control"
)

// reportOperation calls OnOperation with o and its result. began is the time at which the operation began.
func (d Dir) reportOperation(o Operation, began time.Time, err error) {
	if d.OnOperation != nil {
		o.Took, o.Err = time.Since(began), err
		d.OnOperation(o)
	}
}

// plugin returns the name of the plugin of a volume, and whether the volume is a block device.
func (p *podDir) plugin(v *v1.Volume) (name string, block bool) {
	if p.content == nil {
		return volumeplugin.Name(v, nil), false
	}
	if c := p.content.CSI(v); c != nil {
		return volumeplugin.CSI(c.Driver), c.Block
	}
	if c := p.content.Claim(v); c != nil {
		return volumeplugin.Name(v, c.Volume), isBlock(c.Spec.VolumeMode)
	}
	return volumeplugin.Name(v, nil), false
}

// unmounts returns the operations that are necessary to remove the volumes of a pod, by the name of
// the volume. It reads the volumes from the pod's directory. So the result omits volumes without a
// directory, such as a hostPath.
func (d Dir) unmounts(uid types.UID) map[string]Operation {
	volumes := filepath.Join(d.Root, string(uid), volumesDir)
	plugins, _ := safepath.Names(volumes)
	operations := map[string]Operation{}
	for _, plugin := range plugins {
		names, _ := safepath.Names(filepath.Join(volumes, plugin))
		for _, name := range names {
			switch plugin {
			case csi.PodPluginDir, disk.LinksDir: // the name is not that of the volume, or the volume also has a directory of its plugin
			case claim.PluginDir, ephemeralPlugin:
				if _, exists := operations[name]; !exists && !strings.Contains(name, ".") { // other links of a volume contain a dot
					operations[name] = Operation{Plugin: volumeplugin.Local, Name: operationUnmount}
				}
			default:
				operations[name] = Operation{Plugin: strings.Replace(plugin, "~", "/", 1), Name: operationUnmount}
			}
		}
	}
	if d.CSI != nil {
		for _, v := range d.CSI.PodVolumes(uid) {
			o := Operation{Plugin: volumeplugin.CSI(v.Driver), Name: operationUnmount}
			if v.Block {
				o.Name = operationUnmap
			}
			operations[v.Name] = o
		}
	}
	for name, o := range operations {
		o.PodUID, o.Volume = uid, name
		operations[name] = o
	}
	return operations
}
