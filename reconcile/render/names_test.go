package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"pgregory.net/rapid"

	"podd/manifest"
	"podd/runtime"
)

// TestCgroupParent checks the parent cgroup of a pod for each driver, root and QoS class.
func TestCgroupParent(t *testing.T) {
	burstable := v1.PodSpec{Containers: []v1.Container{{Resources: amounts("1", "", "", "")}}}
	guaranteed := v1.PodSpec{Containers: []v1.Container{{Resources: amounts("1", "1", "1Gi", "1Gi")}}}
	tests := []struct {
		spec         v1.PodSpec
		root, driver string
		want         string
	}{
		{v1.PodSpec{}, "", "cgroupfs", "/kubepods/besteffort/podab-c1-d"},
		{burstable, "", "", "/kubepods/burstable/podab-c1-d"},
		{guaranteed, "/", "cgroupfs", "/kubepods/podab-c1-d"},
		{burstable, "/edge/podd", "cgroupfs", "/edge/podd/kubepods/burstable/podab-c1-d"},
		{v1.PodSpec{}, "", "systemd", "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podab_c1_d.slice"},
		{guaranteed, "", "systemd", "/kubepods.slice/kubepods-podab_c1_d.slice"},
		{burstable, "/edge-1/podd", "systemd", "/edge_1.slice/edge_1-podd.slice/edge_1-podd-kubepods.slice/" +
			"edge_1-podd-kubepods-burstable.slice/edge_1-podd-kubepods-burstable-podab_c1_d.slice"},
	}
	for _, tt := range tests {
		p := podOf(tt.spec)
		p.UID = "ab-c1-d"
		if got := cgroupParent(p, Node{CgroupRoot: tt.root, CgroupDriver: tt.driver}); got != tt.want {
			t.Errorf("root %q, driver %q: got %s, want %s", tt.root, tt.driver, got, tt.want)
		}
	}
}

// TestCgroupParent_WithoutPodCgroups checks a node with WithoutPodCgroups. The runtime chooses the
// cgroup of a pod, and the QoS classes have no cgroups.
func TestCgroupParent_WithoutPodCgroups(t *testing.T) {
	on := Node{CgroupRoot: "/edge", WithoutPodCgroups: true}
	sandbox, err := Sandbox(SandboxInput{Pod: podOf(v1.PodSpec{Containers: []v1.Container{{Resources: amounts("1", "1", "1Gi", "1Gi")}}}), Node: on})
	if err != nil {
		t.Fatal(err)
	}
	if got := sandbox.Linux.CgroupParent; got != "" {
		t.Errorf("got cgroup parent %q, want none", got)
	}
	if sandbox.Linux.Resources.GetMemoryLimitInBytes() != 1<<30 {
		t.Errorf("got resources %v, want those of the pod", sandbox.Linux.Resources)
	}
	if got := QOSCgroups(on, QOSRequests{}); len(got) > 0 {
		t.Errorf("got QoS cgroups %v, want none", got)
	}
}

// TestHostname checks the host name, domain and kernel host name of a pod.
func TestHostname(t *testing.T) {
	long := strings.Repeat("a", 62) + "-b"
	yes := true
	tests := []struct {
		name                 string
		pod                  string
		spec                 v1.PodSpec
		host, domain, kernel string
	}{
		{"name of the pod", "web-node1", v1.PodSpec{}, "web-node1", "", "web-node1"},
		{"spec.hostname", "web", v1.PodSpec{Hostname: "h"}, "h", "", "h"},
		{"name too long", long, v1.PodSpec{}, long[:62], "", long[:62]},
		{"subdomain", "web", v1.PodSpec{Subdomain: "s"}, "web", "s.ns.svc.cluster.local", "web"},
		{"hostnameOverride", "web", v1.PodSpec{Hostname: "h", Subdomain: "s", HostnameOverride: new("a.example.com")}, "a.example.com", "", "a.example.com"},
		{"setHostnameAsFQDN", "web", v1.PodSpec{Subdomain: "s", SetHostnameAsFQDN: &yes}, "web", "s.ns.svc.cluster.local", "web.s.ns.svc.cluster.local"},
		{"setHostnameAsFQDN without subdomain", "web", v1.PodSpec{SetHostnameAsFQDN: &yes}, "web", "", "web"},
		{"host network", "web", v1.PodSpec{HostNetwork: true, Hostname: "h"}, "", "", ""},
	}
	for _, tt := range tests {
		p := podOf(tt.spec)
		p.Key.Name = tt.pod
		n := Node{ClusterDomain: "cluster.local"}
		host, domain := hostname(p, n)
		if kernel := kernelHostname(p, n); host != tt.host || domain != tt.domain || kernel != tt.kernel {
			t.Errorf("%s: got host name %q, domain %q and kernel host name %q, want %q, %q and %q", tt.name, host, domain, kernel, tt.host, tt.domain, tt.kernel)
		}
	}
}

