package render

import (
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
	"podd/runtime"
)

// The kinds of container in a pod; they go into runtime.AnnotationKind.
const (
	KindInit      = "init"
	KindSidecar   = "sidecar"
	KindContainer = "container"
	KindEphemeral = "ephemeral"
)

// ContainerInput is what one container's config is made from. Nothing of it is
// written to.
type ContainerInput struct {
	Pod *manifest.Pod // required
	// Container is the one of Pod's init, regular or ephemeral containers to make;
	// required.
	Container *v1.Container
	Node      Node
	// Supply has the objects that variables are read from; may be nil.
	Supply *manifest.Supply
	// Attempt is the container's restart count: its number among those of this
	// name in this pod, from 0.
	Attempt uint32
	// Image is the image as the runtime resolved it, an id or digest; "" means
	// the name in the manifest, which goes along in any case.
	Image string
	// ImageUser is who the image says it runs as; nil when nobody looked, and
	// the runtime then looks by itself.
	ImageUser *runtime.ImageUser
	// PodIPs are status.podIPs, the primary first. A host-network pod's may be
	// empty: they are the node's.
	PodIPs []string
	// Volumes has the host path of every volume that the container mounts or has
	// as a device, by the volume's name.
	Volumes map[string]string
	// SubPaths has the host path of what a volumeMount with subPath or
	// subPathExpr mounts, by its index in volumeMounts. Whoever opened it has
	// made sure that it lies within the volume.
	SubPaths map[int]string
	// Images has for each volume that is an image the reference that the runtime
	// knows it by.
	Images map[string]string
	// Devices are those of device plugins that the container was given, in the order
	// of their resources.
	Devices []Device
	// HostsFile is the host path of the pod's /etc/hosts, and TerminationLog
	// that of the container's termination message; "" mounts nothing.
	HostsFile, TerminationLog string
	// UserIDs is that of the container's sandbox, see SandboxInput.
	UserIDs uint32
	// BackoffStep is the crash back-off step that this start was made at.
	BackoffStep int
	// TargetID is the container whose processes an ephemeral one is to see; "" for
	// none. Where the pod has processes in common, it sees those.
	TargetID string
	// Kind and Index say what the container is and where it stands in the list
	// of its kind, init containers and sidecars in one; an empty Kind means:
	// find out from Pod.
	Kind  string
	Index int
}

// Container is the config of one container. The error names the container and
// the variable, volume or field that cannot be made; trying again helps only
// once the input differs.
func Container(in ContainerInput) (*cri.ContainerConfig, error) {
	c := in.Container
	if in.Kind == "" {
		in.Kind, in.Index = KindOf(in.Pod.Spec, c.Name)
	}
	if err := verifyNonRoot(&in); err != nil {
		return nil, err
	}
	if err := checkIDs(&in.Pod.Spec.Spec, in.UserIDs); err != nil {
		return nil, fmt.Errorf("mapping the users of container %q: %w", c.Name, err)
	}
	env, err := newEnvironment(&in)
	if err != nil {
		return nil, err
	}
	devs := newPluginDevices(in.Devices)
	env.precede(devs.envs)
	mounts, err := mounts(&in, devs.mounts)
	if err != nil {
		return nil, err
	}
	devices, err := devices(&in)
	if err != nil {
		return nil, err
	}
	return &cri.ContainerConfig{
		Metadata:    &cri.ContainerMetadata{Name: c.Name, Attempt: in.Attempt},
		Image:       image(&in),
		Command:     expandAll(c.Command, env.lookup),
		Args:        expandAll(c.Args, env.lookup),
		WorkingDir:  c.WorkingDir,
		Envs:        env.vars,
		Mounts:      mounts,
		Devices:     append(devs.devices, devices...),
		CDIDevices:  devs.cdi,
		Labels:      containerLabels(&in),
		Annotations: over(devs.annotations, containerAnnotations(&in)),
		LogPath:     LogPath(c.Name, in.Attempt),
		Stdin:       c.Stdin,
		StdinOnce:   c.StdinOnce,
		Tty:         c.TTY,
		StopSignal:  stopSignal(c),
		Linux: &cri.LinuxContainerConfig{
			Resources:       ContainerResources(in.Node, in.Pod.Spec, c),
			SecurityContext: containerSecurity(&in),
		},
	}, nil
}

// stopSignal is what ends the container; without one its image says that.
func stopSignal(c *v1.Container) cri.Signal {
	if c.Lifecycle == nil || c.Lifecycle.StopSignal == nil {
		return cri.Signal_SIGNAL_RUNTIME_DEFAULT
	}
	name := strings.NewReplacer("+", "PLUS", "-", "MINUS").Replace(string(*c.Lifecycle.StopSignal))
	return cri.Signal(cri.Signal_value["SIGNAL_"+name])
}

// LogPath is a container's log file, below the sandbox's log directory.
func LogPath(container string, attempt uint32) string {
	return container + "/" + strconv.FormatUint(uint64(attempt), 10) + ".log"
}

// KindOf finds the container's kind and place in the pod; "" and -1 when it has
// none of that name.
func KindOf(pod *v1.Pod, name string) (kind string, index int) {
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.Name == name {
			if manifest.IsSidecar(c) {
				return KindSidecar, i
			}
			return KindInit, i
		}
	}
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return KindContainer, i
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			return KindEphemeral, i
		}
	}
	return "", -1
}

func image(in *ContainerInput) *cri.ImageSpec {
	ref := in.Image
	if ref == "" {
		ref = in.Container.Image
	}
	return &cri.ImageSpec{Image: ref, UserSpecifiedImage: in.Container.Image}
}

// podIPs are the pod's addresses, which are the node's on the node's network.
func (in *ContainerInput) podIPs() []string {
	if len(in.PodIPs) == 0 && in.Pod.Spec.Spec.HostNetwork {
		return in.Node.HostIPs
	}
	return in.PodIPs
}
