package reconcile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
	"podd/reconcile"
	"podd/runtime"
	"podd/runtime/runtimetest"
)

// created returns the configurations of a container, in the order of its starts.
func (m *machine) created(container string) []*cri.ContainerConfig {
	var all []*cri.ContainerConfig
	for _, c := range m.Calls("CreateContainer") {
		if q := c.Request.(*cri.CreateContainerRequest); q.GetConfig().GetMetadata().GetName() == container {
			all = append(all, q.GetConfig())
		}
	}
	return all
}

// TestImageUser checks that a container runs as the user of its image, each time it starts.
func TestImageUser(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.AddImage(runtimetest.Image{Name: "named:1", Username: "web"})
		m.AddImage(runtimetest.Image{Name: "number:1", UID: new(int64(1000))})
		m.start()
		m.setPods(pod(t, "web", `containers:
- {name: named, image: "named:1"}
- {name: number, image: "number:1", securityContext: {runAsNonRoot: true}}
- {name: root, image: "web:1"}`))
		m.settle()
		for _, name := range []string{"named", "number", "root"} {
			m.ExitContainer("default/web/"+name, 1)
		}
		m.settle()
		want := map[string]*cri.LinuxContainerSecurityContext{
			"named":  {RunAsUsername: "web"},
			"number": {RunAsUser: &cri.Int64Value{Value: 1000}},
			"root":   {RunAsUser: &cri.Int64Value{}},
		}
		for name, want := range want {
			starts := m.created(name)
			if len(starts) != 2 {
				t.Fatalf("%s: starts: got %d, want 2", name, len(starts))
			}
			for i, c := range starts {
				got := c.GetLinux().GetSecurityContext()
				if !proto.Equal(got.GetRunAsUser(), want.GetRunAsUser()) || got.GetRunAsUsername() != want.GetRunAsUsername() {
					t.Errorf("container %s, start %d: got user %v %q, want %v", name, i, got.GetRunAsUser(), got.GetRunAsUsername(), want)
				}
			}
		}
	})
}

// TestImageReplaced checks that an image that was removed while its container ran is reported as
// missing. If another image gets that name, the next container runs as the user of that image.
func TestImageReplaced(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.AddImage(runtimetest.Image{Name: "app:1", ID: "sha256:one", UID: new(int64(1000))})
		m.start()
		m.setPods(pod(t, "web", `containers: [{name: app, image: "app:1", imagePullPolicy: IfNotPresent}]`))
		m.settle()
		if err := m.RemoveImage(t.Context(), "sha256:one"); err != nil {
			t.Fatal(err)
		}
		m.ExitContainer("default/web/app", 1)
		m.settle()
		const want = "creating container app: its image was removed; podd pulls it again"
		if got := m.takeEvents(); !strings.Contains(got, want) {
			t.Errorf("events: got\n%s\nwant one with %q", got, want)
		}
		m.AddImage(runtimetest.Image{Name: "app:1", ID: "sha256:two", UID: new(int64(2000))})
		m.advance(2 * time.Minute)
		m.wantState("web 0 ready", "web/app 0 exited 1", "web/app 1 running")
		starts := m.created("app")
		for i, want := range map[int]int64{0: 1000, len(starts) - 1: 2000} {
			c := starts[i]
			if got := c.GetLinux().GetSecurityContext().GetRunAsUser().GetValue(); got != want {
				t.Errorf("start %d from image %s: got user %d, want %d", i, c.GetImage().GetImage(), got, want)
			}
		}
		if got := starts[len(starts)-1].GetImage().GetImage(); got != "sha256:two" {
			t.Errorf("image of the last start: got %s, want sha256:two", got)
		}
	})
}