// TestHostnameFits checks that the host name of any pod name is valid.
func TestHostnameFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := podOf(v1.PodSpec{})
		p.Key.Name = rapid.StringMatching(`[a-z]([-.a-z0-9]{0,250}[a-z0-9])?`).Draw(t, "name")
		host, _ := hostname(p, Node{})
		if len(host) > 63 || host == "" || strings.HasSuffix(host, "-") || strings.HasSuffix(host, ".") || !strings.HasPrefix(p.Key.Name, host) {
			t.Fatalf("pod name %q: got host name %q, want a valid one", p.Key.Name, host)
		}
	})
}

// TestReservedKeys checks that a manifest cannot set the labels and annotations that
// podd relies on.
func TestReservedKeys(t *testing.T) {
	p := podOf(v1.PodSpec{})
	p.Object.Labels = map[string]string{
		runtime.LabelPodUID: "forged", runtime.LabelInstance: "forged", runtime.LabelPodName: "forged", "app": "web",
	}
	p.Object.Annotations = map[string]string{
		runtime.AnnotationPodHash: "forged", runtime.AnnotationGracePeriod: "forged", runtime.AnnotationPodDevices: "forged", runtime.AnnotationSize: "forged", "note": "kept",
		manifest.AnnotationConfigSource: "forged",
	}
	p.Origin.Kind = manifest.KindFile
	s := sandbox(t, p, Node{}, 3)
	want := map[string]string{
		"app": "web", runtime.LabelPodName: "pod", runtime.LabelPodNamespace: "ns", runtime.LabelPodUID: "u1",
	}
	if diff := cmp.Diff(want, s.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"note": "kept", manifest.AnnotationConfigSource: "file", runtime.AnnotationPodHash: "v1:00", runtime.AnnotationSize: "cpu=/ memory=/"}, s.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if s.Metadata.Attempt != 3 || p.Object.Labels[runtime.LabelPodUID] != "forged" {
		t.Errorf("got attempt %d and labels %v of the pod, want attempt 7 and unchanged labels", s.Metadata.Attempt, p.Object.Labels)
	}
}

// TestPortMappings checks the port mappings of a pod.
func TestPortMappings(t *testing.T) {
	spec := &v1.PodSpec{
		InitContainers: []v1.Container{
			{Name: "init", Ports: []v1.ContainerPort{{ContainerPort: 1, HostPort: 1}}},
			{Name: "sidecar", RestartPolicy: &always, Ports: []v1.ContainerPort{{ContainerPort: 2, HostPort: 2, Protocol: v1.ProtocolUDP}}},
		},
		Containers: []v1.Container{{Name: "a", Ports: []v1.ContainerPort{
			{ContainerPort: 3, HostPort: 30, HostIP: "192.0.2.1"},
			{ContainerPort: 3, HostPort: 30, HostIP: "192.0.2.1"},
			{ContainerPort: 3, HostPort: 30, HostIP: "2001:db8::1"},
			{Name: "n", ContainerPort: 4, Protocol: v1.ProtocolSCTP},
			{Name: "n", ContainerPort: 5},
		}}},
	}
	var got []string
	for _, m := range portMappings(spec) {
		got = append(got, strings.Join(strings.Fields(m.String()), " "))
	}
	want := []string{
		`container_port:3 host_port:30 host_ip:"192.0.2.1"`,
		`container_port:3 host_port:30 host_ip:"2001:db8::1"`,
		`protocol:SCTP container_port:4`,
		`protocol:UDP container_port:2 host_port:2`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("port mappings (-want +got)\n%s", diff)
	}
}

// TestNamespaces checks the modes of the namespaces of a pod.
func TestNamespaces(t *testing.T) {
	yes := true
	for _, tt := range []struct {
		name              string
		spec              v1.PodSpec
		network, pid, ipc cri.NamespaceMode
	}{
		{"default", v1.PodSpec{}, cri.NamespaceMode_POD, cri.NamespaceMode_CONTAINER, cri.NamespaceMode_POD},
		{"shared processes", v1.PodSpec{ShareProcessNamespace: &yes}, cri.NamespaceMode_POD, cri.NamespaceMode_POD, cri.NamespaceMode_POD},
		{"namespaces of the host", v1.PodSpec{HostNetwork: true, HostPID: true, HostIPC: true}, cri.NamespaceMode_NODE, cri.NamespaceMode_NODE, cri.NamespaceMode_NODE},
	} {
		o := namespaces(&tt.spec, runtime.IDRange{})
		if o.Network != tt.network || o.Pid != tt.pid || o.Ipc != tt.ipc || o.UsernsOptions.GetMode() != cri.NamespaceMode_NODE {
			t.Errorf("%s: got %v, want network %v, pid %v, ipc %v", tt.name, o, tt.network, tt.pid, tt.ipc)
		}
	}
}
