package runtimetest

import (
	"fmt"
	"slices"
	"strings"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Sandboxes returns every sandbox as "namespace/name attempt state", sorted. The state is ready
// or dead.
func (r *Runtime) Sandboxes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []string
	for _, sb := range r.sandboxes {
		state := "dead"
		if sb.isReady {
			state = "ready"
		}
		lines = append(lines, fmt.Sprintf("%s %d %s", podSubject(sb.config), sb.config.GetMetadata().GetAttempt(), state))
	}
	slices.Sort(lines)
	return lines
}

// Containers returns every container as "namespace/name/container attempt state", sorted. The
// exit code follows the state of an exited container.
func (r *Runtime) Containers() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []string
	for _, c := range r.containers {
		line := fmt.Sprintf("%s %d %s", c.subject(), c.config.GetMetadata().GetAttempt(),
			strings.ToLower(strings.TrimPrefix(c.state.String(), "CONTAINER_")))
		if c.state == api.ContainerState_CONTAINER_EXITED {
			line += fmt.Sprint(" ", c.code)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}
