package main

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// containers says all of a pod's containers of a kind.
func (d *description) containers(label string, p *v1.Pod, all []v1.Container, statuses []v1.ContainerStatus) {
	if len(all) > 0 {
		d.say(0, label+":")
	}
	for i := range all {
		c := &all[i]
		d.say(1, "%s:", c.Name)
		status := v1.ContainerStatus{}
		n := slices.IndexFunc(statuses, func(s v1.ContainerStatus) bool { return s.Name == c.Name })
		if n >= 0 {
			status = statuses[n]
		}
		d.say(2, "Container ID:\t%s", status.ContainerID)
		d.say(2, "Image:\t%s", c.Image)
		d.say(2, "Image ID:\t%s", status.ImageID)
		d.ports(c.Ports)
		d.words("Command", c.Command)
		d.words("Args", c.Args)
		if n >= 0 {
			d.state("State", &status.State)
			if status.LastTerminationState.Terminated != nil {
				d.state("Last State", &status.LastTerminationState)
			}
			d.say(2, "Ready:\t%s", truth(status.Ready))
			d.say(2, "Restart Count:\t%s", status.RestartCount)
		}
		d.amounts("Limits", c.Resources.Limits)
		d.amounts("Requests", c.Resources.Requests)
		d.sayIf(2, "Liveness", probeText(c.LivenessProbe))
		d.sayIf(2, "Readiness", probeText(c.ReadinessProbe))
		d.sayIf(2, "Startup", probeText(c.StartupProbe))
		d.environment(p, c)
		d.mounts(c)
	}
}

func truth(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

func (d *description) ports(all []v1.ContainerPort) {
	var inside, outside []string
	for _, p := range all {
		kind := "/" + orElse(string(p.Protocol), "TCP")
		name := ""
		if p.Name != "" {
			name = " (" + p.Name + ")"
		}
		inside = append(inside, strconv.Itoa(int(p.ContainerPort))+kind+name)
		outside = append(outside, strconv.Itoa(int(p.HostPort))+kind+name)
	}
	label := "Port"
	if len(all) > 1 {
		label = "Ports"
	}
	d.say(2, label+":\t%s", orNone(strings.Join(inside, ", ")))
	d.say(2, "Host "+label+":\t%s", orNone(strings.Join(outside, ", ")))
}

// words says those of a command, a line each.
func (d *description) words(label string, all []string) {
	if len(all) > 0 {
		d.say(2, label+":")
	}
	for _, word := range all {
		d.say(3, "%s", word)
	}
}

func (d *description) state(label string, s *v1.ContainerState) {
	switch {
	case s.Running != nil:
		d.say(2, label+":\tRunning")
		d.say(3, "Started:\t%s", stamp(s.Running.StartedAt))
	case s.Terminated != nil:
		t := s.Terminated
		d.say(2, label+":\tTerminated")
		d.sayIf(3, "Reason", t.Reason)
		d.sayIf(3, "Message", t.Message)
		d.say(3, "Exit Code:\t%s", t.ExitCode)
		if t.Signal > 0 {
			d.say(3, "Signal:\t%s", t.Signal)
		}
		d.say(3, "Started:\t%s", stamp(t.StartedAt))
		d.say(3, "Finished:\t%s", stamp(t.FinishedAt))
	default:
		d.say(2, label+":\tWaiting")
		if s.Waiting != nil {
			d.sayIf(3, "Reason", s.Waiting.Reason)
			d.sayIf(3, "Message", s.Waiting.Message)
		}
	}
}

func (d *description) amounts(label string, all v1.ResourceList) {
	var names []string
	for name := range all {
		names = append(names, string(name))
	}
	slices.Sort(names)
	if len(names) > 0 {
		d.say(2, label+":")
	}
	for _, name := range names {
		q := all[v1.ResourceName(name)]
		d.say(3, "%s:\t%s", name, q.String())
	}
}

// probeText is a probe on one line; "" for none.
func probeText(p *v1.Probe) string {
	if p == nil {
		return ""
	}
	times := fmt.Sprintf(" delay=%ds timeout=%ds period=%ds #success=%d #failure=%d", p.InitialDelaySeconds, p.TimeoutSeconds, p.PeriodSeconds, p.SuccessThreshold, p.FailureThreshold)
	switch {
	case p.Exec != nil:
		return fmt.Sprintf("exec %v", p.Exec.Command) + times
	case p.HTTPGet != nil:
		scheme := strings.ToLower(orElse(string(p.HTTPGet.Scheme), "http"))
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

// environment says variables. Of those of Secrets only where they come from.
func (d *description) environment(p *v1.Pod, c *v1.Container) {
	if len(c.EnvFrom) > 0 {
		d.say(2, "Environment Variables from:")
	}
	for _, e := range c.EnvFrom {
		prefix := ""
		if e.Prefix != "" {
			prefix = " with prefix '" + e.Prefix + "'"
		}
		switch {
		case e.ConfigMapRef != nil:
			d.say(3, "%s\tConfigMap%s\tOptional: %s", e.ConfigMapRef.Name, prefix, optional(e.ConfigMapRef.Optional))
		case e.SecretRef != nil:
			d.say(3, "%s\tSecret%s\tOptional: %s", e.SecretRef.Name, prefix, optional(e.SecretRef.Optional))
		}
	}
	if len(c.Env) == 0 {
		d.say(2, "Environment:\t<none>")
		return
	}
	d.say(2, "Environment:")
	for _, e := range c.Env {
		from := e.ValueFrom
		switch {
		case from == nil:
			d.say(3, "%s:\t%s", e.Name, e.Value)
		case from.FieldRef != nil:
			d.say(3, "%s:\t%s (%s:%s)", e.Name, fieldValue(p, from.FieldRef.FieldPath), orElse(from.FieldRef.APIVersion, "v1"), from.FieldRef.FieldPath)
		case from.ResourceFieldRef != nil:
			d.say(3, "%s:\t(%s)", e.Name, from.ResourceFieldRef.Resource)
		case from.SecretKeyRef != nil:
			d.say(3, "%s:\t<set to the key '%s' in secret '%s'>\tOptional: %s", e.Name, from.SecretKeyRef.Key, from.SecretKeyRef.Name, optional(from.SecretKeyRef.Optional))
		case from.ConfigMapKeyRef != nil:
			d.say(3, "%s:\t<set to the key '%s' of config map '%s'>\tOptional: %s", e.Name, from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Name, optional(from.ConfigMapKeyRef.Optional))
		}
	}
}

// fieldValue is that of a simple field, as kubectl knows it; the manifest tells
// the others.
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

func (d *description) mounts(c *v1.Container) {
	if len(c.VolumeMounts) == 0 {
		d.say(2, "Mounts:\t<none>")
		return
	}
	d.say(2, "Mounts:")
	mounts := slices.SortedFunc(slices.Values(c.VolumeMounts), func(a, b v1.VolumeMount) int { return strings.Compare(a.MountPath, b.MountPath) })
	for _, m := range mounts {
		flags := "rw"
		if m.ReadOnly {
			flags = "ro"
		}
		if m.SubPath != "" {
			flags += ",path=\"" + m.SubPath + "\""
		}
		d.say(3, "%s from %s (%s)", m.MountPath, m.Name, flags)
	}
}
