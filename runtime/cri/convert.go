package cri

import (
	"errors"
	"slices"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"k8s.io/apimachinery/pkg/types"

	"podd/runtime"
)

// timeOf converts nanoseconds since 1970, as in CRI, to a Time. For zero and negative
// numbers it returns the zero Time.
func timeOf(nanoseconds int64) time.Time {
	if nanoseconds <= 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds)
}

func containerState(s api.ContainerState) runtime.ContainerState {
	switch s {
	case api.ContainerState_CONTAINER_CREATED:
		return runtime.Created
	case api.ContainerState_CONTAINER_RUNNING:
		return runtime.Running
	case api.ContainerState_CONTAINER_EXITED:
		return runtime.Exited
	}
	return runtime.Unknown
}

func isReady(s api.PodSandboxState) bool { return s == api.PodSandboxState_SANDBOX_READY }

// sandboxFromList converts a sandbox of a CRI list. The list contains no addresses.
func sandboxFromList(s *api.PodSandbox) runtime.Sandbox {
	return runtime.Sandbox{
		ID:          s.GetId(),
		UID:         types.UID(s.GetMetadata().GetUid()),
		Attempt:     s.GetMetadata().GetAttempt(),
		Ready:       isReady(s.GetState()),
		CreatedAt:   timeOf(s.GetCreatedAt()),
		Labels:      s.GetLabels(),
		Annotations: s.GetAnnotations(),
	}
}

func sandboxFromStatus(s *api.PodSandboxStatus) runtime.Sandbox {
	return runtime.Sandbox{
		ID:          s.GetId(),
		UID:         types.UID(s.GetMetadata().GetUid()),
		Attempt:     s.GetMetadata().GetAttempt(),
		Ready:       isReady(s.GetState()),
		CreatedAt:   timeOf(s.GetCreatedAt()),
		IPs:         addresses(s.GetNetwork()),
		MappedIDs:   mappedIDs(s.GetLinux().GetNamespaces().GetOptions().GetUsernsOptions()),
		Labels:      s.GetLabels(),
		Annotations: s.GetAnnotations(),
	}
}

// addresses returns the addresses of a pod, the primary one first, or nil if the pod uses
// the host network.
func addresses(n *api.PodSandboxNetworkStatus) []string {
	if n.GetIp() == "" {
		return nil
	}
	ips := []string{n.GetIp()}
	for _, ip := range n.GetAdditionalIps() {
		if ip.GetIp() != "" {
			ips = append(ips, ip.GetIp())
		}
	}
	return ips
}

// mappedIDs returns the host IDs that a user namespace maps, without duplicates. It returns nil if the
// pod has no user namespace.
func mappedIDs(n *api.UserNamespace) []runtime.IDRange {
	if n.GetMode() != api.NamespaceMode_POD {
		return nil
	}
	var ranges []runtime.IDRange
	for _, m := range slices.Concat(n.GetUids(), n.GetGids()) {
		if r := (runtime.IDRange{First: m.GetHostId(), Length: m.GetLength()}); r.Length > 0 && !slices.Contains(ranges, r) {
			ranges = append(ranges, r)
		}
	}
	return ranges
}

// containerFromList converts a container of a CRI list. The list contains no exit code, and no
// time except the creation time.
func containerFromList(c *api.Container) runtime.Container {
	return runtime.Container{
		ID:          c.GetId(),
		SandboxID:   c.GetPodSandboxId(),
		Name:        c.GetMetadata().GetName(),
		Attempt:     c.GetMetadata().GetAttempt(),
		State:       containerState(c.GetState()),
		CreatedAt:   timeOf(c.GetCreatedAt()),
		Image:       imageName(c.GetImage()),
		ImageRef:    c.GetImageRef(),
		Labels:      c.GetLabels(),
		Annotations: c.GetAnnotations(),
	}
}

// errNoExitCode is the reason why a container has the state ExitCodeUnknown although the runtime
// returned its status.
var errNoExitCode = errors.New("the runtime reports that the container has exited, but it reports no exit code")

// containerFromStatus converts a CRI status, which does not contain the sandbox ID. If the status
// of an exited container has no finish time, the state is ExitCodeUnknown, because CRI requires the
// exit code only together with the finish time. CRI-O returns the exit code -1 in this case, until
// it finds the container's exit file.
func containerFromStatus(s *api.ContainerStatus) runtime.Container {
	c := runtime.Container{
		ID:          s.GetId(),
		Name:        s.GetMetadata().GetName(),
		Attempt:     s.GetMetadata().GetAttempt(),
		State:       containerState(s.GetState()),
		CreatedAt:   timeOf(s.GetCreatedAt()),
		StartedAt:   timeOf(s.GetStartedAt()),
		Image:       imageName(s.GetImage()),
		ImageRef:    s.GetImageRef(),
		LogPath:     s.GetLogPath(),
		Labels:      s.GetLabels(),
		Annotations: s.GetAnnotations(),
		User:        containerUser(s.GetUser()),
	}
	if c.State != runtime.Exited {
		return c
	}
	if s.GetFinishedAt() <= 0 {
		c.State, c.Message = runtime.ExitCodeUnknown, errNoExitCode.Error()
		return c
	}
	c.FinishedAt, c.ExitCode = timeOf(s.GetFinishedAt()), s.GetExitCode()
	c.Reason, c.Message = s.GetReason(), makePrintable(s.GetMessage())
	if c.Reason == "" {
		c.Reason = "Completed"
		if c.ExitCode != 0 {
			c.Reason = "Error"
		}
	}
	return c
}

// containerUser returns the user of a container's first process. It returns nil if the
// runtime does not report the user. containerd reports it since 2.0.
func containerUser(u *api.ContainerUser) *runtime.User {
	linux := u.GetLinux()
	if linux == nil {
		return nil
	}
	return &runtime.User{UID: linux.GetUid(), GID: linux.GetGid(), Groups: linux.GetSupplementalGroups()}
}

// imageName returns the image name that the user wrote. If the runtime has not stored this name,
// imageName returns the runtime's own name.
func imageName(spec *api.ImageSpec) string {
	if name := spec.GetUserSpecifiedImage(); name != "" {
		return name
	}
	return spec.GetImage()
}

func imageFromCRI(i *api.Image) runtime.Image {
	image := runtime.Image{
		ID:        i.GetId(),
		Tags:      i.GetRepoTags(),
		Digests:   i.GetRepoDigests(),
		SizeBytes: i.GetSize(),
		User:      runtime.ImageUser{Name: i.GetUsername()},
		Pinned:    i.GetPinned(),
	}
	if i.GetUid() != nil {
		uid := i.GetUid().GetValue()
		image.User.UID = &uid
	}
	return image
}