// TestImageDamaged checks that a damaged image is removed and pulled again, and that the container
// then starts. The same happens if the image is damaged again later.
func TestImageDamaged(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.AddImage(runtimetest.Image{Name: "app:1"})
		m.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: "app:1"}})
		damage := func() {
			m.Inject(runtimetest.Fault{Method: "CreateContainer", Nth: 1, Err: status.Error(codes.Unknown,
				"failed to create containerd container: unexpected end of JSON input")})
		}
		wantRepairs := func(want int) {
			t.Helper()
			const text = "image app:1 is damaged; podd has removed it and pulls it again"
			if got := m.takeEvents(); !strings.Contains(got, text) {
				t.Errorf("events: got\n%s\nwant one with %q", got, text)
			}
			m.advance(2 * time.Minute)
			if removals, pulls := len(m.Calls("RemoveImage")), len(m.Calls("PullImage")); removals != want || pulls != want {
				t.Errorf("image: got %d removals and %d pulls, want %d of each", removals, pulls, want)
			}
		}
		damage()
		m.start()
		m.setPods(pod(t, "web", `containers: [{name: app, image: "app:1", imagePullPolicy: IfNotPresent}]`))
		m.settle()
		wantRepairs(1)
		m.wantState("web 0 ready", "web/app 0 running")
		damage()
		m.ExitContainer("default/web/app", 1)
		m.settle()
		wantRepairs(2)
		m.wantState("web 0 ready", "web/app 0 exited 1", "web/app 1 running")
	})
}

// TestVolumeImageDamaged checks that the damaged image of an image volume is removed and pulled again if the
// container mounts only this image. Otherwise the error is reported.
func TestVolumeImageDamaged(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		for _, image := range []string{"app:1", "data:1", "more:1"} {
			m.AddImage(runtimetest.Image{Name: image})
			m.AddRemoteImage(runtimetest.RemoteImage{Image: runtimetest.Image{Name: image}})
		}
		damage := func() {
			m.Inject(runtimetest.Fault{Method: "CreateContainer", Nth: 1, Err: status.Error(codes.Unknown,
				"failed to mount image volume: ImageVolumeMountFailed: failed to unpack image volume: failed to resolve rootfs: unexpected end of JSON input")})
		}
		wantEvent := func(want string) {
			t.Helper()
			if got := m.takeEvents(); !strings.Contains(got, want) {
				t.Errorf("events: got\n%s\nwant one with %q", got, want)
			}
		}
		m.start()
		const spec = `containers: [{name: app, image: "app:1", volumeMounts: [{name: data, mountPath: /data}%s]}]
volumes: [{name: data, image: {reference: "data:1", pullPolicy: IfNotPresent}}, {name: more, image: {reference: "more:1", pullPolicy: IfNotPresent}}]`
		web := pod(t, "web", fmt.Sprintf(spec, ""))
		damage()
		m.setPods(web)
		m.settle()
		wantEvent("image data:1 is damaged; podd has removed it and pulls it again")
		m.advance(2 * time.Minute)
		m.wantState("web 0 ready", "web/app 0 running")
		damage()
		m.setPods(web, pod(t, "both", fmt.Sprintf(spec, ", {name: more, mountPath: /more}")))
		m.settle()
		wantEvent("the image of a volume is damaged, but the runtime does not report which one")
		if got := len(m.Calls("RemoveImage")); got != 1 {
			t.Errorf("got %d removals, want 1", got)
		}
	})
}

// TestRunAsNonRoot checks that a container that would run as root does not start until its image
// names a user. The other container of the pod starts at once.
func TestRunAsNonRoot(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(pod(t, "web", `securityContext: {runAsNonRoot: true}
containers:
- {name: app, image: "web:1"}
- {name: side, image: "web:1", securityContext: {runAsUser: 7}}`))
		m.settle()
		m.wantState("web 0 ready", "web/side 0 running")
		step := m.report("web").Decision.Steps[0]
		if !step.NeedsUser || step.Reason != "CreateContainerConfigError" ||
			!strings.Contains(step.Why, `"app": container has runAsNonRoot and image will run as root; set runAsUser`) {
			t.Errorf("step of app: got %+v, want an error about runAsNonRoot", step)
		}
		m.AddImage(runtimetest.Image{Name: "web:1", UID: new(int64(1000))})
		m.advance(2 * time.Minute)
		m.wantState("web 0 ready", "web/side 0 running", "web/app 0 running")
	})
}

