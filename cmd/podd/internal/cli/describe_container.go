package cli

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/printer"
	"podd/manifest/order"
)

// writeContainers writes one list of a pod's containers: its init, regular or ephemeral
// containers.
func (d *description) writeContainers(label string, p *v1.Pod, containers []v1.Container, statuses []v1.ContainerStatus) {
	if len(containers) > 0 {
		d.writeLine(0, label+":")
	}
	for i := range containers {
		c := &containers[i]
		d.writeLine(1, "%s:", c.Name)
		status := v1.ContainerStatus{}
		n := slices.IndexFunc(statuses, func(s v1.ContainerStatus) bool { return s.Name == c.Name })
		if n >= 0 {
			status = statuses[n]
		}
		d.writeLine(2, "Container ID:\t%s", status.ContainerID)
		d.writeLine(2, "Image:\t%s", c.Image)
		d.writeLine(2, "Image ID:\t%s", status.ImageID)
		d.writePorts(c.Ports)
		d.writeCommand("Command", c.Command)
		d.writeCommand("Args", c.Args)
		if n >= 0 {
			d.writeState("State", &status.State)
			if status.LastTerminationState.Terminated != nil {
				d.writeState("Last State", &status.LastTerminationState)
			}
			d.writeLine(2, "Ready:\t%s", boolText(status.Ready))
			d.writeLine(2, "Restart Count:\t%s", status.RestartCount)
		}
		d.writeResources(2, "Limits", c.Resources.Limits)
		d.writeResources(2, "Requests", c.Resources.Requests)
		d.writeLineIfSet(2, "Liveness", probeText(c.LivenessProbe))
		d.writeLineIfSet(2, "Readiness", probeText(c.ReadinessProbe))
		d.writeLineIfSet(2, "Startup", probeText(c.StartupProbe))
		d.writeEnvironment(p, c)
		d.writeMounts(c)
	}
}

