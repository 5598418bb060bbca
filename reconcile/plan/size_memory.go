package plan

import (
	"errors"
	"fmt"
	"strings"
)

// A MemoryLimitChange is a memory limit that a resize changes from Current to Desired, in bytes. 0
// means no limit.
type MemoryLimitChange struct {
	Container        string // "" means the pod
	Current, Desired int64
	// Used is the memory usage, including the page cache. It matters only if the limit decreases.
	Used int64
}

// Decreases reports whether the resize lowers the limit or adds a limit.
func (l MemoryLimitChange) Decreases() bool {
	return l.Desired != 0 && (l.Current == 0 || l.Desired < l.Current)
}

// subject returns the object with the limit, in the kubelet's words.
func (l MemoryLimitChange) subject() string {
	if l.Container == "" {
		return "pod"
	}
	return fmt.Sprintf("container %q", l.Container)
}

// CheckMemory returns an error if a memory limit would decrease to the current usage or less. On
// cgroup v2 the kernel would then kill processes, and on cgroup v1 the resize would fail halfway.
// The conditions and the message are the kubelet's (validateMemoryResizeAction).
func CheckMemory(limits []MemoryLimitChange) error {
	var reasons []string
	for _, l := range limits {
		if l.Decreases() && l.Used >= l.Desired {
			reasons = append(reasons, fmt.Sprintf("attempting to set %s memory limit (%d) below current usage (%d)", l.subject(), l.Desired, l.Used))
		}
	}
	const operation = "cannot decrease memory limits: "
	switch len(reasons) {
	case 0:
		return nil
	case 1:
		return errors.New(operation + reasons[0])
	}
	return errors.New(operation + "[" + strings.Join(reasons, ", ") + "]")
}
