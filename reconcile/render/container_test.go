package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
	"podd/runtime"
)

// TestContainerAnnotations checks all annotations of a container.
func TestContainerAnnotations(t *testing.T) {
	grace, deletion := int64(45), int64(7)
	in := inputOf(v1.Container{
		TerminationMessagePath:   "/dev/termination-log",
		TerminationMessagePolicy: v1.TerminationMessageReadFile,
		Ports:                    []v1.ContainerPort{{ContainerPort: 80, Protocol: v1.ProtocolTCP}},
		Lifecycle: &v1.Lifecycle{PreStop: &v1.LifecycleHandler{
			Exec: &v1.ExecAction{Command: []string{"/bin/drain", "<&>"}},
		}},
	})
	in.Pod.Object.Spec.TerminationGracePeriodSeconds = &grace
	in.Pod.Object.DeletionGracePeriodSeconds = &deletion
	in.Pod.ContainerHashes = map[string]manifest.ContainerHash{"main": {StartHash: "v1:00c0ffee00c0ffee00c0ffee00c0ffee", Resources: "cpu=1/2 memory=/"}}
	in.Attempt, in.Restarts, in.BackoffStep = 4, 3, 2
	want := map[string]string{
		"io.kubernetes.container.hash":                     manifest.KubeletHash(in.Container),
		"io.kubernetes.container.restartCount":             "3",
		"io.kubernetes.container.terminationMessagePath":   "/dev/termination-log",
		"io.kubernetes.container.terminationMessagePolicy": "File",
		"io.kubernetes.container.preStopHandler":           `{"exec":{"command":["/bin/drain","\u003c\u0026\u003e"]}}`,
		"io.kubernetes.container.ports":                    `[{"containerPort":80,"protocol":"TCP"}]`,
		"io.kubernetes.pod.deletionGracePeriod":            "7",
		"io.kubernetes.pod.terminationGracePeriod":         "45",
		"podd/backoff-step":                                "2",
		"podd/kind":                                        "container:0",
		"podd/size":                                        "cpu=1/2 memory=/",
		"podd/start":                                       "00c0ffee00c0ffee",
	}
	c, err := Container(in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, c.Annotations); diff != "" {
		t.Errorf("annotations (-want +got)\n%s", diff)
	}
	if c.LogPath != "main/4.log" || c.Metadata.Attempt != 4 {
		t.Errorf("got log path %s and attempt %d, want log path main/4.log and attempt 4", c.LogPath, c.Metadata.Attempt)
	}
}

