package defaults

import (
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/manifest/lazyregexp"
)

// Container sets the defaults of a container of any kind.
func Container(c *v1.Container) {
	setIfZero(&c.ImagePullPolicy, defaultPullPolicy(c.Image))
	setIfZero(&c.TerminationMessagePath, v1.TerminationMessagePathDefault)
	setIfZero(&c.TerminationMessagePolicy, v1.TerminationMessageReadFile)
	for i := range c.Ports {
		setIfZero(&c.Ports[i].Protocol, v1.ProtocolTCP)
	}
	for i := range c.Env {
		if source := c.Env[i].ValueFrom; source != nil {
			setFieldRefDefaults(source.FieldRef)
			if source.FileKeyRef != nil {
				setIfNil(&source.FileKeyRef.Optional, false)
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

// imageNamePattern matches an image reference, as registries define it. It also matches an image ID.
var imageNamePattern = lazyregexp.New(`^` +
	`(?:((?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*(?::[0-9]+)?|\[[a-fA-F0-9:]+\](?::[0-9]+)?)/)?` +
	`([a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*)` +
	`(?::([\w][\w.-]{0,127}))?` +
	`(?:@([A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?$`)

// isImageID reports whether image is an image ID: the digits of a SHA-256 digest.
func isImageID(image string) bool {
	return len(image) == 64 && strings.Trim(image, "0123456789abcdef") == ""
}

// maxRepositoryName is the maximum length of a repository name.
const maxRepositoryName = 255

// defaultPullPolicy returns the default pull policy of an image. It is Always if the tag is latest,
// or if there is neither a tag nor a digest. Otherwise, or if the name is invalid, it is
// IfNotPresent.
func defaultPullPolicy(image string) v1.PullPolicy {
	m := imageNamePattern().FindStringSubmatch(image)
	if m == nil || isImageID(image) || len(m[2]) > maxRepositoryName {
		return v1.PullIfNotPresent
	}
	if tag, digest := m[3], m[4]; tag == "latest" || tag == "" && digest == "" {
		return v1.PullAlways
	}
	return v1.PullIfNotPresent
}

func setProbeDefaults(p *v1.Probe) {
	if p == nil {
		return
	}
	setIfZero(&p.TimeoutSeconds, 1)
	setIfZero(&p.PeriodSeconds, 10)
	setIfZero(&p.SuccessThreshold, 1)
	setIfZero(&p.FailureThreshold, 3)
	setHTTPDefaults(p.HTTPGet)
	if p.GRPC != nil {
		setIfNil(&p.GRPC.Service, "")
	}
}

func setHookDefaults(h *v1.LifecycleHandler) {
	if h != nil {
		setHTTPDefaults(h.HTTPGet)
	}
}

func setHTTPDefaults(get *v1.HTTPGetAction) {
	if get != nil {
		setIfZero(&get.Path, "/")
		setIfZero(&get.Scheme, v1.URISchemeHTTP)
	}
}

func setFieldRefDefaults(ref *v1.ObjectFieldSelector) {
	if ref != nil {
		setIfZero(&ref.APIVersion, "v1")
	}
}
