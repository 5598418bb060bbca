package stack

// The following methods describe how the runtimes differ. CRI permits these differences, and tests
// depend on them.

// RuntimeName returns the name that the runtime reports in the CRI call Version.
func (s *Stack) RuntimeName() string {
	if s.isCRIO() {
		return "cri-o"
	}
	return "containerd"
}

// HasSandboxProcess reports whether every sandbox has a process. CRI-O starts a process only for
// a sandbox with a PID namespace that its containers share.
func (s *Stack) HasSandboxProcess() bool { return !s.isCRIO() }

// CreatesWithoutProgram reports whether CreateContainer succeeds if the program of the container
// does not exist. If it succeeds, StartContainer fails and leaves an exited container. With CRI-O,
// CreateContainer fails and leaves no container, because it calls runc, which looks up the program.
func (s *Stack) CreatesWithoutProgram() bool { return !s.isCRIO() }

// ReportsExecErrors reports whether the stream of a command that cannot be started ends with an
// error. With CRI-O, the command instead has exit code 255 and the reason on stderr.
func (s *Stack) ReportsExecErrors() bool { return !s.isCRIO() }

// DefaultCapabilities returns the default bounding set of a container's capabilities, in
// hexadecimal as in /proc/PID/status. CRI-O's set does not contain AUDIT_WRITE, MKNOD, NET_RAW,
// SETFCAP and SYS_CHROOT.
func (s *Stack) DefaultCapabilities() string {
	if s.isCRIO() {
		return "00000000000005fb"
	}
	return "00000000a80425fb"
}

// CgroupName returns the name of a container's cgroup, relative to the cgroup of its pod.
func (s *Stack) CgroupName(id string) string {
	if s.isCRIO() {
		return "crio-" + id
	}
	return id
}

// KillsAtOnce reports whether a container that is stopped without a grace period gets only SIGKILL
// and no stop signal. CRI-O sends the stop signal first, and the container may still handle the
// signal.
func (s *Stack) KillsAtOnce() bool { return !s.isCRIO() }

// RepeatsNetworkRemoval reports whether a second StopPodSandbox frees the address of a pod if
// the first call was interrupted. CRI-O treats the network as removed after the first call, so
// that the address and its nft rules remain.
func (s *Stack) RepeatsNetworkRemoval() bool { return !s.isCRIO() }
