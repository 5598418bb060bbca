package effect

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
	"podd/reconcile/device"
	"podd/reconcile/render"
	"podd/reconcile/result"
	"podd/runtime"
)

// Runtime is the part of a CRI runtime that effects use. Stopping or removing something
// that does not exist succeeds.
type Runtime interface {
	RunPodSandbox(ctx context.Context, config *cri.PodSandboxConfig, handler string) (string, error)
	PodSandboxStatus(ctx context.Context, id string) (runtime.Sandbox, error)
	// ReadySandboxes returns the ready sandboxes of a pod's name, including those that
	// others made.
	ReadySandboxes(ctx context.Context, pod types.NamespacedName) ([]runtime.Sandbox, error)
	StopPodSandbox(ctx context.Context, id string) error
	RemovePodSandbox(ctx context.Context, id string) error
	CreateContainer(ctx context.Context, sandboxID string, config *cri.ContainerConfig, sandbox *cri.PodSandboxConfig) (string, error)
	StartContainer(ctx context.Context, id string) error
	StopContainer(ctx context.Context, id string, grace time.Duration) error
	RemoveContainer(ctx context.Context, id string) error
	ContainerStatus(ctx context.Context, id string) (runtime.Container, error)
	UpdateContainerResources(ctx context.Context, id string, linux *cri.LinuxContainerResources) error
	// ContainerResources returns nil if the runtime does not report them.
	ContainerResources(ctx context.Context, id string) (*runtime.Resources, error)
	// ContainerMemory returns the bytes of memory that a container is charged with.
	ContainerMemory(ctx context.Context, id string) (int64, error)
	SandboxContainers(ctx context.Context, sandboxID string) ([]runtime.Container, error)
	ImageStatus(ctx context.Context, image string) (runtime.Image, bool, error)
	ExecSync(ctx context.Context, id string, command []string, timeout time.Duration, limit int) (runtime.ExecResult, error)
}

// Images provides images, with secrets as additional credentials for the registry. A failed
// pull is a *runtime.PullError, wrapped in a *result.RetryLaterError if another try must
// wait. Ensure calls pulling before it contacts a registry, and also if it joins a pull that
// is in progress.
type Images interface {
	Ensure(ctx context.Context, image, policy string, secrets []*v1.Secret, pulling func()) (result.Image, error)
}

// Disk is podd's storage for pods on disk.
type Disk interface {
	// Prepare makes the pod's volumes, updates the files in them to their specified
	// content, and returns the host paths of the volumes by name.
	Prepare(ctx context.Context, pod *manifest.Pod, of render.Volumes) (map[string]string, error)
	// BindSubPaths opens the parts of the volumes that a container mounts by subPath, and
	// returns the mount points for them by the index of the volumeMount. volumes has the
	// host paths of the volumes. Links in a volume cannot lead out of it.
	BindSubPaths(ctx context.Context, pod *manifest.Pod, container string, volumes map[string]string, subs []render.SubPath) (map[int]string, error)
	// WriteHosts writes the pod's hosts file and returns its path.
	WriteHosts(uid types.UID, text string) (path string, err error)
	// MakeMessage makes the empty file for the termination message of a start of a
	// container, and returns its path. Message reads the end of that file. Its error is
	// fs.ErrNotExist if there is no file.
	MakeMessage(uid types.UID, container string, attempt uint32) (path string, err error)
	Message(uid types.UID, container string, attempt uint32) (string, error)
	// Check returns an error if Prepare would fail once the pods of ended, which are
	// earlier versions of this one, have ended. It makes nothing.
	Check(ctx context.Context, pod *manifest.Pod, of render.Volumes, ended []types.UID) error
	// Release removes the volumes and the hosts file, and keeps the directory.
	Release(ctx context.Context, uid types.UID) error
	// Remove removes the directory and everything in it.
	Remove(ctx context.Context, uid types.UID) error
}

// Leftovers manages what pods have outside their directories: logs, links to them, and
// cgroups.
type Leftovers interface {
	// NextAttempts returns, for each container with logs, one more than the greatest
	// attempt number among them.
	NextAttempts(pod *manifest.Pod) (map[string]uint32, error)
	// MakeLogs makes the log directory of a pod and, unless container is "", the log
	// directory of that container. CRI leaves that to the agent.
	MakeLogs(pod *manifest.Pod, container string) error
	// Started links the log of a started container into the directory where log agents
	// expect it. It removes all logs that are older than that of the previous attempt.
	Started(pod *manifest.Pod, container, id string, attempt uint32) error
	// LastLines returns the end of the log of a start of a container; "" if it logged
	// nothing.
	LastLines(ctx context.Context, key types.NamespacedName, uid types.UID, container string, attempt uint32) (string, error)
	// Remove removes the logs, links and cgroups of a pod that no longer exists.
	Remove(ctx context.Context, key types.NamespacedName, uid types.UID) error
}

// Devices provides the devices of device plugins for pods, as a *device.Ledger does.
type Devices interface {
	Use(ctx context.Context, pod *manifest.Pod, container string) (grants []device.Grant, done func(), err error)
	PreStart(ctx context.Context, container string, grants []device.Grant) error
}
