package decode_test

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/merge"
	"podd/manifest/refs"
)

// scheduled returns a pod of a Deployment as an API server stores it, with the fields that
// admission and the scheduler set.
func scheduled() *v1.Pod {
	is, seconds, mode := true, int64(300), int32(0o644)
	token := v1.Volume{Name: "kube-api-access-x", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{DefaultMode: &mode, Sources: []v1.VolumeProjection{
		{ServiceAccountToken: &v1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
		{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []v1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
		{DownwardAPI: &v1.DownwardAPIProjection{Items: []v1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &v1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}}}}},
	}}}}
	policy := v1.PreemptLowerPriority
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web-7d4b-x2x9z", GenerateName: "web-7d4b-", UID: "9c0ff1d2-1111-4222-8333-444455556666",
			ResourceVersion: "812", Generation: 1, CreationTimestamp: metav1.NewTime(time.Unix(1_700_000_000, 0)),
			Labels:          map[string]string{"app": "web", "pod-template-hash": "7d4b"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-7d4b", UID: "1", Controller: &is, BlockOwnerDeletion: &is}},
			Finalizers:      []string{"batch.kubernetes.io/job-tracking"},
		},
		Spec: v1.PodSpec{
			NodeName: "n1", ServiceAccountName: "default", DeprecatedServiceAccount: "default", SchedulerName: "default-scheduler",
			RestartPolicy: v1.RestartPolicyAlways, DNSPolicy: v1.DNSClusterFirst, TerminationGracePeriodSeconds: new(int64(30)),
			SecurityContext: &v1.PodSecurityContext{}, EnableServiceLinks: &is, Priority: new(int32(0)), PreemptionPolicy: &policy,
			PriorityClassName: "batch", Volumes: []v1.Volume{token},
			Tolerations: []v1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute, TolerationSeconds: &seconds},
				{Key: "node.kubernetes.io/unreachable", Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute, TolerationSeconds: &seconds},
			},
			Affinity: &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{
				{Weight: 1, PodAffinityTerm: v1.PodAffinityTerm{TopologyKey: v1.LabelHostname}}}}},
			Containers: []v1.Container{{
				Name: "app", Image: "web:1", ImagePullPolicy: v1.PullIfNotPresent, TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: v1.TerminationMessageReadFile,
				Resources:    v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")}},
				VolumeMounts: []v1.VolumeMount{{Name: "kube-api-access-x", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}},
			}},
		},
		Status: v1.PodStatus{Phase: v1.PodPending, QOSClass: v1.PodQOSBurstable, Conditions: []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue}}},
	}
}

var ofAPI = decode.Options{Kind: manifest.KindAPI, Source: "the cluster", Path: "the cluster", NodeName: "n1", Now: time.Unix(1_700_000_100, 0)}

// TestFromAPI checks that the Pod has the identity, metadata and spec of the API server's pod, and
// that FromAPI does not modify the API server's pod.
func TestFromAPI(t *testing.T) {
	pod := scheduled()
	before := pod.DeepCopy()
	p := decode.FromAPI(pod, ofAPI)
	if p.RefusalReason != "" || p.Key.String() != "default/web-7d4b-x2x9z" || p.UID != pod.UID || p.Origin.Kind != manifest.KindAPI || p.Origin.Source != "the cluster" || p.Deletion != nil || p.HasFinishedAtSource() {
		t.Fatalf("FromAPI: got %+v, want the key, UID and traits of the given pod", p)
	}
	if want := manifest.KindTraits(manifest.KindAPI); p.Traits != want {
		t.Errorf("got traits %+v, want %+v", p.Traits, want)
	}
	if a := p.Object.Annotations; a[manifest.AnnotationConfigSource] != "api" || a[manifest.AnnotationConfigSeen] == "" || a[manifest.AnnotationConfigHash] != "" {
		t.Errorf("annotations: got %v, want the source \"api\", the time when podd first saw the pod, and no hash", a)
	}
	if p.Object.Generation != 1 || p.Object.OwnerReferences == nil || p.Object.Spec.NodeName != "n1" || len(p.Object.Spec.Tolerations) != 2 {
		t.Errorf("Spec: got %+v, want the metadata and spec of the given pod", p.Object)
	}
	if !equality.Semantic.DeepEqual(pod, before) {
		t.Error("FromAPI changed the given pod")
	}
	if uses := refs.List(p); len(uses) != 2 || uses[0].Token == nil || uses[1].Object.Name != "kube-root-ca.crt" {
		t.Errorf("references: got %v, want a token and kube-root-ca.crt", uses)
	}
}

