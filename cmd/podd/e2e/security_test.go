//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/registry"
	"podd/server"
)

// pushAs pushes busybox with the given user in the image's config, and returns the reference of the
// image.
func (h testRegistry) pushAs(d *daemon, user, name string) string {
	d.t.Helper()
	image, err := registry.FromTarball(d.on.Tools.Images, stack.BusyboxImage)
	if err != nil {
		d.t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		d.t.Fatal(err)
	}
	config := file.Config
	config.User = user
	if image, err = mutate.Config(image, config); err != nil {
		d.t.Fatal(err)
	}
	ref, err := h.Push(image, name)
	if err != nil {
		d.t.Fatal(err)
	}
	return ref
}

// processUID returns the user ID of a process.
func processUID(t testing.TB, pid int) string { return processStatus(t, pid, "Uid") }

// processStatus returns the first word after key in /proc/PID/status.
func processStatus(t testing.TB, pid int, key string) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.Fields(rest + " -")[0]
		}
	}
	t.Fatalf("/proc/%d/status: got no line %s, want one", pid, key)
	return ""
}

// TestRunAsNonRoot checks that podd does not start a container with runAsNonRoot if the user of its
// image is root or is not numeric. A restarted container must have the same user.
func TestRunAsNonRoot(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	hub, root := withRegistry(d, registry.Options{})
	number, named := hub.pushAs(d, "1234:5678", "team/number:1"), hub.pushAs(d, "nobody", "team/named:1")
	idle := func(name, image string) v1.Container {
		return v1.Container{Name: name, Image: image, Command: []string{"sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait"}}
	}
	p := d.pod("web", idle("number", number), idle("named", named), idle("root", root), idle("set", root))
	p.Spec.SecurityContext = &v1.PodSecurityContext{RunAsNonRoot: new(true)}
	p.Spec.Containers[3].SecurityContext = &v1.SecurityContext{RunAsUser: new(int64(77))}
	d.apply(p)
	d.untilProblem("web", "root: CreateContainerConfigError", "container has runAsNonRoot and image will run as root")
	d.untilProblem("web", "named: CreateContainerConfigError", `non-numeric user ("nobody")`)
	d.untilPod("runs its other containers", "web", func(*server.PodView) error {
		if len(d.containers("web", "")) != 2 {
			return fmt.Errorf("got running containers %+v, want the containers number and set", d.containers("web", ""))
		}
		return nil
	})
	was := d.container("web", "number")
	if got := processUID(t, was.PID); got != "1234" {
		t.Errorf("container number: got the user ID %s, want 1234 of the image", got)
	}
	if got := processUID(t, d.container("web", "set").PID); got != "77" {
		t.Errorf("container set, with runAsUser: got the user ID %s, want 77", got)
	}
	// A restarted container must not run as root (CVE-2019-11245).
	if err := syscall.Kill(was.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.untilPod("is restarted", "web", func(*server.PodView) error {
		if all := d.containers("web", "number"); len(all) != 1 || all[0].ID == was.ID {
			return fmt.Errorf("got the running containers %+v, want one other than %s", all, was.ID)
		}
		return nil
	})
	if got := processUID(t, d.container("web", "number").PID); got != "1234" {
		t.Errorf("container number after a restart: got the user ID %s, want 1234", got)
	}
}

// TestSysctls checks that podd sets safe sysctls and those of --allowed-unsafe-sysctls in a pod. podd must
// not start pods with other sysctls, or with sysctls that would change the node. If an edit adds a
// forbidden sysctl, the pod must keep running in its current version.
func TestSysctls(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "--allowed-unsafe-sysctls", "net.ipv4.conf.*,kernel.domainname,user.*")
	with := func(name string, sysctls ...v1.Sysctl) *v1.Pod {
		p := d.pod(name, shell("main", writeTrace(name, "cat /proc/sys/net/ipv4/ip_local_port_range /proc/sys/net/ipv4/conf/all/forwarding /proc/sys/kernel/domainname")+serve(name)))
		p.Spec.SecurityContext = &v1.PodSecurityContext{Sysctls: sysctls}
		return p
	}
	host := with("host", v1.Sysctl{Name: "kernel.domainname", Value: "example.test"})
	host.Spec.HostNetwork = true
	d.apply(
		with("web", v1.Sysctl{Name: "net.ipv4.ip_local_port_range", Value: "20000 30000"}, v1.Sysctl{Name: "net/ipv4/conf/all/forwarding", Value: "0"},
			v1.Sysctl{Name: "kernel.domainname", Value: "example.test"}),
		with("other", v1.Sysctl{Name: "kernel.msgmax", Value: "65536"}),
		host, with("user", v1.Sysctl{Name: "user.max_net_namespaces", Value: "100"}),
	)
	d.untilApplied("web")
	if got, want := strings.Join(strings.Fields(d.readTrace("web")), " "), "20000 30000 0 example.test"; got != want {
		t.Errorf("sysctls in the container: got %q, want %q", got, want)
	}
	d.untilProblem("host", "kernel.domainname would change the node, because hostNetwork is true")
	d.untilProblem("user", "user.max_net_namespaces would change the node, because hostUsers is not false")
	d.untilProblem("other", "kernel.msgmax", "--allowed-unsafe-sysctls")
	d.untilPod("is rejected", "other", func(p *server.PodView) error {
		if got := p.Pod.Status.Reason; got != "SysctlForbidden" {
			return fmt.Errorf("got the reason %q, want SysctlForbidden", got)
		}
		return nil
	})
	was := d.container("web", "main")
	d.apply(with("web", v1.Sysctl{Name: "net.core.somaxconn", Value: "1"}))
	d.untilProblem("web", "net.core.somaxconn", "keeps running")
	if now := d.container("web", "main"); now != was {
		t.Errorf("container after the edit: got %+v, want %+v", now, was)
	}
}