// TestSeccompFile checks that a pod waits while its profile is missing or empty. An edit to a version
// with a missing profile does not replace the running version.
func TestSeccompFile(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		dir := filepath.Join(m.root, "seccomp")
		m.options = func(o *reconcile.Options) { o.RenderNode.SeccompDir = dir }
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		profiled := func(file string) *manifest.Pod {
			return pod(t, "web", `containers: [{name: app, image: "web:1", securityContext: {seccompProfile: {type: Localhost, localhostProfile: `+file+`}}}]`)
		}
		write := func(file, text string) {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		m.start()
		m.setPods(profiled("a.json"))
		m.settle()
		m.wantState("web 0 ready")
		step := m.report("web").Decision.Steps[0]
		if !step.NeedsUser || step.Reason != "CreateContainerConfigError" || !strings.Contains(step.Why, filepath.Join(dir, "a.json")+" does not exist") {
			t.Errorf("step without the profile: got %+v, want CreateContainerConfigError that names a.json", step)
		}
		write("a.json", "")
		m.advance(time.Minute)
		if step = m.report("web").Decision.Steps[0]; !strings.Contains(step.Why, "is empty") {
			t.Errorf("step with an empty profile: got %+v, want a message that it is empty", step)
		}
		write("a.json", "{}")
		m.advance(2 * time.Minute)
		m.wantState("web 0 ready", "web/app 0 running")
		if got := m.created("app")[0].GetLinux().GetSecurityContext().GetSeccomp().GetLocalhostRef(); got != filepath.Join(dir, "a.json") {
			t.Errorf("seccomp profile: got %s, want %s", got, filepath.Join(dir, "a.json"))
		}
		m.ForgetCalls()
		m.setPods(profiled("b.json"))
		m.settle()
		m.wantCalls()
		if why := m.why("web"); !strings.Contains(why, "b.json does not exist") || !strings.Contains(why, "keeps running") {
			t.Errorf("reason why the new version of the pod cannot start yet: got %q, want the missing b.json and that the pod keeps running", why)
		}
		write("b.json", "{}")
		m.advance(2 * time.Minute)
		m.wantState("web 0 ready", "web/app 0 running")
		if got := len(m.created("app")); got != 1 {
			t.Errorf("created containers after the edit: got %d, want 1", got)
		}
	})
}

// sandboxes returns the configurations of a pod's sandboxes, in the order in which they
// were created.
func (m *machine) sandboxes(name string) []*cri.PodSandboxConfig {
	var all []*cri.PodSandboxConfig
	for _, c := range m.Calls("RunPodSandbox") {
		if q := c.Request.(*cri.RunPodSandboxRequest); c.Err == nil && q.GetConfig().GetMetadata().GetName() == name {
			all = append(all, q.GetConfig())
		}
	}
	return all
}

// ids returns the first host ID that a configuration maps; 0 if it maps none.
func ids(o *cri.NamespaceOption) uint32 {
	if o.GetUsernsOptions().GetMode() != cri.NamespaceMode_POD || len(o.GetUsernsOptions().GetUids()) != 1 {
		return 0
	}
	return o.GetUsernsOptions().GetUids()[0].GetHostId()
}

