//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/runtime/runtimetest/stack"
	"podd/server"
)

// withVolume mounts a volume into all containers.
func withVolume(p *v1.Pod, name, path string, source v1.VolumeSource) {
	p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: name, VolumeSource: source})
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: name, MountPath: path})
	}
}

// readTrace waits until a pod has written a file to /trace, and returns its content.
func (d *daemon) readTrace(name string) string {
	d.t.Helper()
	var text []byte
	d.eventually("a pod writes /trace/"+name, func() (err error) {
		text, err = os.ReadFile(filepath.Join(d.traceDir(), name))
		return err
	})
	return strings.TrimSpace(string(text))
}

// writeTrace returns a script that writes the output of commands to a file in /trace. The file
// is created by a rename, so that it is always complete.
func writeTrace(name, commands string) string {
	return "{ " + commands + "; } >/trace/." + name + " 2>&1; mv /trace/." + name + " /trace/" + name + "; "
}

func TestEmptyDirs(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	p := d.pod("web",
		shell("main", "echo hello >/disk/x; "+writeTrace("mount", "grep ' /memory ' /proc/mounts")+writeTrace("size", "df -k /memory | tail -1")+serve("main")),
		shell("other", "while ! [ -e /disk/x ]; do sleep 0.05; done; "+writeTrace("read", "cat /disk/x")+serve("other")))
	withVolume(p, "disk", "/disk", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
	withVolume(p, "memory", "/memory", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{
		Medium: v1.StorageMediumMemory, SizeLimit: new(resource.MustParse("8Mi")),
	}})
	d.apply(p)
	view := d.untilApplied("web")
	if got, want := d.readTrace("read"), "hello"; got != want {
		t.Errorf("file of container main, read in container other: got %q, want %q", got, want)
	}
	if got := d.readTrace("mount"); !strings.Contains(got, " tmpfs ") {
		t.Errorf("mount of the volume with medium Memory: got %q, want a tmpfs", got)
	}
	if got := strings.Fields(d.readTrace("size")); len(got) < 2 || got[1] != "8192" {
		t.Errorf("df -k of the volume with medium Memory: got %q, want a size of 8192 KiB", got)
	}
	disk := filepath.Join(d.root(), "pods", string(view.Pod.UID), "volumes/kubernetes.io~empty-dir/disk")
	if text, err := os.ReadFile(filepath.Join(disk, "x")); string(text) != "hello\n" {
		t.Errorf("file in the volume on the host: got %q, error %v; want %q", text, err, "hello\n")
	}
	// The volumes are kept when podd is killed. startDaemon checks at the end that they are removed with the pod.
	d.crash()
	d.untilApplied("web")
	if _, err := os.Stat(filepath.Join(disk, "x")); err != nil {
		t.Error(err)
	}
}

func TestHostPaths(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	host := filepath.Join(d.dir, "host")
	if err := os.MkdirAll(host, 0o700); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(host, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := os.WriteFile(filepath.Join(host, "file"), []byte("here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := d.pod("web", shell("main", writeTrace("file", "cat /v/file")+writeTrace("kinds", "stat -c %F /v/dir /v/made /v/new /v/socket /v/null")+serve("main")))
	for name, kind := range map[string]v1.HostPathType{
		"made": v1.HostPathDirectoryOrCreate, "new": v1.HostPathFileOrCreate, "file": v1.HostPathFile,
		"socket": v1.HostPathSocket,
	} {
		withVolume(p, name, "/v/"+name, v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: filepath.Join(host, name), Type: &kind}})
	}
	withVolume(p, "dir", "/v/dir", v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: host, Type: new(v1.HostPathDirectory)}})
	withVolume(p, "null", "/v/null", v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/dev/null", Type: new(v1.HostPathCharDev)}})
	d.apply(p)
	d.untilApplied("web")
	if got, want := d.readTrace("kinds"), "directory\ndirectory\nregular empty file\nsocket\ncharacter special file"; got != want || d.readTrace("file") != "here" {
		t.Errorf("in the container: got file types %q and file content %q, want %q and %q", got, d.readTrace("file"), want, "here")
	}

	// A pod waits while its host path does not exist or has another type than the required one.
	late := d.pod("late", shell("main", serve("late")))
	withVolume(late, "dir", "/v", v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: filepath.Join(host, "late"), Type: new(v1.HostPathDirectory)}})
	odd := d.pod("odd", shell("main", serve("odd")))
	withVolume(odd, "dir", "/v", v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/dev/null", Type: new(v1.HostPathBlockDev)}})
	d.apply(late, odd)
	d.untilProblem("late", filepath.Join(host, "late"))
	d.untilProblem("odd", "/dev/null")
	if err := os.Mkdir(filepath.Join(host, "late"), 0o700); err != nil {
		t.Fatal(err)
	}
	d.untilApplied("late")
}

