package shape

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/runtime/runtimetest/stack"
)

// Pods returns the pods to compare. The first pod uses the processor up to a limit that it
// reaches even on a busy host, and has an idle second container. The second pod uses memory. The
// third pod has written to its writable layer, its volumes and its log. The fourth pod is on the
// host's network.
func Pods() []*v1.Pod {
	busy := pod("busy", container("main", "while :; do :; done"), container("idle", "sleep 100000"))
	busy.Spec.Containers[0].Resources = v1.ResourceRequirements{
		Requests: resourceList("100m", "32Mi"), Limits: resourceList("100m", "64Mi"),
	}
	memory := pod("memory", container("main", "head -c 67108864 /dev/zero >/memory/x; sleep 100000"))
	addVolume(memory, "memory", "/memory", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{
		Medium: v1.StorageMediumMemory, SizeLimit: new(resource.MustParse("96Mi")),
	}})
	memory.Spec.Containers[0].Resources.Limits = resourceList("500m", "256Mi")
	const fill = "head -c 20971520 /dev/zero"
	writer := pod("writer", container("main", fill+" >/x; "+fill+" >/disk/x; yes 0123456789012345678901234567890123456789 | head -c 3145728; sync; sleep 100000"))
	addVolume(writer, "disk", "/disk", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
	addVolume(writer, "machine", "/machine", v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/tmp"}})
	addVolume(writer, "names", "/names", v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{Items: []v1.DownwardAPIVolumeFile{
		{Path: "name", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}},
	}}})
	onNode := pod("onnode", container("main", "sleep 100000"))
	onNode.Spec.HostNetwork = true
	return []*v1.Pod{busy, memory, writer, onNode}
}

func pod(name string, containers ...v1.Container) *v1.Pod {
	return &v1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1.PodSpec{TerminationGracePeriodSeconds: new(int64(1)), Containers: containers},
	}
}

func container(name, script string) v1.Container {
	return v1.Container{Name: name, Image: stack.BusyboxImage, ImagePullPolicy: v1.PullIfNotPresent, Command: []string{"sh", "-c", script}}
}

func resourceList(cpu, memory string) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}
}

func addVolume(p *v1.Pod, name, path string, source v1.VolumeSource) {
	p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: name, VolumeSource: source})
	c := &p.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: name, MountPath: path})
}