// TestUserIDs_OtherLength checks that a running pod keeps its IDs when podd is restarted with another
// number of IDs per pod or with subordinate IDs, also in a container that is restarted. New sandboxes
// have the new number of IDs or subordinate IDs, and no two sandboxes have IDs in common.
func TestUserIDs_OtherLength(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		own := func(name, image string) *manifest.Pod {
			return pod(t, name, "hostUsers: false\ncontainers: [{name: "+name+", image: "+image+"}]")
		}
		a, b, c := own("a", "web:1"), own("b", "web:1"), own("c", "web:1")
		rangeOf := func(step, name string, length uint32) runtime.IDRange {
			t.Helper()
			sandboxes, containers := m.sandboxes(name), m.created(name)
			mapping := sandboxes[len(sandboxes)-1].GetLinux().GetSecurityContext().GetNamespaceOptions().GetUsernsOptions().GetUids()[0]
			inside := containers[len(containers)-1].GetLinux().GetSecurityContext().GetNamespaceOptions().GetUsernsOptions().GetUids()[0]
			if mapping.GetHostId() != inside.GetHostId() || mapping.GetLength() != inside.GetLength() {
				t.Errorf("%s: pod %s: got IDs %v in the sandbox and %v in the container, want the same", step, name, mapping, inside)
			}
			r := runtime.IDRange{First: mapping.GetHostId(), Length: mapping.GetLength()}
			if r.Length != length || r.First%length != 0 || !r.IsValid() {
				t.Errorf("%s: pod %s: got IDs %v, want a valid range of length %d", step, name, r, length)
			}
			return r
		}
		checkKept := func(step, name string, got, want runtime.IDRange) {
			t.Helper()
			if got != want {
				t.Errorf("%s: pod %s: got IDs %v, want %v as before", step, name, got, want)
			}
		}
		checkApart := func(step string, x, y runtime.IDRange) {
			t.Helper()
			if uint64(x.First) < y.End() && uint64(y.First) < x.End() {
				t.Errorf("%s: got the overlapping IDs %v and %v, want separate ranges", step, x, y)
			}
		}
		const short, long = 65536, 4 * 65536
		var hostIDs runtime.IDRange
		restartWith := func(length uint32) {
			m.options = func(o *reconcile.Options) { o.Limits.IDsPerPod, o.Limits.HostIDs = length, hostIDs }
			m.restart()
		}
		m.start()
		m.setPods(a)
		m.settle()
		firstA := rangeOf("first start", "a", short)

		restartWith(long)
		m.setPods(a, b)
		m.settle()
		firstB := rangeOf("new pod", "b", long)
		checkApart("new pod", firstA, firstB)
		m.ExitContainer("default/a/a", 1)
		m.settle()
		checkKept("container restarted", "a", rangeOf("container restarted", "a", short), firstA)
		m.setPods(own("a", "web:2"), b)
		m.settle()
		checkApart("edited pod", rangeOf("edited pod", "a", long), firstB)

		restartWith(short)
		m.setPods(own("a", "web:2"), b, c)
		m.settle()
		firstC := rangeOf("default length again", "c", short)
		checkApart("default length again", firstC, firstB)
		checkApart("default length again", firstC, rangeOf("default length again", "a", long))
		m.ExitContainer("default/b/b", 1)
		m.settle()
		checkKept("default length again", "b", rangeOf("default length again", "b", long), firstB)

		hostIDs = runtime.IDRange{First: 100 * short, Length: 10 * short}
		restartWith(short)
		m.setPods(own("a", "web:2"), b, c)
		m.settle()
		m.ExitContainer("default/c/c", 1)
		m.settle()
		checkKept("subordinate IDs", "c", rangeOf("subordinate IDs", "c", short), firstC)
		m.setPods(own("a", "web:2"), b, own("c", "web:2"))
		m.settle()
		if r := rangeOf("subordinate IDs, edited pod", "c", short); r.First < hostIDs.First || r.End() > hostIDs.End() {
			t.Errorf("subordinate IDs, edited pod: got IDs %v, want IDs in %v", r, hostIDs)
		}
	})
}

// TestUserIDs checks that each pod has its own host IDs. Its sandbox, containers and mounts have
// the same IDs, even after restarts of containers and of podd.
func TestUserIDs(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		own := func(name, image string) *manifest.Pod {
			return pod(t, name, "hostUsers: false\nvolumes: [{name: v}]\ncontainers: [{name: "+name+", image: "+image+", volumeMounts: [{name: v, mountPath: /v}]}]")
		}
		a, b, c := own("a", "web:1"), own("b", "web:1"), own("c", "web:1")
		m.start()
		m.setPods(a, b, pod(t, "host", `containers: [{name: host, image: "web:1"}]`))
		m.settle()
		check := func(name string, want uint32) {
			t.Helper()
			all := m.sandboxes(name)
			got := ids(all[len(all)-1].GetLinux().GetSecurityContext().GetNamespaceOptions())
			if got != want {
				t.Errorf("first host ID of the sandbox of %s: got %d, want %d (0 means none)", name, got, want)
			}
			for _, c := range m.created(name) {
				if inside := ids(c.GetLinux().GetSecurityContext().GetNamespaceOptions()); inside != want {
					t.Errorf("first host ID of a container of %s: got %d, want %d", name, inside, want)
				}
				for _, mount := range c.GetMounts() {
					if (len(mount.GetUidMappings()) > 0) != (want > 0) || want > 0 && mount.GetUidMappings()[0].GetHostId() != want {
						t.Errorf("%s: UID mappings of %s: got %v, want host ID %d (0 means none)", name, mount.GetContainerPath(), mount.GetUidMappings(), want)
					}
				}
			}
		}
		first := m.sandboxes("a")[0].GetLinux().GetSecurityContext().GetNamespaceOptions()
		one := ids(first)
		two := 3*uint32(65536) - one
		if one != 65536 && one != 2*65536 {
			t.Fatalf("first user ID of pod a: got %d, want %d or %d", one, 65536, 2*65536)
		}
		check("b", two)
		check("host", 0)
		m.ExitContainer("default/a/a", 1)
		m.settle()
		check("a", one)
		m.restart()
		m.ExitContainer("default/b/b", 1)
		m.settle()
		check("b", two)
		// A new pod gets unused IDs, and an edited one keeps its IDs.
		m.setPods(a, own("b", "web:2"), c)
		m.settle()
		check("b", two)
		check("c", 3*65536)
		m.setPods(a, c)
		m.settle()
		d := own("d", "web:1")
		m.setPods(a, c, d)
		m.settle()
		check("d", two)
	})
}

