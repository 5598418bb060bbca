package decode

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest"
	"podd/manifest/wording"
)

// advise warns about valid fields that are probably a mistake.
func (n *objectProblems) advise(p *manifest.Pod) {
	spec := &p.Object.Spec
	if l := len(p.Key.Name); l > validation.DNS1123LabelMaxLength && l <= validation.DNS1123SubdomainMaxLength && spec.Hostname == "" && !spec.HostNetwork {
		n.addWarning("metadata.name", "the pod name with the node's name appended is longer than a hostname (limit %d), so the hostname of the pod is truncated; set spec.hostname", validation.DNS1123LabelMaxLength)
	}
	path := field.NewPath("spec")
	if len(spec.ReadinessGates) > 0 {
		n.addWarning(path.Child("readinessGates").String(), "the pod can never be ready, because without an API server nothing sets these conditions; remove the gates")
	}
	for i := range spec.InitContainers {
		n.adviseContainer(spec, &spec.InitContainers[i], path.Child("initContainers").Index(i))
	}
	for i := range spec.Containers {
		n.adviseContainer(spec, &spec.Containers[i], path.Child("containers").Index(i))
	}
}

// adviseGrace warns about a negative grace period. It must be called before the defaults are set,
// because the defaults replace a negative grace period with one second.
func (n *objectProblems) adviseGrace(pod *v1.Pod) {
	if g := pod.Spec.TerminationGracePeriodSeconds; g != nil && *g < 0 {
		n.addWarning("spec.terminationGracePeriodSeconds", "%d is negative and treated as 1; set the intended number of seconds", *g)
	}
}

func (n *objectProblems) adviseContainer(spec *v1.PodSpec, c *v1.Container, path *field.Path) {
	lastIndexes := map[string]int{}
	for i := range c.Env {
		name := c.Env[i].Name
		if earlierIndex, isRepeated := lastIndexes[name]; isRepeated && name != "" {
			n.addWarning(path.Child("env").Index(i).Child("name").String(), "%q is also set by env[%d], and the last value is used; remove one", wording.Clip(name, 80), earlierIndex)
		}
		lastIndexes[name] = i
	}
	n.adviseUser(spec, c, path.Child("securityContext"))
	n.adviseProbe(c, c.StartupProbe, path.Child("startupProbe"))
	n.adviseProbe(c, c.LivenessProbe, path.Child("livenessProbe"))
	n.adviseProbe(c, c.ReadinessProbe, path.Child("readinessProbe"))
	if l := c.Lifecycle; l != nil {
		n.adviseHook(c, l.PostStart, path.Child("lifecycle", "postStart"))
		n.adviseHook(c, l.PreStop, path.Child("lifecycle", "preStop"))
	}
	n.adviseMemory(c.Resources.Limits, path.Child("resources", "limits"))
	n.adviseMemory(c.Resources.Requests, path.Child("resources", "requests"))
}

// adviseUser warns about a container that has user 0 and runAsNonRoot, because this container can
// never start.
func (n *objectProblems) adviseUser(spec *v1.PodSpec, c *v1.Container, path *field.Path) {
	user, nonRoot := spec.SecurityContext.RunAsUser, spec.SecurityContext.RunAsNonRoot
	if sc := c.SecurityContext; sc != nil {
		user, nonRoot = cmp.Or(sc.RunAsUser, user), cmp.Or(sc.RunAsNonRoot, nonRoot)
	}
	if user != nil && *user == 0 && nonRoot != nil && *nonRoot {
		n.addWarning(path.Child("runAsUser").String(), "0 is root, but runAsNonRoot is true, so container %q can never start; set another user", wording.Clip(c.Name, 80))
	}
}

// adviseProbe warns about a probe that names a port that the container does not define.
func (n *objectProblems) adviseProbe(c *v1.Container, p *v1.Probe, path *field.Path) {
	switch {
	case p == nil:
	case p.HTTPGet != nil:
		n.advisePort(c, p.HTTPGet.Port, path.Child("httpGet", "port"))
	case p.TCPSocket != nil:
		n.advisePort(c, p.TCPSocket.Port, path.Child("tcpSocket", "port"))
	}
}

func (n *objectProblems) adviseHook(c *v1.Container, h *v1.LifecycleHandler, path *field.Path) {
	if h != nil && h.HTTPGet != nil {
		n.advisePort(c, h.HTTPGet.Port, path.Child("httpGet", "port"))
	}
}

// advisePort warns about a port name that the container does not define. Kubernetes detects this
// mistake only when the probe or hook runs.
func (n *objectProblems) advisePort(c *v1.Container, port intstr.IntOrString, path *field.Path) {
	if port.Type == intstr.Int || len(validation.IsValidPortName(port.StrVal)) > 0 ||
		slices.ContainsFunc(c.Ports, func(p v1.ContainerPort) bool { return p.Name == port.StrVal }) {
		return
	}
	n.addWarning(path.String(), "%q is not a port name of this container, so the probe or hook always fails; add it to ports, or use a number", wording.Clip(port.StrVal, 80))
}

// adviseMemory warns about an amount of memory that contains a fraction of a byte, such as "400m".
// The suffix "m" means thousandths.
func (n *objectProblems) adviseMemory(list v1.ResourceList, path *field.Path) {
	q, ok := list[v1.ResourceMemory]
	if at := path.Key("memory").String(); ok && q.MilliValue()%1000 != 0 && n.hasField(at) {
		n.addWarning(at, "%q contains a fraction of a byte, because m means thousandths; write Mi for mebibytes", q.String())
	}
}

// hasField reports whether the manifest contains a field. If it does not, the value of the field
// is a default.
func (n *objectProblems) hasField(path string) bool {
	_, ok := n.fields[path]
	return ok
}

// adviseReclaim warns about a PersistentVolume with the reclaim policy Delete or Recycle, because
// podd treats every policy as Retain.
func adviseReclaim(pv *v1.PersistentVolume, n *objectProblems) {
	switch policy := pv.Spec.PersistentVolumeReclaimPolicy; policy {
	case v1.PersistentVolumeReclaimDelete, v1.PersistentVolumeReclaimRecycle:
		n.addWarning("spec.persistentVolumeReclaimPolicy", "%s is treated as Retain, because podd never deletes the data of a PersistentVolume", policy)
	}
}