// TestKindOf checks the annotation for the kind and index of a container.
func TestKindOf(t *testing.T) {
	pod := podOf(v1.PodSpec{
		InitContainers: []v1.Container{{Name: "i"}, {Name: "s", RestartPolicy: &always}},
		Containers:     []v1.Container{{Name: "a"}, {Name: "b"}},
	}).Object
	for name, want := range map[string]string{"i": "init 0", "s": "sidecar 1", "a": "container 0", "b": "container 1", "x": " -1"} {
		kind, index := kindOf(pod, name)
		if got := fmt.Sprintf("%s %d", kind, index); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// TestImage checks the image reference of the config.
func TestImage(t *testing.T) {
	in := inputOf(v1.Container{Image: "busybox"})
	for ref, want := range map[string]string{"sha256:1": "sha256:1", "": "busybox"} {
		in.Image = ref
		c, err := Container(in)
		if err != nil || c.Image.Image != want || c.Image.UserSpecifiedImage != "busybox" {
			t.Errorf("image ID %q: got %v (error %v), want image %q and UserSpecifiedImage \"busybox\"", ref, c.GetImage(), err, want)
		}
	}
}

// TestImageUser checks which user a container has, given the users in the manifest and in the
// image.
func TestImageUser(t *testing.T) {
	uid := int64(1000)
	own := &v1.SecurityContext{RunAsUser: &uid}
	for _, tt := range []struct {
		name string
		sc   *v1.SecurityContext
		user *runtime.ImageUser
		uid  *cri.Int64Value
		text string
	}{
		{"image user unknown", nil, nil, nil, ""},
		{"root", nil, &runtime.ImageUser{}, &cri.Int64Value{}, ""},
		{"user with a number", nil, &runtime.ImageUser{UID: &uid}, &cri.Int64Value{Value: 1000}, ""},
		{"user with a name", nil, &runtime.ImageUser{Name: "web"}, nil, "web"},
		{"user of the manifest takes precedence", own, &runtime.ImageUser{Name: "web"}, &cri.Int64Value{Value: 1000}, ""},
	} {
		in := inputOf(v1.Container{SecurityContext: tt.sc})
		in.ImageUser = tt.user
		s := containerSecurity(&in)
		if s.RunAsUser.String() != tt.uid.String() || (s.RunAsUser == nil) != (tt.uid == nil) || s.RunAsUsername != tt.text {
			t.Errorf("%s: got RunAsUser %v and RunAsUsername %q, want RunAsUser %v and RunAsUsername %q", tt.name, s.RunAsUser, s.RunAsUsername, tt.uid, tt.text)
		}
	}
}

// TestRunAsNonRoot checks which users are rejected with runAsNonRoot.
func TestRunAsNonRoot(t *testing.T) {
	zero, uid, huge, below, yes := int64(0), int64(7), int64(1)<<32, int64(-1), true
	for _, tt := range []struct {
		name  string
		asked *int64
		user  *runtime.ImageUser
		want  string // part of the error
	}{
		{"manifest has a number", &uid, &runtime.ImageUser{}, ""},
		{"manifest has root", &zero, &runtime.ImageUser{UID: &uid}, "container's runAsUser breaks non-root policy"},
		{"image has a number", nil, &runtime.ImageUser{UID: &uid}, ""},
		{"image has root", nil, &runtime.ImageUser{}, "container has runAsNonRoot and image will run as root"},
		{"image has user 0", nil, &runtime.ImageUser{UID: &zero}, "container has runAsNonRoot and image will run as root"},
		{"image has a name", nil, &runtime.ImageUser{Name: "web"}, `image has non-numeric user ("web")`},
		{"image has a number that is 0 in 32 bits", nil, &runtime.ImageUser{UID: &huge}, "out of range"},
		{"image has a negative number", nil, &runtime.ImageUser{UID: &below}, "out of range"},
		{"unknown image user", nil, nil, "unknown"},
	} {
		in := inputOf(v1.Container{SecurityContext: &v1.SecurityContext{RunAsUser: tt.asked}})
		in.Pod.Object.Spec.SecurityContext = &v1.PodSecurityContext{RunAsNonRoot: &yes}
		in.ImageUser = tt.user
		_, err := Container(in)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), `"main"`)):
			t.Errorf("%s: got error %v, want one with %q and the name of the container", tt.name, err, tt.want)
		}
	}
}

// TestSecurityOfPodAndContainer checks that settings of the container override settings of the pod.
func TestSecurityOfPodAndContainer(t *testing.T) {
	one, two, three, no, yes := int64(1), int64(2), int64(3), false, true
	strict, unmasked := v1.SupplementalGroupsPolicyStrict, v1.UnmaskedProcMount
	in := inputOf(v1.Container{SecurityContext: &v1.SecurityContext{
		RunAsUser: &two, AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
		Capabilities: &v1.Capabilities{Add: []v1.Capability{"NET_ADMIN"}, Drop: []v1.Capability{"ALL"}},
	}})
	in.Pod.Object.Spec.SecurityContext = &v1.PodSecurityContext{
		RunAsUser: &one, RunAsGroup: &one, FSGroup: &three, SupplementalGroups: []int64{4, 5},
		SupplementalGroupsPolicy: &strict, SELinuxOptions: &v1.SELinuxOptions{Level: "s0"},
		SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault},
	}
	s := containerSecurity(&in)
	if s.RunAsUser.Value != 2 || s.RunAsGroup.Value != 1 || !s.NoNewPrivs || !s.ReadonlyRootfs ||
		!cmp.Equal(s.SupplementalGroups, []int64{3, 4, 5}) || s.SupplementalGroupsPolicy != cri.SupplementalGroupsPolicy_Strict ||
		s.SelinuxOptions.Level != "s0" || s.Seccomp.ProfileType != cri.SecurityProfile_RuntimeDefault ||
		s.Capabilities.AddCapabilities[0] != "NET_ADMIN" || s.Capabilities.DropCapabilities[0] != "ALL" ||
		len(s.MaskedPaths) != 12 || len(s.ReadonlyPaths) != 5 {
		t.Errorf("security context: got %v, want the user of the container and the other settings of the pod", s)
	}
	in.Container.SecurityContext = &v1.SecurityContext{ProcMount: &unmasked, Privileged: &yes}
	if s = containerSecurity(&in); len(s.MaskedPaths)+len(s.ReadonlyPaths) != 0 || !s.Privileged || s.NoNewPrivs {
		t.Errorf("privileged container with ProcMount Unmasked: got %v, want privileged without masked paths and NoNewPrivs", s)
	}
	if b := sandboxSecurity(in.Pod.Object, runtime.IDRange{}); !b.Privileged || b.RunAsUser.Value != 1 || b.Seccomp.ProfileType != cri.SecurityProfile_RuntimeDefault {
		t.Errorf("sandbox: got %v, want privileged with user 1 and the default seccomp profile of the runtime", b)
	}
}