func TestEnvironmentVariables(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	c := shell("main", writeTrace("env", `set | grep -E "^(A|B|C|NAME|NS|UID|IP|HOST|NODE|LABEL|CPU|MEM)="; hostname`)+serve("main"))
	field := func(name, path string) v1.EnvVar {
		return v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: path}}}
	}
	amount := func(name, what, divisor string) v1.EnvVar {
		return v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{ResourceFieldRef: &v1.ResourceFieldSelector{Resource: what, Divisor: resource.MustParse(divisor)}}}
	}
	c.Env = []v1.EnvVar{
		{Name: "A", Value: "one"}, {Name: "B", Value: "$(A) two"}, {Name: "C", Value: "$$(A) $(NONE)"},
		field("NAME", "metadata.name"), field("NS", "metadata.namespace"), field("UID", "metadata.uid"),
		field("IP", "status.podIP"), field("HOST", "status.hostIP"), field("NODE", "spec.nodeName"), field("LABEL", "metadata.labels['app']"),
		amount("CPU", "limits.cpu", "1m"), amount("MEM", "requests.memory", "1Ki"),
	}
	c.Resources = v1.ResourceRequirements{
		Limits:   v1.ResourceList{"cpu": resource.MustParse("200m"), "memory": resource.MustParse("64Mi")},
		Requests: v1.ResourceList{"memory": resource.MustParse("32Mi")},
	}
	p := d.pod("web", c)
	p.Labels = map[string]string{"app": "demo"}
	d.apply(p)
	view := d.untilApplied("web")
	st := view.Pod.Status
	want := strings.Join([]string{ // as the shell sorts and quotes them
		"A='one'", "B='one two'", "C='$(A) $(NONE)'", "CPU='200'", "HOST='" + st.HostIP + "'", "IP='" + st.PodIP + "'",
		"LABEL='demo'", "MEM='32768'", "NAME='" + d.podName("web") + "'", "NODE='" + d.node + "'", "NS='default'",
		"UID='" + string(view.Pod.UID) + "'", d.podName("web"),
	}, "\n")
	if got := d.readTrace("env"); got != want || st.PodIP == "" || st.HostIP == "" {
		t.Errorf("in the container: got %q, want %q", got, want)
	}
	pid := d.container("web", "main").PID
	if got := cgroupValue(t, pid, "memory", "memory.limit_in_bytes", "memory.max"); got != strconv.Itoa(64<<20) {
		t.Errorf("memory limit of the container's cgroup: got %s bytes, want 64 MiB", got)
	}
	if got := cgroupValue(t, pid, "cpu", "cpu.cfs_quota_us", "cpu.max"); got != "20000" && got != "20000 100000" {
		t.Errorf("CPU quota of the container's cgroup: got %s, want 20000", got)
	}
}

// cgroupValue returns the content of a file in a process's cgroup: v1File in the controller's hierarchy
// with cgroup v1, and v2File with cgroup v2.
func cgroupValue(t testing.TB, pid int, controller, v1File, v2File string) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		file := filepath.Join("/sys/fs/cgroup", controller, parts[2], v1File)
		if parts[1] == "" {
			file = filepath.Join("/sys/fs/cgroup", parts[2], v2File)
		}
		value, err := os.ReadFile(file)
		if err == nil && (parts[1] == "" || strings.Contains(","+parts[1]+",", ","+controller+",")) {
			return strings.TrimSpace(string(value))
		}
	}
	t.Fatalf("process %d: got no cgroup for %s, want one: %s", pid, controller, text)
	return ""
}

