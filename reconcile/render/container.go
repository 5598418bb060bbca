package render

import (
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
	"podd/manifest/refs"
	"podd/runtime"
)

// The kinds of containers in a pod, for runtime.AnnotationContainerKind.
const (
	kindInit      = "init"
	kindSidecar   = "sidecar"
	kindContainer = "container"
	kindEphemeral = "ephemeral"
)

// ContainerInput is the input of Container, which does not modify it.
type ContainerInput struct {
	Pod *manifest.Pod // required
	// Container is the init, regular or ephemeral container of Pod to create; required.
	Container *v1.Container
	Node      Node
	// Refs contains the objects to which environment variables refer. It may be nil.
	Refs *refs.Resolved
	// Attempt is the attempt number of the container in this pod, from 0. Restarts is the restart
	// count. It is less than Attempt if the runtime rejected an attempt number.
	Attempt, Restarts uint32
	// Image is the runtime's ID or digest of the image. If Image is "", the runtime gets the image
	// name in the manifest. The config contains this name in both cases.
	Image string
	// ImageUser is the user of the image; nil if it is unknown. In that case, the runtime
	// determines the user.
	ImageUser *runtime.ImageUser
	// PodIPs is status.podIPs, the primary address first. It may be empty for a host-network pod,
	// because such a pod has the node's addresses.
	PodIPs []string
	// Volumes contains the host path of every volume that the container mounts or uses as a block
	// device, by the name of the volume.
	Volumes map[string]string
	// Relabelable contains the names of the volumes in whose mounts the label of a file can be changed. It
	// may be nil if SELinux is disabled.
	Relabelable map[string]bool
	// SubPaths contains the host paths for volumeMounts with subPath or subPathExpr, by index
	// in volumeMounts. The caller must have checked that the paths are within their volumes.
	SubPaths map[int]string
	// EnvFiles contains the text of each file that EnvFiles returns for the container. A missing
	// file has no entry.
	EnvFiles map[EnvFile]string
	// Images contains the runtime's reference to the image of each image volume, by the name of the
	// volume.
	Images map[string]string
	// Devices contains the devices of device plugins that are allocated to the container,
	// sorted by resource.
	Devices []DeviceGrant
	// HostsFile is the host path of the pod's /etc/hosts, and TerminationLog the host path of
	// the file for the container's termination message; "" means no mount.
	HostsFile, TerminationLog string
	// UserIDs are the host IDs of the pod's user namespace; see SandboxInput.UserIDs.
	UserIDs runtime.IDRange
	// BackoffStep is the step of the crash back-off that preceded this start.
	BackoffStep int
	// PodRestarts is the value of runtime.AnnotationPodRestarts.
	PodRestarts uint32
	// TargetID is the ID of the container whose process namespace an ephemeral container shares; ""
	// for none. It has no effect if the containers of the pod share one process namespace.
	TargetID string
	// Kind is the kind of the container, and Index is its index in the list of its kind. Init
	// containers and sidecars are in the same list. If Kind is "", both values are taken from Pod.
	Kind  string
	Index int
}

// Container returns the config of a container. The error contains the name of the container and of
// the invalid variable, volume or field. A retry with the same input fails with the same error.
func Container(in ContainerInput) (*cri.ContainerConfig, error) {
	c := in.Container
	if in.Kind == "" {
		in.Kind, in.Index = kindOf(in.Pod.Object, c.Name)
	}
	if err := verifyNonRoot(&in); err != nil {
		return nil, err
	}
	if err := checkHostIDs(&in.Pod.Object.Spec, in.UserIDs); err != nil {
		return nil, fmt.Errorf("mapping the users of container %q: %w", c.Name, err)
	}
	env, err := newEnvironment(&in)
	if err != nil {
		return nil, err
	}
	devs := newPluginDevices(in.Devices)
	env.prepend(devs.envs)
	mounts, err := mounts(&in, devs.mounts)
	if err != nil {
		return nil, err
	}
	devices, err := blockDevices(&in)
	if err != nil {
		return nil, err
	}
	return &cri.ContainerConfig{
		Metadata:    &cri.ContainerMetadata{Name: c.Name, Attempt: in.Attempt},
		Image:       imageSpec(&in),
		Command:     expandAll(c.Command, env.lookup),
		Args:        expandAll(c.Args, env.lookup),
		WorkingDir:  c.WorkingDir,
		Envs:        env.vars,
		Mounts:      mounts,
		Devices:     append(devs.devices, devices...),
		CDIDevices:  devs.cdi,
		Labels:      containerLabels(&in),
		Annotations: mergeInto(devs.annotations, containerAnnotations(&in)),
		LogPath:     logPath(c.Name, in.Attempt),
		Stdin:       c.Stdin,
		StdinOnce:   c.StdinOnce,
		Tty:         c.TTY,
		StopSignal:  stopSignal(c),
		Linux: &cri.LinuxContainerConfig{
			Resources:       ContainerResources(in.Node, in.Pod.Object, c),
			SecurityContext: containerSecurity(&in),
		},
	}, nil
}

// stopSignal returns the stop signal of the container. If the container has none, the runtime uses
// the stop signal of the image.
func stopSignal(c *v1.Container) cri.Signal {
	if c.Lifecycle == nil || c.Lifecycle.StopSignal == nil {
		return cri.Signal_SIGNAL_RUNTIME_DEFAULT
	}
	name := strings.NewReplacer("+", "PLUS", "-", "MINUS").Replace(string(*c.Lifecycle.StopSignal))
	return cri.Signal(cri.Signal_value["SIGNAL_"+name])
}

// logPath returns the path of a container's log file, relative to the sandbox's log
// directory.
func logPath(container string, attempt uint32) string {
	return container + "/" + strconv.FormatUint(uint64(attempt), 10) + ".log"
}

// kindOf returns the kind and the index of the container with this name, or "" and -1 if the pod
// has no such container.
func kindOf(pod *v1.Pod, name string) (kind string, index int) {
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.Name == name {
			if manifest.IsSidecar(c) {
				return kindSidecar, i
			}
			return kindInit, i
		}
	}
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return kindContainer, i
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			return kindEphemeral, i
		}
	}
	return "", -1
}

func imageSpec(in *ContainerInput) *cri.ImageSpec {
	imageRef := in.Image
	if imageRef == "" {
		imageRef = in.Container.Image
	}
	return &cri.ImageSpec{Image: imageRef, UserSpecifiedImage: in.Container.Image}
}

// podIPs returns the pod's addresses. For a host-network pod, these are the node's addresses.
func (in *ContainerInput) podIPs() []string {
	if len(in.PodIPs) == 0 && in.Pod.Object.Spec.HostNetwork {
		return in.Node.HostIPs
	}
	return in.PodIPs
}
