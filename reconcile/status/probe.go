package status

import (
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/runtime"
)

// setReady sets Started and Ready. An init container is ready when it has completed. A sidecar or
// regular container is ready if it runs, has started, and has no readiness probe or its readiness
// probe succeeds.
func (c *observedContainer) setReady(s *v1.ContainerStatus) {
	if c.role == ephemeralRole {
		return // as with the kubelet, an ephemeral container is never started or ready
	}
	isRunning := s.State.Running != nil && (c.record == nil || c.record.State != runtime.ExitCodeUnknown)
	hasStarted := isRunning && probePassed(c.facts.Started, c.spec.StartupProbe)
	s.Started = &hasStarted
	if c.role == initRole && !manifest.IsSidecar(c.spec) {
		s.Ready = s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
		return
	}
	s.Ready = hasStarted && probePassed(c.facts.Ready, c.spec.ReadinessProbe)
}

// probePassed returns *v, the result of the probe. If v is nil, a container without this probe
// counts as passed, and a probe without a result as failed.
func probePassed(v *bool, probe *v1.Probe) bool {
	if v != nil {
		return *v
	}
	return probe == nil
}

// volumeMounts returns the statuses of the container's volume mounts.
func (c *observedContainer) volumeMounts() []v1.VolumeMountStatus {
	var statuses []v1.VolumeMountStatus
	for i := range c.spec.VolumeMounts {
		m := &c.spec.VolumeMounts[i]
		s := v1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			mode := v1.RecursiveReadOnlyDisabled
			if r := m.RecursiveReadOnly; r != nil && *r != v1.RecursiveReadOnlyDisabled && c.f.SupportsRecursiveReadOnly {
				mode = v1.RecursiveReadOnlyEnabled
			}
			s.RecursiveReadOnly = &mode
		}
		statuses = append(statuses, s)
	}
	return statuses
}

// truncate returns at most n bytes of text, without a partial character.
func truncate(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