// boolText formats a bool as kubectl does.
func boolText(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

// writePorts writes the container ports and the host ports of a container.
func (d *description) writePorts(containerPorts []v1.ContainerPort) {
	var ports, hostPorts []string
	for _, p := range containerPorts {
		protocol := "/" + cmp.Or(string(p.Protocol), "TCP")
		name := ""
		if p.Name != "" {
			name = " (" + p.Name + ")"
		}
		ports = append(ports, strconv.Itoa(int(p.ContainerPort))+protocol+name)
		hostPorts = append(hostPorts, strconv.Itoa(int(p.HostPort))+protocol+name)
	}
	label := "Port"
	if len(containerPorts) > 1 {
		label = "Ports"
	}
	d.writeLine(2, label+":\t%s", printer.OrNone(strings.Join(ports, ", ")))
	d.writeLine(2, "Host "+label+":\t%s", printer.OrNone(strings.Join(hostPorts, ", ")))
}

// writeCommand writes a label and the words of a command, one per line.
func (d *description) writeCommand(label string, args []string) {
	if len(args) > 0 {
		d.writeLine(2, label+":")
	}
	for _, arg := range args {
		d.writeLine(3, "%s", arg)
	}
}

// writeState writes a state of a container. label is State or Last State.
func (d *description) writeState(label string, s *v1.ContainerState) {
	switch {
	case s.Running != nil:
		d.writeLine(2, label+":\tRunning")
		d.writeLine(3, "Started:\t%s", formatTimestamp(s.Running.StartedAt))
	case s.Terminated != nil:
		t := s.Terminated
		d.writeLine(2, label+":\tTerminated")
		d.writeLineIfSet(3, "Reason", t.Reason)
		d.writeLineIfSet(3, "Message", t.Message)
		d.writeLine(3, "Exit Code:\t%s", t.ExitCode)
		if t.Signal > 0 {
			d.writeLine(3, "Signal:\t%s", t.Signal)
		}
		d.writeLine(3, "Started:\t%s", formatTimestamp(t.StartedAt))
		d.writeLine(3, "Finished:\t%s", formatTimestamp(t.FinishedAt))
	default:
		d.writeLine(2, label+":\tWaiting")
		if s.Waiting != nil {
			d.writeLineIfSet(3, "Reason", s.Waiting.Reason)
			d.writeLineIfSet(3, "Message", s.Waiting.Message)
		}
	}
}

// probeText describes a probe on one line, or returns "" if p is nil.
func probeText(p *v1.Probe) string {
	if p == nil {
		return ""
	}
	times := fmt.Sprintf(" delay=%ds timeout=%ds period=%ds #success=%d #failure=%d", p.InitialDelaySeconds, p.TimeoutSeconds, p.PeriodSeconds, p.SuccessThreshold, p.FailureThreshold)
	switch {
	case p.Exec != nil:
		return fmt.Sprintf("exec %v", p.Exec.Command) + times
	case p.HTTPGet != nil:
		scheme := strings.ToLower(cmp.Or(string(p.HTTPGet.Scheme), "http"))
		return "http-get " + scheme + "://" + net.JoinHostPort(p.HTTPGet.Host, p.HTTPGet.Port.String()) + "/" + strings.TrimPrefix(p.HTTPGet.Path, "/") + times
	case p.TCPSocket != nil:
		return "tcp-socket " + net.JoinHostPort(p.TCPSocket.Host, p.TCPSocket.Port.String()) + times
	case p.GRPC != nil:
		service := ""
		if p.GRPC.Service != nil {
			service = *p.GRPC.Service
		}
		return fmt.Sprintf("grpc <pod>:%d %s", p.GRPC.Port, service) + times
	}
	return "unknown" + times
}

// writeEnvironment writes the variables of a container. For Secrets it writes only the
// references.
func (d *description) writeEnvironment(p *v1.Pod, c *v1.Container) {
	if len(c.EnvFrom) > 0 {
		d.writeLine(2, "Environment Variables from:")
	}
	for _, e := range c.EnvFrom {
		prefix := ""
		if e.Prefix != "" {
			prefix = " with prefix '" + e.Prefix + "'"
		}
		switch {
		case e.ConfigMapRef != nil:
			d.writeLine(3, "%s\tConfigMap%s\tOptional: %s", e.ConfigMapRef.Name, prefix, optionalText(e.ConfigMapRef.Optional))
		case e.SecretRef != nil:
			d.writeLine(3, "%s\tSecret%s\tOptional: %s", e.SecretRef.Name, prefix, optionalText(e.SecretRef.Optional))
		}
	}
	if len(c.Env) == 0 {
		d.writeLine(2, "Environment:\t<none>")
		return
	}
	d.writeLine(2, "Environment:")
	for _, e := range c.Env {
		from := e.ValueFrom
		switch {
		case from == nil:
			d.writeLine(3, "%s:\t%s", e.Name, e.Value)
		case from.FieldRef != nil:
			d.writeLine(3, "%s:\t%s (%s:%s)", e.Name, fieldValue(p, from.FieldRef.FieldPath), cmp.Or(from.FieldRef.APIVersion, "v1"), from.FieldRef.FieldPath)
		case from.ResourceFieldRef != nil:
			d.writeLine(3, "%s:\t(%s)", e.Name, from.ResourceFieldRef.Resource)
		case from.SecretKeyRef != nil:
			d.writeLine(3, "%s:\t<set to the key '%s' in secret '%s'>\tOptional: %s", e.Name, from.SecretKeyRef.Key, from.SecretKeyRef.Name, optionalText(from.SecretKeyRef.Optional))
		case from.ConfigMapKeyRef != nil:
			d.writeLine(3, "%s:\t<set to the key '%s' of config map '%s'>\tOptional: %s", e.Name, from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Name, optionalText(from.ConfigMapKeyRef.Optional))
		case from.FileKeyRef != nil: // podd prints these variables, unlike kubectl 1.37
			d.writeLine(3, "%s:\t<set to the key '%s' of file '%s' in volume '%s'>\tOptional: %s", e.Name, from.FileKeyRef.Key, from.FileKeyRef.Path, from.FileKeyRef.VolumeName, optionalText(from.FileKeyRef.Optional))
		}
	}
}

// fieldValue returns the value of the field path, which may be the name, namespace or UID of the
// pod, as in kubectl describe. It returns "" for all other fields.
func fieldValue(p *v1.Pod, path string) string {
	switch path {
	case "metadata.name":
		return p.Name
	case "metadata.namespace":
		return p.Namespace
	case "metadata.uid":
		return string(p.UID)
	}
	return ""
}

// writeMounts writes the volume mounts of a container.
func (d *description) writeMounts(c *v1.Container) {
	if len(c.VolumeMounts) == 0 {
		d.writeLine(2, "Mounts:\t<none>")
		return
	}
	d.writeLine(2, "Mounts:")
	mounts := slices.Clone(c.VolumeMounts)
	order.Slice(mounts, func(a, b v1.VolumeMount) int { return strings.Compare(a.MountPath, b.MountPath) })
	for _, m := range mounts {
		flags := "rw"
		if m.ReadOnly {
			flags = "ro"
		}
		if m.SubPath != "" {
			flags += ",path=\"" + m.SubPath + "\""
		}
		d.writeLine(3, "%s from %s (%s)", m.MountPath, m.Name, flags)
	}
}
