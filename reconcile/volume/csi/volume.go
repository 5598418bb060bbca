package csi

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/reconcile/plugins"
	"podd/reconcile/volume/selinux"
)

const (
	// PodPluginDir is the name of the directory of a pod's CSI volumes, as in the kubelet. The
	// directory "volumes" of the pod and DevicesDir contain a directory with this name.
	PodPluginDir = "kubernetes.io~csi"
	// DevicesDir is the name of the directory of block devices in a pod's directory.
	DevicesDir = "volumeDevices"
	// targetName is the name of the mount point in the directory of a volume.
	targetName = "mount"

	pluginName = "kubernetes.io/csi"
	globalDir  = "globalmount"
)

// A Volume is a volume of a pod, together with the parameters for its driver.
type Volume struct {
	*refs.CSIVolume
	Pod  *manifest.Pod
	Name string // name of the volume in the pod
	// SELinux is the label of the mounts. It has no effect on a block device.
	SELinux selinux.Mount
}

// specName returns the name that the kubelet uses for the volume. This is the name of the
// PersistentVolume, or, for an inline volume, the name of the volume in the pod.
func (v Volume) specName() string {
	if v.Volume != "" {
		return v.Volume
	}
	return v.Name
}

// isPersistent reports whether v is a PersistentVolume. Otherwise, v is an inline volume.
func (v Volume) isPersistent() bool { return v.Volume != "" }

// id returns the driver and the handle of the volume. The handle of an inline volume is generated
// as in the kubelet.
func (v Volume) id() VolumeID {
	if v.isPersistent() {
		return VolumeID{v.Driver, v.Handle}
	}
	return VolumeID{v.Driver, fmt.Sprintf("csi-%x", sha256.Sum256([]byte(string(v.Pod.UID)+v.Name)))}
}

// check returns an error if the names in v are not valid in paths and requests.
func (v Volume) check() error {
	switch {
	case !manifest.IsSafeUID(v.Pod.UID):
		return fmt.Errorf("pod uid %q cannot be a directory name", v.Pod.UID)
	case len(validation.IsDNS1123Subdomain(v.specName())) > 0:
		return fmt.Errorf("%q is not a valid volume name", v.specName())
	case v.isPersistent() && v.Handle == "":
		return fmt.Errorf("the PersistentVolume %q has no volumeHandle", v.Volume)
	case v.isPersistent() && len(v.Handle) > manifest.MaxVolumeHandle:
		return fmt.Errorf("the volumeHandle of the PersistentVolume %q has %d bytes, more than %d", v.Volume, len(v.Handle), manifest.MaxVolumeHandle)
	case v.Block && (v.Volume == "staging" || v.Volume == "publish"):
		return fmt.Errorf("the PersistentVolume %q of a block device has the name of a directory that podd uses; rename the PersistentVolume", v.Volume)
	case v.Block && !v.isPersistent():
		return errors.New("an inline volume cannot be a block device")
	}
	if err := checkDriver(v.Driver); err != nil {
		return err
	}
	return v.checkLifecycle()
}

// lifecycle returns the lifecycle mode of the volume.
func (v Volume) lifecycle() string {
	if v.isPersistent() {
		return lifecyclePersistent
	}
	return lifecycleEphemeral
}

// checkLifecycle returns an error in the kubelet's wording if the driver does not support the
// lifecycle mode of the volume.
func (v Volume) checkLifecycle() error {
	mode := v.lifecycle()
	switch {
	case v.DriverSpec == nil && v.isPersistent():
		return nil
	case v.DriverSpec == nil:
		return fmt.Errorf("volume mode %q not supported by driver %s (no CSIDriver object)", mode, v.Driver)
	}
	for _, m := range v.DriverSpec.VolumeLifecycleModes {
		if string(m) == mode {
			return nil
		}
	}
	return fmt.Errorf("volume mode %q not supported by driver %s (only supports %q)", mode, v.Driver, v.DriverSpec.VolumeLifecycleModes)
}

// volumePaths contains the paths of a volume on this node, and the keys of its data in the data
// file.
type volumePaths struct {
	stagingPath  string // path at which the volume is staged
	stageDataDir string // directory of the data file of the staged volume
	target       string // path at which the volume is published for the pod
	dataDir      string // directory of the data file of the published volume
	stateKey     string // key of the state in the data file of the published volume
	nameKey      string // key of the name of the volume in the pod, in the same data file
	link         string // path of the link in the pod's directory; only for block devices
}

// deviceDataDir returns the directory of the data file if the volume is a block device, or "".
func (p volumePaths) deviceDataDir() string {
	if p.link == "" {
		return ""
	}
	return p.dataDir
}

func (d *Drivers) registryDir() string { return filepath.Join(d.o.Root, plugins.DirName) }

func (d *Drivers) podsDir() string { return filepath.Join(d.o.Root, "pods") }

func (d *Drivers) pluginsDir() string { return filepath.Join(d.o.Root, "plugins", pluginName) }

func (d *Drivers) devicesDir() string { return filepath.Join(d.pluginsDir(), DevicesDir) }

// pathsFor returns the paths of v.
func (d *Drivers) pathsFor(v Volume) volumePaths {
	if v.Block {
		return d.devicePaths(v.Volume, v.Pod.UID)
	}
	return d.mountPaths(v.id(), v.specName(), v.Pod.UID)
}

// mountPaths returns the paths of a volume with a file system. specName is the kubelet's name of
// the volume.
func (d *Drivers) mountPaths(id VolumeID, specName string, pod types.UID) volumePaths {
	dir := filepath.Join(d.podsDir(), string(pod), "volumes", PodPluginDir, specName)
	stage := filepath.Join(d.pluginsDir(), id.Driver, fmt.Sprintf("%x", sha256.Sum256([]byte(id.Handle))))
	return volumePaths{stagingPath: filepath.Join(stage, globalDir), stageDataDir: stage, target: filepath.Join(dir, targetName), dataDir: dir, stateKey: keyState, nameKey: keyPodVolume}
}

// devicePaths returns the paths of a block device. volume is the name of the PersistentVolume.
func (d *Drivers) devicePaths(volume string, pod types.UID) volumePaths {
	dataDir := filepath.Join(d.devicesDir(), volume, "data")
	return volumePaths{
		stagingPath: filepath.Join(d.devicesDir(), "staging", volume), stageDataDir: dataDir,
		target: filepath.Join(d.devicesDir(), "publish", volume, string(pod)), dataDir: dataDir,
		stateKey: keyState + "." + string(pod), nameKey: keyPodVolume + "." + string(pod),
		link: filepath.Join(d.podsDir(), string(pod), DevicesDir, PodPluginDir, volume),
	}
}
