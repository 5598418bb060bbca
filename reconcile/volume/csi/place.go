package csi

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"podd/manifest"
	"podd/reconcile/plugins"
)

const (
	// PodPlugin is the kubelet's name of the directory of a pod's CSI volumes, in
	// its volumes and in DevicesDir.
	PodPlugin = "kubernetes.io~csi"
	// DevicesDir is, in a pod's directory, that of its block devices.
	DevicesDir = "volumeDevices"
	// Target is, in the directory of a volume, what the driver mounts it at.
	Target = "mount"

	plugin    = "kubernetes.io/csi"
	globalDir = "globalmount"
)

// Volume is a volume of a pod, with what its driver is to be told of it.
type Volume struct {
	*manifest.CSI
	Pod  *manifest.Pod
	Name string // of the pod's volume
}

// spec is the kubelet's name of a volume: that of the PersistentVolume, where it is
// one.
func (v Volume) spec() string {
	if v.Volume != "" {
		return v.Volume
	}
	return v.Name
}

func (v Volume) persistent() bool { return v.Volume != "" }

// id is the volume for its driver. One in a pod has a handle of the kubelet's.
func (v Volume) id() Use {
	if v.persistent() {
		return Use{v.Driver, v.Handle}
	}
	return Use{v.Driver, fmt.Sprintf("csi-%x", sha256.Sum256([]byte(string(v.Pod.UID)+v.Name)))}
}

func (v Volume) check() error {
	switch {
	case !manifest.SafeUID(v.Pod.UID):
		return fmt.Errorf("pod uid %q cannot be a directory name", v.Pod.UID)
	case len(validation.IsDNS1123Subdomain(v.spec())) > 0:
		return fmt.Errorf("%q is no name of a volume", v.spec())
	case v.persistent() && v.Handle == "":
		return fmt.Errorf("the PersistentVolume %q has no volumeHandle", v.Volume)
	case v.persistent() && len(v.Handle) > manifest.LongestHandle:
		return fmt.Errorf("the volumeHandle of the PersistentVolume %q has %d bytes; podd takes %d", v.Volume, len(v.Handle), manifest.LongestHandle)
	case v.Block && (v.Volume == "staging" || v.Volume == "publish"):
		return fmt.Errorf("a block device cannot be of a PersistentVolume of the name %q, as that of a directory; rename it", v.Volume)
	case v.Block && !v.persistent():
		return errors.New("a volume that is written in a pod is no block device")
	}
	if err := checkDriver(v.Driver); err != nil {
		return err
	}
	return v.checkLifecycle()
}

func (v Volume) lifecycle() string {
	if v.persistent() {
		return persistent
	}
	return ephemeral
}

// checkLifecycle is the kubelet's look at what the driver is for.
func (v Volume) checkLifecycle() error {
	mode := v.lifecycle()
	switch {
	case v.Wishes == nil && v.persistent():
		return nil
	case v.Wishes == nil:
		return fmt.Errorf("volume mode %q not supported by driver %s (no CSIDriver object)", mode, v.Driver)
	}
	for _, m := range v.Wishes.VolumeLifecycleModes {
		if string(m) == mode {
			return nil
		}
	}
	return fmt.Errorf("volume mode %q not supported by driver %s (only supports %q)", mode, v.Driver, v.Wishes.VolumeLifecycleModes)
}

// place is where a volume is on this machine.
type place struct {
	staging   string // where the driver has it for all pods
	stageData string // the directory of the facts about that
	target    string // where it has it for a pod
	data      string // the directory of the facts about that
	state     string // their key of what came of it
	name      string // their key of the pod's name for it
	link      string // of a block device: where the pod has it
}

func (d *Drivers) registry() string { return filepath.Join(d.o.Root, plugins.Dir) }

func (d *Drivers) pods() string { return filepath.Join(d.o.Root, "pods") }

func (d *Drivers) plugins() string { return filepath.Join(d.o.Root, "plugins", plugin) }

func (d *Drivers) devices() string { return filepath.Join(d.plugins(), DevicesDir) }

func (d *Drivers) placeOf(v Volume) place {
	if v.Block {
		return d.device(v.Volume, v.Pod.UID)
	}
	return d.mount(v.id(), v.spec(), v.Pod.UID)
}

func (d *Drivers) mount(u Use, spec string, pod types.UID) place {
	dir := filepath.Join(d.pods(), string(pod), "volumes", PodPlugin, spec)
	stage := filepath.Join(d.plugins(), u.Driver, fmt.Sprintf("%x", sha256.Sum256([]byte(u.Handle))))
	return place{staging: filepath.Join(stage, globalDir), stageData: stage, target: filepath.Join(dir, Target), data: dir, state: keyState, name: keyName}
}

func (d *Drivers) device(volume string, pod types.UID) place {
	data := filepath.Join(d.devices(), volume, "data")
	return place{
		staging: filepath.Join(d.devices(), "staging", volume), stageData: data,
		target: filepath.Join(d.devices(), "publish", volume, string(pod)), data: data,
		state: keyState + "." + string(pod), name: keyName + "." + string(pod),
		link: filepath.Join(d.pods(), string(pod), DevicesDir, PodPlugin, volume),
	}
}
