package render

import (
	"maps"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/util/sysctl"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
	"podd/runtime"
)

// SandboxInput is the input of Sandbox, which does not modify it.
type SandboxInput struct {
	Pod  *manifest.Pod // required
	Node Node
	// Attempt is the attempt number of the sandbox, from 0.
	Attempt uint32
	// UserIDs are the host IDs of the pod's user namespace. They are not used for a pod without a
	// user namespace.
	UserIDs runtime.IDRange
	// DeviceIDs contains the IDs of the pod's plugin devices, by container and resource.
	DeviceIDs map[string]map[string][]string
}

// Sandbox returns the config of a pod's sandbox. CreateContainer requests for the sandbox must
// contain the same config.
func Sandbox(in SandboxInput) (*cri.PodSandboxConfig, error) {
	p, n, attempt := in.Pod, in.Node, in.Attempt
	if err := checkHostIDs(&p.Object.Spec, in.UserIDs); err != nil {
		return nil, err
	}
	hostname := kernelHostname(p, n)
	if err := checkHostname(hostname); err != nil {
		return nil, err
	}
	return &cri.PodSandboxConfig{
		Metadata: &cri.PodSandboxMetadata{
			Name:      p.Key.Name,
			Namespace: p.Key.Namespace,
			Uid:       string(p.UID),
			Attempt:   attempt,
		},
		Hostname:     hostname,
		LogDirectory: n.PodLogDir(p.Key, p.UID),
		DnsConfig:    podDNS(p, n),
		PortMappings: portMappings(&p.Object.Spec),
		Labels:       sandboxLabels(p, n),
		Annotations:  sandboxAnnotations(&in),
		Linux: &cri.LinuxPodSandboxConfig{
			CgroupParent:    cgroupParent(p, n),
			SecurityContext: sandboxSecurity(p.Object, in.UserIDs),
			Sysctls:         sysctls(n, p.Object),
			Resources:       sandboxResources(n, p.Object),
			Overhead:        overheadResources(n, p.Object),
		},
	}, nil
}

func sandboxLabels(p *manifest.Pod, n Node) map[string]string {
	labels := maps.Clone(p.Object.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	return addIdentityLabels(labels, p, n)
}

// addIdentityLabels adds the labels that identify the pod, and the podd instance that owns the
// sandbox or container. They replace labels of the user with the same keys.
func addIdentityLabels(labels map[string]string, p *manifest.Pod, n Node) map[string]string {
	labels[runtime.LabelPodName] = p.Key.Name
	labels[runtime.LabelPodNamespace] = p.Key.Namespace
	labels[runtime.LabelPodUID] = string(p.UID)
	delete(labels, runtime.LabelInstance)
	if n.InstanceID != "" {
		labels[runtime.LabelInstance] = n.InstanceID
	}
	return labels
}

// addHostIDs adds the annotations with the host IDs of a pod with a user namespace. They replace
// annotations of the user with the same keys.
func addHostIDs(annotations map[string]string, p *manifest.Pod, ids runtime.IDRange) {
	delete(annotations, runtime.AnnotationFirstHostUID)
	delete(annotations, runtime.AnnotationHostIDCount)
	if !manifest.HasUserNamespace(&p.Object.Spec) {
		return
	}
	annotations[runtime.AnnotationFirstHostUID] = strconv.FormatUint(uint64(ids.First), 10)
	if ids.Length != runtime.DefaultIDsPerPod {
		annotations[runtime.AnnotationHostIDCount] = strconv.FormatUint(uint64(ids.Length), 10)
	}
}

func sandboxAnnotations(in *SandboxInput) map[string]string {
	p := in.Pod
	annotations := maps.Clone(p.Object.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[runtime.AnnotationPodHash] = p.Hash
	// podd uses this annotation later to decide whether a missing pod was removed from its source.
	// Ignore a value from the manifest, because the manifest may be a copy of a pod of another
	// source.
	delete(annotations, manifest.AnnotationConfigSource)
	if p.Origin.Kind != "" {
		annotations[manifest.AnnotationConfigSource] = p.Origin.Kind
	}
	addHostIDs(annotations, p, in.UserIDs)
	annotations[runtime.AnnotationSize] = p.PodSize()
	delete(annotations, runtime.AnnotationPodDevices)
	if len(in.DeviceIDs) > 0 {
		annotations[runtime.AnnotationPodDevices] = jsonText(in.DeviceIDs)
	}
	delete(annotations, runtime.AnnotationGracePeriod)
	if grace := p.Object.Spec.TerminationGracePeriodSeconds; grace != nil {
		annotations[runtime.AnnotationGracePeriod] = strconv.FormatInt(*grace, 10)
	}
	return annotations
}

// portMappings returns a mapping for every port that a regular container declares, followed by the
// ports of the sidecars. Unlike podd, the kubelet omits the sidecars. Runtimes ignore mappings
// without a host port. If a container declares the same port several times, there is one mapping.
func portMappings(spec *v1.PodSpec) []*cri.PortMapping {
	var mappings []*cri.PortMapping
	for i := range spec.Containers {
		mappings = append(mappings, containerPorts(&spec.Containers[i])...)
	}
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; manifest.IsSidecar(c) {
			mappings = append(mappings, containerPorts(c)...)
		}
	}
	return mappings
}

func containerPorts(c *v1.Container) []*cri.PortMapping {
	type unnamedPort struct {
		ip              string
		container, host int32
		protocol        v1.Protocol
	}
	seen := map[any]bool{}
	var mappings []*cri.PortMapping
	for _, port := range c.Ports {
		var key any = port.Name
		if port.Name == "" {
			key = unnamedPort{port.HostIP, port.ContainerPort, port.HostPort, port.Protocol}
		}
		if seen[key] {
			continue
		}
		seen[key] = true
		mappings = append(mappings, &cri.PortMapping{
			Protocol:      criProtocol(port.Protocol),
			ContainerPort: port.ContainerPort,
			HostPort:      port.HostPort,
			HostIp:        port.HostIP,
		})
	}
	return mappings
}

func criProtocol(p v1.Protocol) cri.Protocol {
	switch p {
	case v1.ProtocolUDP:
		return cri.Protocol_UDP
	case v1.ProtocolSCTP:
		return cri.Protocol_SCTP
	}
	return cri.Protocol_TCP
}

// sysctls returns the sysctls of a pod and the default sysctls that it does not set.
func sysctls(n Node, pod *v1.Pod) map[string]string {
	sysctls := map[string]string{}
	for name, value := range n.DefaultSysctls {
		ns, _, _ := sysctl.GetNamespace(name)
		if ns != sysctl.UnknownNamespace && manifest.HostNamespaceCause(ns, &pod.Spec) == "" {
			sysctls[name] = value
		}
	}
	if sc := pod.Spec.SecurityContext; sc != nil {
		for _, s := range sc.Sysctls {
			sysctls[sysctl.NormalizeName(s.Name)] = s.Value
		}
	}
	return sysctls
}
