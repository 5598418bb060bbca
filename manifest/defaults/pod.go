// Package defaults sets the defaults of pods, claims and PersistentVolumes, as an API server
// of Kubernetes does with its default feature gates.
package defaults

import v1 "k8s.io/api/core/v1"

// Pod sets the defaults of a pod. Source: k8s.io/kubernetes, pkg/apis/core/v1.
func Pod(pod *v1.Pod) {
	spec := &pod.Spec
	for i := range spec.InitContainers {
		setMissingRequests(&spec.InitContainers[i].Resources)
	}
	for i := range spec.Containers {
		setMissingRequests(&spec.Containers[i].Resources)
	}
	if spec.Resources != nil {
		setPodResources(spec)
	}
	if spec.HostNetwork {
		setHostPorts(spec.Containers)
		setHostPorts(spec.InitContainers)
	}
	setSpecDefaults(spec)
	for i := range spec.Volumes {
		setVolumeDefaults(&spec.Volumes[i])
	}
	for i := range spec.InitContainers {
		Container(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		Container(&spec.Containers[i])
	}
	for i := range spec.EphemeralContainers {
		Container((*v1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	roundUp(spec.Overhead)
	if spec.Resources != nil {
		roundUp(spec.Resources.Limits)
		roundUp(spec.Resources.Requests)
	}
}

func setSpecDefaults(spec *v1.PodSpec) {
	setIfNil(&spec.EnableServiceLinks, v1.DefaultEnableServiceLinks)
	setIfZero(&spec.DNSPolicy, v1.DNSClusterFirst)
	setIfZero(&spec.RestartPolicy, v1.RestartPolicyAlways)
	setIfZero(&spec.SchedulerName, v1.DefaultSchedulerName)
	setIfNil(&spec.TerminationGracePeriodSeconds, v1.DefaultTerminationGracePeriodSeconds)
	if *spec.TerminationGracePeriodSeconds < 0 {
		spec.TerminationGracePeriodSeconds = new(int64(1)) // as in an API server; package decode warns about a negative grace period
	}
	if spec.SecurityContext == nil {
		spec.SecurityContext = &v1.PodSecurityContext{}
	}
	// DeprecatedServiceAccount is the former name of ServiceAccountName. An API server also sets
	// both fields.
	setIfZero(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
}

// setHostPorts sets each missing host port to the container port. It must be called only for a pod
// on the host network.
func setHostPorts(containers []v1.Container) {
	for i := range containers {
		for j := range containers[i].Ports {
			port := &containers[i].Ports[j]
			setIfZero(&port.HostPort, port.ContainerPort)
		}
	}
}

// setIfZero sets *p to v if it is zero.
func setIfZero[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// setIfNil sets *p if it is nil.
func setIfNil[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}