// TestHostsFile checks that the hosts file contains the pod's name and its host aliases.
func TestHostsFile(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	aliases := []v1.HostAlias{{IP: "192.0.2.7", Hostnames: []string{"db", "db.example"}}}
	own := d.pod("own", shell("main", writeTrace("own", "cat /etc/hosts; hostname -f; hostname")+serve("own")))
	own.Spec.Subdomain, own.Spec.SetHostnameAsFQDN, own.Spec.HostAliases = "sub", new(true), aliases
	host := d.pod("host", shell("main", writeTrace("host", "cat /etc/hosts")+serve("host")))
	host.Spec.HostNetwork, host.Spec.HostAliases = true, aliases
	d.apply(own, host)
	view := d.untilApplied("own")
	full := d.podName("own") + ".sub.default.svc."
	for _, want := range []string{
		"# Kubernetes-managed hosts file.\n", view.Pod.Status.PodIP + "\t" + full, "\n192.0.2.7\tdb\tdb.example", "\n" + full,
	} {
		if got := d.readTrace("own"); !strings.Contains(got, want) {
			t.Errorf("hosts file and hostname in the container: got %q, want %q in it", got, want)
		}
	}
	d.untilApplied("host")
	if got := d.readTrace("host"); !strings.HasPrefix(got, "# Kubernetes-managed hosts file (host network).\n") || !strings.HasSuffix(got, "192.0.2.7\tdb\tdb.example") {
		t.Errorf("hosts file of the pod on the host's network: got %q, want the header for the host network first and the host alias last", got)
	}
}

// TestResolvConf checks the resolver configuration for each DNS policy, and that excess name
// servers are omitted.
func TestResolvConf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conf := filepath.Join(dir, "resolv.conf")
	if err := os.WriteFile(conf, []byte("nameserver 192.0.2.53\nsearch lan.example\noptions rotate\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, "--resolv-conf", conf, "--cluster-dns", "192.0.2.10", "--cluster-domain", "cluster.test")
	pod := func(name string, policy v1.DNSPolicy, c *v1.PodDNSConfig) *v1.Pod {
		p := d.pod(name, shell("main", writeTrace(name, "cat /etc/resolv.conf")+serve(name)))
		p.Spec.DNSPolicy, p.Spec.DNSConfig = policy, c
		return p
	}
	host := pod("host", v1.DNSClusterFirst, nil)
	host.Spec.HostNetwork = true
	more := &v1.PodDNSConfig{
		Nameservers: []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, Searches: []string{"more.example"},
		Options: []v1.PodDNSConfigOption{{Name: "ndots", Value: new("2")}},
	}
	d.apply(pod("node", v1.DNSDefault, nil), pod("cluster", v1.DNSClusterFirst, nil), host, pod("own", v1.DNSNone, more), pod("cut", v1.DNSDefault, more))
	for name, want := range map[string]string{
		"node":    "search lan.example|nameserver 192.0.2.53|options rotate",
		"cluster": "search default.svc.cluster.test svc.cluster.test cluster.test lan.example|nameserver 192.0.2.10|options ndots:5",
		"host":    "search lan.example|nameserver 192.0.2.53|options rotate",
		"own":     "search more.example|nameserver 192.0.2.1|nameserver 192.0.2.2|nameserver 192.0.2.3|options ndots:2",
		"cut":     "search lan.example more.example|nameserver 192.0.2.53|nameserver 192.0.2.1|nameserver 192.0.2.2|options rotate ndots:2",
	} {
		d.untilApplied(name)
		if got := strings.ReplaceAll(d.readTrace(name), "\n", "|"); got != want {
			t.Errorf("resolv.conf in pod %s: got %q, want %q", name, got, want)
		}
	}
	d.untilProblem("cut.yaml", "spec.dnsConfig.nameservers", "omitted: 192.0.2.3")
}

// TestHostname_TooLong checks that podd does not truncate an FQDN that is too long for a hostname, and
// reports a problem instead. The pod must start after the FQDN is shortened.
func TestHostname_TooLong(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "--cluster-domain", "cluster.test")
	p := d.pod("web", shell("main", writeTrace("web", "hostname")+serve("web")))
	p.Spec.Hostname, p.Spec.Subdomain, p.Spec.SetHostnameAsFQDN = strings.Repeat("a", 60), "sub", new(true)
	d.apply(p)
	d.untilProblem("web", "characters", "setHostnameAsFQDN")
	p = p.DeepCopy()
	p.Spec.Hostname = "short"
	d.apply(p)
	d.untilApplied("web")
	if got, want := d.readTrace("web"), "short.sub.default.svc.cluster.test"; got != want {
		t.Errorf("hostname in the container: got %q, want %q", got, want)
	}
}