// TestDefaultSysctls checks that podd sets the sysctls of defaultPodSysctls in a pod, unless the pod has
// its own value or is on the host's network.
func TestDefaultSysctls(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "podd.yaml")
	const text = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
featureGates: {DefaultPodSysctls: true}
defaultPodSysctls: {net/core/somaxconn: "1024", kernel.domainname: example.test}
allowedUnsafeSysctls: [net.core.somaxconn]
`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const files = "/proc/sys/net/core/somaxconn /proc/sys/kernel/domainname"
	read, err := exec.Command("cat", strings.Fields(files)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, "--config", config)
	with := func(name string) *v1.Pod {
		return d.pod(name, shell("main", writeTrace(name, "cat "+files)+serve(name)))
	}
	own, host := with("own"), with("host")
	own.Spec.SecurityContext = &v1.PodSecurityContext{Sysctls: []v1.Sysctl{{Name: "net.core.somaxconn", Value: "512"}}}
	host.Spec.HostNetwork = true
	d.apply(with("default"), own, host)
	for name, want := range map[string]string{
		"default": "1024 example.test", "own": "512 example.test", "host": strings.Join(strings.Fields(string(read)), " "),
	} {
		d.untilApplied(name)
		if got := strings.Join(strings.Fields(d.readTrace(name)), " "); got != want {
			t.Errorf("sysctls in pod %s: got %q, want %q", name, got, want)
		}
	}
}

// TestSeccompLocalhost checks that a pod waits for the file of its seccomp profile, and that
// the profile takes effect.
func TestSeccompLocalhost(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	p := d.pod("web", shell("main", writeTrace("web", "mkdir /tmp/x; echo $?")+serve("web")))
	p.Spec.SecurityContext = &v1.PodSecurityContext{SeccompProfile: &v1.SeccompProfile{
		Type: v1.SeccompProfileTypeLocalhost, LocalhostProfile: new("own/nomkdir.json"),
	}}
	d.apply(p)
	file := filepath.Join(d.root(), "seccomp/own/nomkdir.json")
	d.untilProblem("web", "CreateContainerConfigError", file)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	const profile = `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["mkdir","mkdirat"],"action":"SCMP_ACT_ERRNO"}]}`
	if err := os.WriteFile(file, []byte(profile), 0o600); err != nil {
		t.Fatal(err)
	}
	d.untilApplied("web")
	if got := d.readTrace("web"); !strings.HasSuffix(got, "\n1") {
		t.Errorf("mkdir in the container: got the output %q, want exit code 1 as its last line", got)
	}
	if got := processStatus(t, d.container("web", "main").PID, "Seccomp"); got != "2" {
		t.Errorf("process of the container: got the seccomp mode %s, want 2", got)
	}
}

// runtimeStatus returns the CRI Status of the runtime, which contains the features of the runtime.
func (d *daemon) runtimeStatus() *cri.StatusResponse {
	d.t.Helper()
	reply, err := cri.NewRuntimeServiceClient(d.dial()).Status(d.t.Context(), &cri.StatusRequest{})
	if err != nil {
		d.t.Fatal(err)
	}
	return reply
}

// TestSecurityContext checks the effect of security contexts: in the containers the user, the working
// directory and the root file system, and in /proc the privileges and capabilities of their processes.
func TestSecurityContext(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	as := func(name string, sc *v1.SecurityContext) v1.Container {
		c := shell(name, writeTrace(name, "pwd; id -u; id -g; touch /x 2>/dev/null && echo writable || echo read-only; [ -t 1 ] && echo tty || echo no tty")+serve(name))
		c.SecurityContext = sc
		return c
	}
	free := as("free", &v1.SecurityContext{Privileged: new(true)})
	free.WorkingDir = "/tmp"
	bound := as("bound", &v1.SecurityContext{
		RunAsUser: new(int64(1234)), RunAsGroup: new(int64(5678)), ReadOnlyRootFilesystem: new(true), AllowPrivilegeEscalation: new(false),
		Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}, Add: []v1.Capability{"NET_BIND_SERVICE"}},
	})
	if err := os.Chmod(d.traceDir(), 0o777); err != nil {
		t.Fatal(err)
	}
	plain := as("plain", nil)
	plain.Stdin, plain.TTY = true, true
	plain.Command[2] = strings.Replace(plain.Command[2], "{ ", "[ -t 0 ] && [ -t 1 ] && touch /trace/terminal; { ", 1)
	d.apply(d.pod("web", free, bound, plain))
	d.untilApplied("web")
	for name, want := range map[string]struct{ output, privileges, bounding string }{
		"free":  {"/tmp 0 0 writable", "0", ""},
		"bound": {"/ 1234 5678 read-only", "1", "0000000000000400"},
		"plain": {"/ 0 0 writable", "0", d.on.DefaultCapabilities()},
	} {
		if got := strings.Join(strings.Fields(d.readTrace(name))[:4], " "); got != want.output {
			t.Errorf("container %s: got working directory, user, group and access %q, want %q", name, got, want.output)
		}
		pid := d.container("web", name).PID
		if got := processStatus(t, pid, "NoNewPrivs"); got != want.privileges {
			t.Errorf("container %s: got NoNewPrivs %s, want %s", name, got, want.privileges)
		}
		if got := processStatus(t, pid, "CapBnd"); want.bounding != "" && got != want.bounding {
			t.Errorf("container %s: got the bounding capabilities %s, want %s", name, got, want.bounding)
		}
	}
	if got, want := processStatus(t, d.container("web", "free").PID, "CapEff"), processStatus(t, os.Getpid(), "CapBnd"); got != want {
		t.Errorf("privileged container: got the effective capabilities %s, want %s, all of the host", got, want)
	}
	d.readTrace("terminal")
}

// TestUserNamespace checks a pod with hostUsers: false. Root in the pod must be an unprivileged user of
// the node, and the sysctl of the user namespace must be set, except with CRI-O 1.36, which does not set
// such sysctls. If the runtime does not support user namespaces, the pod must not start.
func TestUserNamespace(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "--allowed-unsafe-sysctls", "user.*")
	p := d.pod("web", shell("main", serve("web")))
	p.Spec.HostUsers = new(false)
	p.Spec.SecurityContext = &v1.PodSecurityContext{Sysctls: []v1.Sysctl{{Name: "user.max_net_namespaces", Value: "100"}}}
	p.Spec.Volumes, p.Spec.Containers[0].VolumeMounts = nil, nil
	p.Spec.Containers[0].Command[2] = "cat /proc/sys/user/max_net_namespaces >/disk/x; trap 'exit 0' TERM; sleep 3600 & wait"
	withVolume(p, "disk", "/disk", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
	d.apply(p)
	if !d.supportsUserNamespaces() {
		d.untilProblem("web", "hostUsers: false needs a user namespace", d.on.RuntimeName())
		return
	}
	d.makeRuntimeDirsTraversable()
	view := d.untilApplied("web")
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/uid_map", d.container("web", "main").PID))
	if got := strings.Fields(string(text)); err != nil || len(got) != 3 || got[0] != "0" || got[1] == "0" || got[2] != "65536" {
		t.Errorf("user mapping of the container: got %q, error %v; want 65536 host IDs that do not begin at 0", text, err)
	}
	file := filepath.Join(d.root(), "pods", string(view.Pod.UID), "volumes/kubernetes.io~empty-dir/disk/x")
	d.eventually("the pod has written the value of its sysctl to its volume", func() error {
		text, err := os.ReadFile(file)
		if err == nil && string(text) != "100\n" && d.on.RuntimeName() != "cri-o" {
			err = fmt.Errorf("value of the sysctl: got %q, want %q", text, "100\n")
		}
		return err
	})
}

// TestUserNamespace_IDsPerPod checks that a pod gets the number of user IDs in userNamespaces.idsPerPod. A
// pod that runs when this number changes must keep its IDs, also in a restarted container.
func TestUserNamespace_IDsPerPod(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	if !d.supportsUserNamespaces() {
		return // TestUserNamespace checks that the pod is rejected
	}
	d.makeRuntimeDirsTraversable()
	own := func(name string) *v1.Pod {
		p := d.pod(name, shell("main", "trap 'exit 0' TERM; sleep 3600 & wait"))
		p.Spec.HostUsers = new(false)
		p.Spec.Volumes, p.Spec.Containers[0].VolumeMounts = nil, nil
		return p
	}
	d.apply(own("old"))
	d.untilApplied("old")
	before := d.userMap("old")
	if before.Length != 65536 {
		t.Errorf("user IDs of a pod by default: got %d, want 65536", before.Length)
	}
	d.kill()
	config := filepath.Join(d.dir, "config.yaml")
	text := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nuserNamespaces: {idsPerPod: 262144}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d.args = append(d.args, "--config", config)
	d.start()
	d.apply(own("old"), own("new"))
	d.untilApplied("new")
	if got := d.userMap("new"); got.Length != 262144 || got.First == 0 || got.First%262144 != 0 {
		t.Errorf("user IDs of the new pod: got %+v, want 262144 of them, beginning at a multiple of 262144 other than 0", got)
	}
	pid := d.container("old", "main").PID
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.untilPod("has a restarted container", "old", func(p *server.PodView) error {
		if s := p.Pod.Status.ContainerStatuses[0]; s.RestartCount == 0 || s.State.Running == nil {
			return fmt.Errorf("got the container status %+v, want it running again", s)
		}
		return nil
	})
	if got := d.userMap("old"); got != before {
		t.Errorf("user IDs of the restarted container: got %+v, want %+v as before the restart", got, before)
	}
}

// TestUserNamespace_ForeignIDs checks that a pod gets other user IDs than a sandbox of another agent. The
// annotations of this sandbox, which reserve all IDs, must have no effect.
func TestUserNamespace_ForeignIDs(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	if !d.supportsUserNamespaces() {
		return // TestUserNamespace checks that the pod is rejected
	}
	d.makeRuntimeDirsTraversable()
	theirs := runtime.IDRange{First: 65536, Length: 65536}
	ids := []*cri.IDMapping{{HostId: theirs.First, Length: theirs.Length}}
	config := d.foreignConfig(d.podName("theirs"))
	config.Annotations = map[string]string{runtime.AnnotationFirstHostUID: "65536", runtime.AnnotationHostIDCount: "4294770688"}
	config.Linux.SecurityContext = &cri.LinuxSandboxSecurityContext{NamespaceOptions: &cri.NamespaceOption{
		UsernsOptions: &cri.UserNamespace{Mode: cri.NamespaceMode_POD, Uids: ids, Gids: ids},
	}}
	d.kill()
	client := cri.NewRuntimeServiceClient(d.dial())
	sandbox, err := client.RunPodSandbox(t.Context(), &cri.RunPodSandboxRequest{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	d.start() // podd observes all sandboxes before it starts a pod
	p := d.pod("web", shell("main", "trap 'exit 0' TERM; sleep 3600 & wait"))
	p.Spec.HostUsers = new(false)
	p.Spec.Volumes, p.Spec.Containers[0].VolumeMounts = nil, nil
	d.apply(p)
	d.untilApplied("web")
	if got := d.userMap("web"); uint64(got.First) < theirs.End() || got.Length != 65536 {
		t.Errorf("user IDs of pod web: got %+v, want 65536 IDs after the range %+v of the other agent", got, theirs)
	}
	if _, err := client.RemovePodSandbox(t.Context(), &cri.RemovePodSandboxRequest{PodSandboxId: sandbox.GetPodSandboxId()}); err != nil {
		t.Error(err)
	}
}

// userMap returns the range of host user IDs to which the first container of a pod is mapped.
func (d *daemon) userMap(pod string) (ids runtime.IDRange) {
	d.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/uid_map", d.container(pod, "main").PID))
	var inside uint32
	if err == nil {
		_, err = fmt.Sscan(string(text), &inside, &ids.First, &ids.Length)
	}
	if err != nil || inside != 0 {
		d.t.Fatalf("pod %s: got the user mapping %q, error %v; want one from ID 0", pod, text, err)
	}
	return ids
}

// supportsUserNamespaces reports whether the default handler of the runtime supports user namespaces.
func (d *daemon) supportsUserNamespaces() bool {
	for _, h := range d.runtimeStatus().GetRuntimeHandlers() {
		if h.GetName() == "" && h.GetFeatures().GetUserNamespaces() {
			return true
		}
	}
	return false
}

// makeRuntimeDirsTraversable makes the directories of the runtime traversable for all users. The root
// user of a pod with a user namespace needs this, because it is an unprivileged user of the host. The
// usual directories in /run and /var/lib are traversable.
func (d *daemon) makeRuntimeDirsTraversable() {
	d.t.Helper()
	if err := d.on.OpenDirs(); err != nil {
		d.t.Fatal(err)
	}
}

// TestSupplementalGroups checks that the policy Strict omits the groups of the image. If the
// runtime does not support the policy, the pod must be rejected.
func TestSupplementalGroups(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	p := d.pod("web", shell("main", writeTrace("web", "id -G")+serve("web")))
	p.Spec.SecurityContext = &v1.PodSecurityContext{
		RunAsUser: new(int64(0)), RunAsGroup: new(int64(0)), SupplementalGroups: []int64{4000}, SupplementalGroupsPolicy: new(v1.SupplementalGroupsPolicyStrict),
	}
	d.apply(p)
	if !d.runtimeStatus().GetFeatures().GetSupplementalGroupsPolicy() {
		d.untilProblem("web", "supplementalGroupsPolicy Strict is not supported by "+d.on.RuntimeName())
		return
	}
	d.untilApplied("web")
	if got, want := d.readTrace("web"), "0 4000"; got != want {
		t.Errorf("groups in the container: got %q, want %q", got, want)
	}
	want := &v1.ContainerUser{Linux: &v1.LinuxContainerUser{SupplementalGroups: []int64{0, 4000}}}
	// podd may observe the user only after the container is ready.
	d.untilPod("shows the user of the container", "web", func(p *server.PodView) error {
		if got := p.Pod.Status.ContainerStatuses[0].User; !reflect.DeepEqual(got, want) {
			return fmt.Errorf("user in the container status: got %v, want %v", got, want)
		}
		return nil
	})
}

// TestAppArmor checks that a pod with an AppArmor profile does not start if AppArmor is
// disabled.
func TestAppArmor(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	profiled := func(name string, kind v1.AppArmorProfileType) *v1.Pod {
		p := d.pod(name, shell("main", serve(name)))
		p.Spec.SecurityContext = &v1.PodSecurityContext{AppArmorProfile: &v1.AppArmorProfile{Type: kind}, SELinuxOptions: &v1.SELinuxOptions{Level: "s0:c1"}}
		return p
	}
	d.apply(profiled("free", v1.AppArmorProfileTypeUnconfined), profiled("confined", v1.AppArmorProfileTypeRuntimeDefault))
	d.untilApplied("free")
	if on, err := os.ReadFile("/sys/module/apparmor/parameters/enabled"); err == nil && strings.HasPrefix(string(on), "Y") {
		d.untilApplied("confined")
		return
	}
	d.untilProblem("confined", "container main", "AppArmor is disabled on this node")
}

// TestRuntimeClassAndNodeSelector checks that a pod runs with the handler of its runtime class,
// and only on a node with the labels of its nodeSelector.
func TestRuntimeClassAndNodeSelector(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "--node-labels", "example.com/disk=ssd", "--runtime-class", "plain=runc")
	with := func(name string, change func(*v1.PodSpec)) *v1.Pod {
		p := d.pod(name, shell("main", serve(name)))
		change(&p.Spec)
		return p
	}
	d.apply(
		with("handler", func(s *v1.PodSpec) { s.RuntimeClassName = new("runc") }),
		with("class", func(s *v1.PodSpec) { s.RuntimeClassName = new("plain") }),
		with("unknown", func(s *v1.PodSpec) { s.RuntimeClassName = new("kata") }),
		with("here", func(s *v1.PodSpec) {
			s.NodeSelector = map[string]string{"kubernetes.io/hostname": d.host, "kubernetes.io/os": "linux", "example.com/disk": "ssd"}
		}),
		with("elsewhere", func(s *v1.PodSpec) { s.NodeSelector = map[string]string{"example.com/disk": "hdd"} }),
	)
	for _, name := range []string{"handler", "class", "here"} {
		d.untilApplied(name)
	}
	d.untilProblem("unknown", `runtimeClassName "kata"`, `no handler "kata"`, "runc", "--runtime-class")
	d.untilProblem("elsewhere", "nodeSelector", "--node-labels")
}