// TestUserIDs_Foreign checks that a pod gets none of the IDs that the runtime reports for the sandboxes
// of other agents. The annotations of these sandboxes reserve no IDs, because a kubelet copies them from
// its pods.
func TestUserIDs_Foreign(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		for i := range 300 {
			m.makeKubeletPod(fmt.Sprintf("forged%03d", i), fmt.Sprintf("uid-forged%03d", i), map[string]string{
				runtime.AnnotationFirstHostUID: strconv.Itoa(max(i<<24, 65536)), runtime.AnnotationHostIDCount: "16777216",
			})
		}
		config := &cri.PodSandboxConfig{
			Metadata: &cri.PodSandboxMetadata{Name: "theirs", Namespace: "default", Uid: "uid-theirs"},
			Linux: &cri.LinuxPodSandboxConfig{SecurityContext: &cri.LinuxSandboxSecurityContext{NamespaceOptions: &cri.NamespaceOption{
				UsernsOptions: &cri.UserNamespace{Mode: cri.NamespaceMode_POD, Uids: []*cri.IDMapping{{HostId: 65536, Length: 65536}}, Gids: []*cri.IDMapping{{HostId: 131072, Length: 65536}}},
			}}},
		}
		if _, err := m.RunPodSandbox(t.Context(), config, ""); err != nil {
			t.Fatal(err)
		}
		m.start()
		m.setPods(pod(t, "web", "hostUsers: false\ncontainers: [{name: app, image: \"web:1\"}]"))
		m.settle()
		all := m.sandboxes("web")
		if len(all) != 1 {
			t.Fatalf("sandboxes of the pod: got %d, want 1; reason why the pod waits: %q", len(all), m.why("web"))
		}
		if got := ids(all[0].GetLinux().GetSecurityContext().GetNamespaceOptions()); got != 3*65536 {
			t.Errorf("first host ID of the pod: got %d, want %d", got, 3*65536)
		}
	})
}

// TestRuntimeClass checks that a runtime class selects the handler with its own name or the handler
// that is configured for it. An edit to an unknown class does not replace the running version.
func TestRuntimeClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		m.Runtime = runtimetest.New(t, runtimetest.Options{Handlers: []string{"kata"}})
		m.Inject(runtimetest.Fault{Method: "ListContainers", Delay: listTime})
		m.AddImages("web:1")
		m.options = func(o *reconcile.Options) {
			o.RenderNode.RuntimeClasses = map[string]string{"small": "kata"}
			o.Limits.Features.RuntimeClasses = o.RenderNode.RuntimeClasses
		}
		defer m.finish()
		of := func(name, class string) *manifest.Pod {
			return pod(t, name, "runtimeClassName: "+class+"\ncontainers: [{name: app, image: \"web:1\"}]")
		}
		m.start()
		m.setPods(of("a", "kata"), of("b", "small"), of("c", "gvisor"))
		m.settle()
		m.wantState("a 0 ready", "a/app 0 running", "b 0 ready", "b/app 0 running")
		for _, c := range m.Calls("RunPodSandbox") {
			if q := c.Request.(*cri.RunPodSandboxRequest); q.GetRuntimeHandler() != "kata" {
				t.Errorf("runtime handler of %s: got %q, want kata", c.Subject, q.GetRuntimeHandler())
			}
		}
		if why := m.why("c"); !strings.Contains(why, `has no handler "gvisor", only kata`) {
			t.Errorf("reason why pod c waits: got %q, want the missing handler", why)
		}
		m.ForgetCalls()
		m.setPods(of("a", "gvisor"), of("b", "small"))
		m.settle()
		m.wantCalls()
		if why := m.why("a"); !strings.Contains(why, "keeps running") {
			t.Errorf("reason why the new version of the pod cannot start yet: got %q, want that the pod keeps running", why)
		}
	})
}