// TestSharedProcesses checks that the containers of a pod with shareProcessNamespace can see the
// processes of the pod's other containers.
func TestSharedProcesses(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	look := func(name string) string {
		return "while ! grep -q 9876[5] /proc/[0-9]*/cmdline; do sleep 0.05; done; " + writeTrace(name, "echo sees it") + serve(name)
	}
	p := d.pod("web", shell("main", look("main")), shell("other", "trap 'exit 0' TERM; sleep 98765 & wait"))
	p.Spec.ShareProcessNamespace = new(true)
	d.apply(p)
	d.untilApplied("web")
	if got, want := d.readTrace("main"), "sees it"; got != want {
		t.Errorf("trace of container main after it searched for a process of container other: got %q, want %q", got, want)
	}
}

func TestNamespacesAndSeccomp(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	namespaces := func(name string) string {
		return writeTrace(name, "for n in net pid ipc; do readlink /proc/self/ns/$n; done") + serve(name)
	}
	host := d.pod("host", shell("main", namespaces("host")))
	host.Spec.HostNetwork, host.Spec.HostPID, host.Spec.HostIPC = true, true, true
	host.Spec.SecurityContext = &v1.PodSecurityContext{SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeUnconfined}}
	own := d.pod("own", shell("main", namespaces("own")))
	own.Spec.SecurityContext = &v1.PodSecurityContext{SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault}}
	d.apply(host, own)
	d.untilApplied("host")
	d.untilApplied("own")
	inHost, inOwn := strings.Split(d.readTrace("host"), "\n"), strings.Split(d.readTrace("own"), "\n")
	for i, kind := range []string{"net", "pid", "ipc"} {
		here, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			t.Fatal(err)
		}
		if inHost[i] != here || inOwn[i] == here {
			t.Errorf("namespace %s: got %s in the pod with host namespaces and %s in the other pod, want %s in the pod with host namespaces and another namespace in the other pod", kind, inHost[i], inOwn[i], here)
		}
	}
	for name, want := range map[string]string{"host": "0", "own": "2"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.container(name, "main").PID))
		if err != nil || !strings.Contains(string(text), "\nSeccomp:\t"+want+"\n") {
			t.Errorf("/proc/PID/status of the process in pod %s: got %s, error %v; want Seccomp mode %s", name, text, err, want)
		}
	}
}

var ports atomic.Int32

// hostPort returns a host port that no other test uses.
func hostPort() int32 { return 21000 + ports.Add(1) }

// web returns a container that serves on a port of the host.
func web(port int32) v1.Container {
	return v1.Container{Name: "web", Image: stack.WebImage, Ports: []v1.ContainerPort{{ContainerPort: 8080, HostPort: port}}}
}

