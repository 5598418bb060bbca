package effect

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
	"podd/reconcile/device"
	"podd/reconcile/device/allocation"
	"podd/reconcile/render"
	"podd/reconcile/result"
	"podd/runtime"
)

// Runtime contains the calls of a CRI runtime that effects use. Stopping or removing a sandbox or
// container that does not exist is not an error.
type Runtime interface {
	RunPodSandbox(ctx context.Context, config *cri.PodSandboxConfig, handler string) (string, error)
	PodSandboxStatus(ctx context.Context, id string) (runtime.Sandbox, error)
	// ReadySandboxes returns the ready sandboxes with a pod's name, including the sandboxes of
	// other agents.
	ReadySandboxes(ctx context.Context, pod types.NamespacedName) ([]runtime.Sandbox, error)
	StopPodSandbox(ctx context.Context, id string) error
	RemovePodSandbox(ctx context.Context, id string) error
	// UpdatePodSandboxResources announces new resources of a pod, without its overhead. The error is
	// runtime.ErrUnimplemented if the runtime does not implement the call.
	UpdatePodSandboxResources(ctx context.Context, id string, overhead, resources *cri.LinuxContainerResources) error
	CreateContainer(ctx context.Context, sandboxID string, config *cri.ContainerConfig, sandbox *cri.PodSandboxConfig) (string, error)
	StartContainer(ctx context.Context, id string) error
	StopContainer(ctx context.Context, id string, grace time.Duration) error
	RemoveContainer(ctx context.Context, id string) error
	ContainerStatus(ctx context.Context, id string) (runtime.Container, error)
	UpdateContainerResources(ctx context.Context, id string, linux *cri.LinuxContainerResources) error
	// ContainerResources returns the resources of a container, or nil if the runtime does not
	// report them.
	ContainerResources(ctx context.Context, id string) (*runtime.Resources, error)
	// ContainerMemory returns the memory usage of a container in bytes.
	ContainerMemory(ctx context.Context, id string) (int64, error)
	SandboxContainers(ctx context.Context, sandboxID string) ([]runtime.Container, error)
	// ImageStatus returns an image. exists reports whether the runtime has the image.
	ImageStatus(ctx context.Context, image string) (found runtime.Image, exists bool, err error)
	// ExecSync runs a command and keeps up to limit bytes of each of its output streams.
	ExecSync(ctx context.Context, id string, command []string, timeout time.Duration, limit int) (runtime.ExecResult, error)
}

// Images provides images for pods.
type Images interface {
	// Ensure pulls an image unless the pod may use the image that is present. Ensure calls onPull
	// before it contacts a registry, and before it waits for a pull that is in progress. The error
	// of a failed pull is a *runtime.PullError. During a back-off, the error is wrapped in a
	// *result.RetryLaterError.
	Ensure(ctx context.Context, r ImageRequest, onPull func()) (result.Image, error)
	// Repair removes a damaged image, so that the next call of Ensure pulls it again. ref is the
	// reference that Ensure has returned for image. cause is the error of creating a container. The
	// returned error wraps cause, and describes what Repair has done or why the image cannot be
	// repaired.
	Repair(ctx context.Context, image, ref, policy string, cause error) error
	// EndRepair records that the image with this reference is not damaged any more, because a container
	// was created from it.
	EndRepair(ref string)
}

// An ImageRequest describes an image that a pod needs.
type ImageRequest struct {
	// Image is the name of the image, and Policy its pull policy.
	Image, Policy string
	// Secrets contains the existing Secrets of the pod's imagePullSecrets.
	Secrets []*v1.Secret
	// Source is the name of the pod's source. Secrets are objects of the same source.
	Source string
	// Pod is the namespace and name of the pod at its source, and PodUID its UID.
	Pod    types.NamespacedName
	PodUID types.UID
	// ServiceAccount is the name of the pod's service account. It is "" if no API server issues
	// tokens for the account.
	ServiceAccount string
}

