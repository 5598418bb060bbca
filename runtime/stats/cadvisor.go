package stats

import (
	"github.com/google/cadvisor/lib/model"

	"podd/runtime"
)

// Containers returns the cgroups of a sample as the kubelet's cAdvisor reports them, by
// name. A container and a sandbox have their CRI ID and the labels of their pod. The cgroup
// of a pod has only the labels of the pod. Callers must not modify the result.
func (s *Sample) Containers() map[string]*model.ContainerInfo {
	containers := map[string]*model.ContainerInfo{}
	add := func(c *Cgroup, id, image string, labels map[string]string) {
		if c == nil {
			return
		}
		info := *c.Info
		info.Spec.Labels, info.Spec.Image = labels, toValidUTF8(image)
		if id != "" {
			info.Id, info.Aliases = id, []string{id, info.Name}
		}
		containers[info.Name] = &info
	}
	for _, c := range append([]*Cgroup{s.Node, s.AllPodsCgroup, s.OwnCgroup, s.RuntimeCgroup, s.SystemCgroup}, s.QoSClassCgroups...) {
		add(c, "", "", nil)
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		add(p.Cgroup, "", "", p.labels(""))
		add(p.Sandbox, p.Pod.SandboxID, "", p.labels(""))
		for _, c := range p.Containers {
			add(c.Cgroup, c.ID, c.Image, p.labels(c.Name))
		}
	}
	return containers
}

// CPURates returns the CPU usage of the cgroups of a sample in nanoseconds per second, by the name of the
// cgroup. It omits the cgroups whose usage is unknown.
func (s *Sample) CPURates() map[string]uint64 {
	rates := map[string]uint64{}
	s.eachCgroup(func(c *Cgroup) {
		if c.NanoCores != nil {
			rates[c.Info.Name] = *c.NanoCores
		}
	})
	return rates
}

// labels returns the labels of a container of the pod. If container is "", it returns only
// the labels of the pod.
func (p *PodSample) labels(container string) map[string]string {
	labels := map[string]string{
		runtime.LabelPodNamespace: p.Key.Namespace, runtime.LabelPodName: p.Key.Name, runtime.LabelPodUID: string(p.UID),
	}
	if container != "" {
		labels[runtime.LabelContainerName] = container
	}
	return labels
}
