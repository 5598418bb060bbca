package status

import (
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// probe sets started and ready. An init container is ready once it has
// completed; a sidecar and a regular container while it runs, is started and no
// readiness probe objects.
func (c *one) probe(s *v1.ContainerStatus) {
	if c.role == ephemeral {
		return // no kubelet ever says that one has started or is ready
	}
	running := s.State.Running != nil
	started := running && verdict(c.facts.Started, c.spec.StartupProbe)
	s.Started = &started
	if c.role == initial && !manifest.IsSidecar(c.spec) {
		s.Ready = s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
		return
	}
	s.Ready = started && verdict(c.facts.Ready, c.spec.ReadinessProbe)
}

// verdict is the probe's; before its first one a probe says no, and where there
// is no probe the answer is yes.
func verdict(v *bool, probe *v1.Probe) bool {
	if v != nil {
		return *v
	}
	return probe == nil
}

// volumeMounts says how each volume of the container is mounted.
func (c *one) volumeMounts() []v1.VolumeMountStatus {
	var all []v1.VolumeMountStatus
	for i := range c.spec.VolumeMounts {
		m := &c.spec.VolumeMounts[i]
		s := v1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			mode := v1.RecursiveReadOnlyDisabled
			if r := m.RecursiveReadOnly; r != nil && *r != v1.RecursiveReadOnlyDisabled && c.f.RecursiveReadOnly {
				mode = v1.RecursiveReadOnlyEnabled
			}
			s.RecursiveReadOnly = &mode
		}
		all = append(all, s)
	}
	return all
}

// cutText cuts to n bytes at most, between characters.
func cutText(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
