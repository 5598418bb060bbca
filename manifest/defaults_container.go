package manifest

import (
	"strings"

	v1 "k8s.io/api/core/v1"
)

func setContainerDefaults(c *v1.Container) {
	orElse(&c.ImagePullPolicy, pullPolicy(c.Image))
	orElse(&c.TerminationMessagePath, v1.TerminationMessagePathDefault)
	orElse(&c.TerminationMessagePolicy, v1.TerminationMessageReadFile)
	for i := range c.Ports {
		orElse(&c.Ports[i].Protocol, v1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			setFieldRefDefaults(from.FieldRef)
			if from.FileKeyRef != nil {
				fill(&from.FileKeyRef.Optional, false)
			}
		}
	}
	roundUp(c.Resources.Limits)
	roundUp(c.Resources.Requests)
	setProbeDefaults(c.LivenessProbe)
	setProbeDefaults(c.ReadinessProbe)
	setProbeDefaults(c.StartupProbe)
	if c.Lifecycle != nil {
		setHookDefaults(c.Lifecycle.PostStart)
		setHookDefaults(c.Lifecycle.PreStop)
	}
}

// pullPolicy is Always for the tag latest and for no tag and digest at all; for
// what cannot be a name it is IfNotPresent.
func pullPolicy(image string) v1.PullPolicy {
	name, digest, _ := strings.Cut(image, "@")
	tag := ""
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		tag = name[i+1:]
	}
	if tag == "latest" || tag == "" && digest == "" && image != "" && !imageID(image) {
		return v1.PullAlways
	}
	return v1.PullIfNotPresent
}

// imageID says that an image is named by its bare 64 hex digits.
func imageID(image string) bool {
	return len(image) == 64 && strings.Trim(image, "0123456789abcdef") == ""
}

func setProbeDefaults(p *v1.Probe) {
	if p == nil {
		return
	}
	orElse(&p.TimeoutSeconds, 1)
	orElse(&p.PeriodSeconds, 10)
	orElse(&p.SuccessThreshold, 1)
	orElse(&p.FailureThreshold, 3)
	setHTTPDefaults(p.HTTPGet)
	if p.GRPC != nil {
		fill(&p.GRPC.Service, "")
	}
}

func setHookDefaults(h *v1.LifecycleHandler) {
	if h != nil {
		setHTTPDefaults(h.HTTPGet)
	}
}

func setHTTPDefaults(get *v1.HTTPGetAction) {
	if get != nil {
		orElse(&get.Path, "/")
		orElse(&get.Scheme, v1.URISchemeHTTP)
	}
}

func setFieldRefDefaults(ref *v1.ObjectFieldSelector) {
	if ref != nil {
		orElse(&ref.APIVersion, "v1")
	}
}