// TestProfiles checks the seccomp profile of the config.
func TestProfiles(t *testing.T) {
	name := "audit.json"
	local := &v1.SeccompProfile{Type: v1.SeccompProfileTypeLocalhost, LocalhostProfile: &name}
	escape := "../../etc/shadow"
	n := Node{SeccompDir: "/var/lib/podd/seccomp"}
	strict := n
	strict.SeccompDefault = true
	for _, tt := range []struct {
		name string
		node Node
		p    *v1.SeccompProfile
		want string
	}{
		{"no profile", n, nil, "Unconfined"},
		{"no profile, node has a default", strict, nil, "RuntimeDefault"},
		{"RuntimeDefault", n, &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault}, "RuntimeDefault"},
		{"Unconfined", strict, &v1.SeccompProfile{Type: v1.SeccompProfileTypeUnconfined}, "Unconfined"},
		{"Localhost", n, local, "Localhost /var/lib/podd/seccomp/audit.json"},
		{"Localhost outside", n, &v1.SeccompProfile{Type: v1.SeccompProfileTypeLocalhost, LocalhostProfile: &escape}, "Localhost /var/lib/podd/seccomp/etc/shadow"},
	} {
		p := seccompProfile(tt.node, tt.p)
		if got := strings.TrimSpace(p.ProfileType.String() + " " + p.LocalhostRef); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestAppArmor checks the AppArmor profile that results from the fields and the annotation of a pod.
func TestAppArmor(t *testing.T) {
	profile := "mine"
	fieldOf := func(t v1.AppArmorProfileType) *v1.AppArmorProfile {
		return &v1.AppArmorProfile{Type: t, LocalhostProfile: &profile}
	}
	for _, tt := range []struct {
		name           string
		container, pod *v1.AppArmorProfile
		annotation     string
		want           string
	}{
		{"no profile", nil, nil, "", ""},
		{"container", fieldOf(v1.AppArmorProfileTypeLocalhost), fieldOf(v1.AppArmorProfileTypeUnconfined), "", "localhost/mine"},
		{"pod", nil, fieldOf(v1.AppArmorProfileTypeRuntimeDefault), "", "runtime/default"},
		{"annotation before pod", nil, fieldOf(v1.AppArmorProfileTypeRuntimeDefault), "localhost/old", "localhost/old"},
		{"annotation default", nil, nil, "runtime/default", "runtime/default"},
		{"annotation unconfined", nil, nil, "unconfined", "unconfined"},
		{"annotation unknown", nil, nil, "???", ""},
	} {
		in := inputOf(v1.Container{SecurityContext: &v1.SecurityContext{AppArmorProfile: tt.container}})
		in.Pod.Object.Spec.SecurityContext = &v1.PodSecurityContext{AppArmorProfile: tt.pod}
		if tt.annotation != "" {
			in.Pod.Object.Annotations[v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+"main"] = tt.annotation
		}
		p, got := apparmorProfile(in.Pod.Object, in.Container)
		if got != tt.want || (p == nil) != (tt.want == "") {
			t.Errorf("%s: got profile name %q and profile %v, want profile name %q (\"\" means no profile)", tt.name, got, p, tt.want)
		}
	}
}

// TestInstanceLabel checks that containers and sandboxes have the label of the instance.
func TestInstanceLabel(t *testing.T) {
	in := inputOf(v1.Container{})
	in.Node.InstanceID = "i1"
	c, err := Container(in)
	if err != nil || c.Labels[runtime.LabelInstance] != "i1" || sandbox(t, in.Pod, in.Node, 0).Labels[runtime.LabelInstance] != "i1" {
		t.Errorf("labels of the container: got %v, error %v, want the label of instance i1 as on the sandbox", c.GetLabels(), err)
	}
}