// TestFromAPI_Changes checks which hashes a change of a pod in the API server changes. A change
// of a mutable field does not change the version of the pod.
func TestFromAPI_Changes(t *testing.T) {
	const same, image, size, another = "same", "image", "size", "another"
	for _, test := range []struct {
		note   string
		change func(*v1.Pod)
		want   string
	}{
		{"labels", func(p *v1.Pod) { p.Labels["app"] = "x" }, same},
		{"annotations", func(p *v1.Pod) { p.Annotations = map[string]string{"podd/restart-on-change": "odd"} }, same},
		{"tolerations", func(p *v1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, v1.Toleration{Key: "x"}) }, same},
		{"deadline", func(p *v1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(5)) }, same},
		{"grace", func(p *v1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(1)) }, same},
		{"status", func(p *v1.Pod) { p.Status.Phase, p.ResourceVersion = v1.PodRunning, "900" }, same},
		{"a default of a newer API server", func(p *v1.Pod) { p.Spec.SetHostnameAsFQDN = new(false) }, same},
		{"image", func(p *v1.Pod) { p.Spec.Containers[0].Image = "web:2" }, image},
		{"resize", func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("200m")}
		}, size},
		{"uid", func(p *v1.Pod) { p.UID = "other" }, another},
	} {
		pod := scheduled()
		was := decode.FromAPI(pod, ofAPI)
		test.change(pod)
		is := decode.FromAPI(pod, ofAPI)
		got := same
		switch a, b := was.ContainerHashes["app"], is.ContainerHashes["app"]; {
		case was.Hash != is.Hash || was.SandboxHash != is.SandboxHash:
			got = another
		case a.StartHash != b.StartHash:
			got = image
		case a.Resources != b.Resources:
			got = size
		}
		if got != test.want || is.RefusalReason != "" {
			t.Errorf("%s: got changed hash %s and reason of refusal %q, want %s and no reason", test.note, got, is.RefusalReason, test.want)
		}
	}
}

func TestFromAPI_Refused(t *testing.T) {
	for _, test := range []struct {
		change func(*v1.Pod)
		want   string
	}{
		{func(p *v1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{CSI: &v1.CSIVolumeSource{Driver: "x.example", NodePublishSecretRef: &v1.LocalObjectReference{Name: "s"}}}})
		}, ""},
		{func(p *v1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{CSI: &v1.CSIVolumeSource{Driver: "../x"}}})
		}, "spec.volumes[1].csi.driver: "},
		{func(p *v1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{CSI: &v1.CSIVolumeSource{Driver: "x.example", NodePublishSecretRef: &v1.LocalObjectReference{Name: "a,b"}}}})
		}, "spec.volumes[1].csi.nodePublishSecretRef.name: "},
		{func(p *v1.Pod) {
			block := v1.PersistentVolumeBlock
			template := &v1.PersistentVolumeClaimTemplate{Spec: v1.PersistentVolumeClaimSpec{VolumeMode: &block, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
				VolumeAttributesClassName: new("fast"), Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}}}}
			p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "v", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{VolumeClaimTemplate: template}}})
			p.Spec.Containers[0].VolumeDevices = []v1.VolumeDevice{{Name: "v", DevicePath: "/dev/v"}}
		}, ""},
		{func(p *v1.Pod) { p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "x"}} }, "spec.resourceClaims: is not supported for pods of a cluster"},
		{func(p *v1.Pod) { p.Spec.Containers[0].VolumeMounts[0].MountPath = "" }, "spec.containers[0].volumeMounts[0].mountPath: "},
		{func(p *v1.Pod) { p.Spec.OS = &v1.PodOS{Name: v1.Windows} }, ""},
		{func(p *v1.Pod) {
			o := &v1.WindowsSecurityContextOptions{RunAsUserName: new("x")}
			p.Spec.SecurityContext = &v1.PodSecurityContext{WindowsOptions: o}
			p.Spec.Containers[0].SecurityContext = &v1.SecurityContext{WindowsOptions: o}
		}, ""},
		{func(p *v1.Pod) {
			c := v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug", Image: "x", TTY: true, Stdin: true}}
			p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, c)
		}, ""},
	} {
		pod := scheduled()
		test.change(pod)
		if got := decode.FromAPI(pod, ofAPI).RefusalReason; (got == "") != (test.want == "") || !strings.HasPrefix(got, test.want) {
			t.Errorf("reason of refusal: got %q, want %q", got, test.want)
		}
	}
	pod := scheduled()
	pod.UID = "../x"
	if p := decode.FromAPI(pod, ofAPI); p != nil {
		t.Errorf("FromAPI with an unsafe UID: got %+v, want nil", p)
	}
}

// TestFromAPI_Deleted checks that a deleted or completed pod is not a desired pod.
func TestFromAPI_Deleted(t *testing.T) {
	at := metav1.NewTime(time.Unix(1_700_000_200, 0))
	for _, test := range []struct {
		grace *int64
		want  time.Duration
	}{{nil, 30 * time.Second}, {new(int64(7)), 7 * time.Second}, {new(int64(0)), time.Second}, {new(int64(1 << 62)), 100 * 365 * 24 * time.Hour}} {
		pod := scheduled()
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, test.grace
		p := decode.FromAPI(pod, ofAPI)
		if p.Deletion == nil || p.Deletion.GracePeriod != test.want {
			t.Errorf("grace period %v: got %+v, want %s", test.grace, p.Deletion, test.want)
		}
		set := merge.Batches([]manifest.Batch{{Source: "the cluster", Kind: manifest.KindAPI, Pods: []*manifest.Pod{p}, Version: 3}})
		if len(set.Pods) > 0 || set.TerminatingPods[p.Key] != p || set.BatchVersions["the cluster"] != 3 {
			t.Errorf("set: got %+v, want the pod only in TerminatingPods", set)
		}
	}
	pod := scheduled()
	pod.Status.Phase = v1.PodFailed
	if !decode.FromAPI(pod, ofAPI).HasFinishedAtSource() {
		t.Error("HasFinishedAtSource of a failed pod: got false, want true")
	}
}