// untilServed waits until a pod responds on a port of the host.
func (d *daemon) untilServed(port int32, pod string) {
	d.t.Helper()
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	d.eventually(fmt.Sprintf("%s responds on port %d", pod, port), func() error {
		reply, err := client.Get(fmt.Sprintf("http://%s:%d/", hostAddress(d.t), port))
		if err != nil {
			return err
		}
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		if err == nil && string(text) != "hello from "+d.podName(pod)+"\n" {
			err = fmt.Errorf("got the response %q, want %q", text, "hello from "+d.podName(pod)+"\n")
		}
		return err
	})
}

// hostAddress returns an address of the host that does not belong to a pod network.
func hostAddress(t testing.TB) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		ip, _, err := net.ParseCIDR(a.String())
		if err == nil && ip.To4() != nil && !ip.IsLoopback() && !strings.HasPrefix(ip.String(), "10.88.") && !strings.HasPrefix(ip.String(), "10.188.") {
			return ip.String()
		}
	}
	t.Fatalf("addresses of the host: got %v, want an IPv4 address outside the pod networks", addrs)
	return ""
}

// TestHostPorts_Sidecar checks that podd makes the host port of a sidecar container available. A kubelet
// ignores host ports of init containers.
func TestHostPorts_Sidecar(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	port := hostPort()
	p := d.pod("web", shell("main", serve("web")))
	side := web(port)
	side.Name, side.RestartPolicy = "side", new(v1.ContainerRestartPolicyAlways)
	p.Spec.InitContainers = []v1.Container{side}
	d.apply(p)
	d.untilApplied("web")
	d.untilServed(port, "web")
}

func TestHostPorts(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	one, two := hostPort(), hostPort()
	d.apply(d.pod("a", web(one)))
	d.untilApplied("a")
	d.untilServed(one, "a")

	// While the first pod has the port, the second pod waits. It starts when the first one is removed.
	d.apply(d.pod("b", web(one)))
	d.untilProblem("b", strconv.Itoa(int(one)), "a-"+d.node, "a.yaml")
	d.remove("a")
	d.untilGone("a")
	d.untilApplied("b")
	d.untilServed(one, "b")

	// An edit of the file replaces pod b with pod c, which gets the port of b.
	d.write("b", manifestText(d, d.pod("c", web(one))))
	d.until("pod b is removed and pod c is ready", func(v *server.View) error {
		if p := d.find(v, "c"); p == nil || !p.Ready || d.find(v, "b") != nil {
			return fmt.Errorf("got pod b %+v, pod c %+v; want no pod b and pod c ready", d.find(v, "b"), p)
		}
		return nil
	})
	d.untilServed(one, "c")

	// Two pods swap their ports.
	d.remove("b")
	d.untilGone("c")
	d.apply(d.pod("x", web(one)), d.pod("y", web(two)))
	d.untilApplied("x")
	d.untilApplied("y")
	d.apply(d.pod("x", web(two)), d.pod("y", web(one)))
	d.untilApplied("x")
	d.untilApplied("y")
	d.untilServed(two, "x")
	d.untilServed(one, "y")
}

// TestEmptyDirLimit checks that a pod that exceeds the size limit of a volume is evicted with
// the kubelet's message and without its grace period.
func TestEmptyDirLimit(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	p := d.pod("web", shell("main", "trap '' TERM; head -c 4194304 /dev/zero >/disk/x; "+serve("main")))
	p.Spec.TerminationGracePeriodSeconds = new(int64(3600))
	withVolume(p, "disk", "/disk", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("1Mi"))}})
	d.apply(p)
	d.untilPod("is evicted", "web", func(p *server.PodView) error {
		s := p.Pod.Status
		if s.Phase != v1.PodFailed || s.Reason != "Evicted" || !strings.Contains(s.Message, `Usage of EmptyDir volume "disk" exceeds the limit "1Mi"`) {
			return fmt.Errorf("got phase %s, reason %q and message %q, want Failed, Evicted and a message that the usage of volume disk exceeds 1Mi", s.Phase, s.Reason, s.Message)
		}
		if len(s.ContainerStatuses) != 1 || s.ContainerStatuses[0].State.Terminated == nil {
			return fmt.Errorf("got container statuses %+v, want one terminated container", s.ContainerStatuses)
		}
		return nil
	})
}
