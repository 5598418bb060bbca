package cli

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"podd/cmd/podd/internal/poddtest"
	"podd/server"
)

// newDescribedPod returns a pod with most kinds of fields that podd describe prints. One annotation
// contains control characters of terminals.
func newDescribedPod() *v1.Pod {
	p := poddtest.SetCrashed(poddtest.NewPod("db.yaml", 1, "db", "pg")).Pod
	p.UID, p.Labels = "u", map[string]string{"app": "db", "tier": "back"}
	p.Annotations = map[string]string{"note": "two\nlines \x1b[2J\tand a tab"}
	p.Spec.NodeName, p.Status.HostIP, p.Status.PodIP = "n1", "192.0.2.1", "10.88.0.3"
	p.Status.PodIPs, p.Status.QOSClass = []v1.PodIP{{IP: "10.88.0.3"}, {IP: "fd00::3"}}, v1.PodQOSBurstable
	p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionFalse}, {Type: v1.PodInitialized, Status: v1.ConditionTrue}}
	p.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute}}
	p.Spec.Volumes = []v1.Volume{
		{Name: "data", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/srv", Type: new(v1.HostPathDirectory)}}},
		{Name: "keys", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "tls"}}},
		{Name: "tmp", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
	}
	c := &p.Spec.Containers[0]
	c.Command, c.Args = []string{"pg", "-D"}, []string{"/data"}
	c.Ports = []v1.ContainerPort{{Name: "sql", ContainerPort: 5432, HostPort: 15432, Protocol: v1.ProtocolTCP}}
	c.Resources = v1.ResourceRequirements{
		Limits:   v1.ResourceList{"memory": resource.MustParse("256Mi")},
		Requests: v1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("128Mi")},
	}
	c.LivenessProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/live", Port: intstr.FromInt32(80)}}, TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3}
	c.EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "pg-conf"}}}}
	c.Env = []v1.EnvVar{
		{Name: "A", Value: "1"},
		{Name: "PASSWORD", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "db"}, Key: "password"}}},
		{Name: "ME", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}},
	}
	c.VolumeMounts = []v1.VolumeMount{{Name: "keys", MountPath: "/keys", ReadOnly: true}, {Name: "data", MountPath: "/data", SubPath: "pg"}}
	return p
}

func TestDescribe_Goldens(t *testing.T) {
	p := newDescribedPod()
	events := []v1.Event{
		{Type: "Warning", Reason: "BackOff", Message: "Back-off restarting\x1b[2J", Count: 4, InvolvedObject: v1.ObjectReference{Kind: "Pod", UID: "u"},
			FirstTimestamp: *poddtest.MetaTimeBeforeAt(3 * time.Minute), LastTimestamp: *poddtest.MetaTimeBeforeAt(12 * time.Second), Source: v1.EventSource{Component: "kubelet", Host: "n1"}},
		{Type: "Normal", Reason: "Starting", Message: "Starting kubelet.", Count: 1, InvolvedObject: v1.ObjectReference{Kind: "Node", Name: "n1"},
			FirstTimestamp: *poddtest.MetaTimeBeforeAt(time.Hour), LastTimestamp: *poddtest.MetaTimeBeforeAt(time.Hour), Source: v1.EventSource{Component: "kubelet", Host: "n1"}},
	}
	why := func(server.Key) string {
		return "waits 28s more: container pg crashed 4 times in a row; rule CrashBackOff"
	}
	d := &description{now: poddtest.At, events: events, explainState: why}
	d.writePod(p)
	compareGolden(t, "describe_pod", d.String())

	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", CreationTimestamp: *poddtest.MetaTimeBeforeAt(time.Hour), Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}}}
	n.Spec.Taints = []v1.Taint{{Key: "a", Value: "b", Effect: v1.TaintEffectNoSchedule}}
	n.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "192.0.2.1"}, {Type: v1.NodeHostName, Address: "n1"}}
	n.Status.Allocatable = v1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi"), "pods": resource.MustParse("110")}
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status", LastHeartbeatTime: *poddtest.MetaTimeBeforeAt(0), LastTransitionTime: *poddtest.MetaTimeBeforeAt(time.Hour)}}
	n.Status.NodeInfo.KubeletVersion = "v1.34.0"
	d = &description{now: poddtest.At, events: events}
	d.writeNode(n, []v1.Pod{*p})
	compareGolden(t, "describe_node", d.String())
}

// TestDescribe_Allocated checks that the description of a node contains the same resource requests of
// a pod that podd uses for admission. want is the CPU request of the pod.
func TestDescribe_Allocated(t *testing.T) {
	requests := func(cpu string) v1.Container {
		return v1.Container{Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse(cpu)}}}
	}
	side := requests("100m")
	side.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
	for want, p := range map[string]v1.PodSpec{
		"300m": {InitContainers: []v1.Container{side}, Containers: []v1.Container{requests("150m"), requests("50m")}},
		"600m": {InitContainers: []v1.Container{side, requests("500m")}, Containers: []v1.Container{requests("150m")}},
		"550m": {InitContainers: []v1.Container{requests("500m"), side}, Containers: []v1.Container{requests("150m")}, Overhead: v1.ResourceList{"cpu": resource.MustParse("50m")}},
		"700m": {Containers: []v1.Container{requests("150m")}, Resources: &v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("700m")}}},
	} {
		d := &description{}
		d.writeAllocated(&v1.Node{}, []v1.Pod{{Spec: p}})
		if got := d.text.String(); !strings.Contains(got, "  cpu\t"+want+" (") {
			t.Errorf("got\n%s\nwant a CPU request of %s", got, want)
		}
	}
}

// TestDescribe runs podd describe for pods and nodes.
func TestDescribe(t *testing.T) {
	f := poddtest.ServeShop(t)
	for words, want := range map[string]string{
		"pod web": "Name:         web-n1\n", "po kube-system/dns": "Namespace:    kube-system\n", "node": "Name:               n1\n",
	} {
		got := podd(t, f, append([]string{"describe"}, strings.Fields(words)...)...)
		if got.Code != 0 || !strings.Contains(got.Out, want) || got.Err != "" {
			t.Errorf("podd describe %s: got %+v, want output that contains %q", words, got, want)
		}
	}
	if got := podd(t, f, "describe", "pod", "wbe"); got.Code != 1 || !strings.Contains(got.Err, `did you mean "web"?`) {
		t.Errorf("podd describe pod wbe: got %+v, want an error that suggests web", got)
	}
}