// Disk manages the pod directories with the volumes and files of pods.
type Disk interface {
	// Prepare creates the pod's volumes, updates the files in them to their specified
	// content, and returns the host paths of the volumes by name.
	Prepare(ctx context.Context, pod *manifest.Pod, content render.Volumes) (map[string]string, error)
	// Relabelable returns the names of the volumes in whose mounts the SELinux label of a file can be
	// changed. volumes contains the host paths of the volumes. Volumes outside the pod directories are
	// not in the result.
	Relabelable(volumes map[string]string) (map[string]bool, error)
	// BindSubPaths opens the parts of the volumes that a container mounts by subPath, and
	// returns their host paths by the index of the volumeMount. volumes contains the host
	// paths of the volumes. Symbolic links in a volume cannot lead out of the volume.
	BindSubPaths(ctx context.Context, pod *manifest.Pod, container string, volumes map[string]string, subs []render.SubPath) (map[int]string, error)
	// ReadEnvFiles reads files with variables from emptyDir volumes. volumes contains the host
	// paths of the volumes. A missing file has no entry in the result. Symbolic links in a volume
	// cannot lead out of the volume.
	ReadEnvFiles(pod *manifest.Pod, volumes map[string]string, files []render.EnvFile) (map[render.EnvFile]string, error)
	// WriteHosts writes the pod's hosts file and returns its path.
	WriteHosts(uid types.UID, text string) (path string, err error)
	// CreateMessageFile creates an empty file for the termination message of a container. It
	// creates one file for each attempt of the container, and returns the path of the file.
	CreateMessageFile(uid types.UID, container string, attempt uint32) (path string, err error)
	// ReadMessage returns the end of the content of the file that CreateMessageFile created. The
	// error is fs.ErrNotExist if the file does not exist.
	ReadMessage(uid types.UID, container string, attempt uint32) (string, error)
	// Check returns an error if Prepare would fail for the pod after all earlier versions of the
	// pod have stopped. earlierUIDs contains the UIDs of these versions. Check changes nothing.
	Check(ctx context.Context, pod *manifest.Pod, content render.Volumes, earlierUIDs []types.UID) error
	// Release removes the volumes and the hosts file, and keeps the pod's directory.
	Release(ctx context.Context, uid types.UID) error
	// Remove removes the pod's directory and everything in it.
	Remove(ctx context.Context, uid types.UID) error
}

// LogsAndCgroups manages the logs, the links to logs and the cgroups of pods.
type LogsAndCgroups interface {
	// NextAttempts returns the lowest free attempt number of each container that has log files.
	// This number is one more than the highest attempt number of the files.
	NextAttempts(pod *manifest.Pod) (map[string]uint32, error)
	// MakeLogDirs creates the log directory of a pod. If container is not "", it also creates the
	// log directory of that container. CRI requires that the agent create these directories.
	MakeLogDirs(pod *manifest.Pod, container string) error
	// HandleStart creates a link to the log of a started container in the directory where log
	// agents expect it. It keeps the logs of this attempt, of the previous attempt and of all
	// attempts from oldest on. It removes all older logs of the container.
	HandleStart(pod *manifest.Pod, container, id string, attempt, oldest uint32) error
	// LastLines returns the last lines that a container logged in one attempt, or "" if the
	// container logged nothing.
	LastLines(ctx context.Context, key types.NamespacedName, uid types.UID, container string, attempt uint32) (string, error)
	// RemoveCgroup removes the cgroup of a pod that has no running container.
	RemoveCgroup(ctx context.Context, uid types.UID) error
	// Remove removes the logs, links and cgroups of a pod that no longer exists.
	Remove(ctx context.Context, key types.NamespacedName, uid types.UID) error
}

// Devices provides the devices of device plugins for pods, as a *device.Manager does.
type Devices interface {
	// Acquire allocates the devices that the containers of a pod request, unless they were
	// allocated before, and returns the devices of one container. The caller must call done when
	// the container has been created or creating it has failed.
	//
	// If container is "", Acquire only allocates the devices and returns none. In that case the
	// caller must call done when the sandbox has been created or creating it has failed.
	Acquire(ctx context.Context, pod *manifest.Pod, container string) (grants []device.Grant, done func(), err error)
	// Allocated returns the devices that are allocated to the containers of a pod; nil if there are
	// none.
	Allocated(pod *manifest.Pod) allocation.IDs
	// PreStart prepares devices for the start of a container.
	PreStart(ctx context.Context, container string, grants []device.Grant) error
}
