package stack

// These methods describe differences between runtimes that CRI allows and tests depend on.

// RuntimeName returns the name of the runtime in CRI.
func (s *Stack) RuntimeName() string {
	if s.isCRIO() {
		return "cri-o"
	}
	return "containerd"
}

// HasSandboxProcess reports whether every sandbox has its own process. CRI-O has one only
// for sandboxes in which containers share the PID namespace.
func (s *Stack) HasSandboxProcess() bool { return !s.isCRIO() }

// CreatesWithoutProgram reports whether a container can be created if its program does not
// exist, so that its start fails and leaves an exited container. With CRI-O, runc looks up
// the program at the creation, so there is no container.
func (s *Stack) CreatesWithoutProgram() bool { return !s.isCRIO() }

// ReportsExecErrors reports whether the stream of a command that cannot be started ends
// with an error. CRI-O returns exit code 255 and the reason on stderr instead.
func (s *Stack) ReportsExecErrors() bool { return !s.isCRIO() }

// DefaultCapabilities returns the default bounding set of a container, in hexadecimal as in
// /proc/PID/status. CRI-O's is smaller: it lacks AUDIT_WRITE, MKNOD, NET_RAW, SETFCAP and
// SYS_CHROOT.
func (s *Stack) DefaultCapabilities() string {
	if s.isCRIO() {
		return "00000000000005fb"
	}
	return "00000000a80425fb"
}

// CgroupName returns the name of a container's cgroup in that of its pod.
func (s *Stack) CgroupName(id string) string {
	if s.isCRIO() {
		return "crio-" + id
	}
	return id
}

// KillsAtOnce reports whether a container that is stopped without a grace period gets no
// stop signal before it is killed. CRI-O sends the signal, so the container may still react
// to it.
func (s *Stack) KillsAtOnce() bool { return !s.isCRIO() }

// RepeatsNetworkRemoval reports whether a repeated StopPodSandbox frees the address of a
// pod if the first call was interrupted. CRI-O treats the network as removed after the
// first attempt, so the address and its nft rules stay.
func (s *Stack) RepeatsNetworkRemoval() bool { return !s.isCRIO() }
