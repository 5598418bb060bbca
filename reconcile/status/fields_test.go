package status

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/manifest/manifesttest/apifields"
	"podd/reconcile/device/allocation"
	"podd/runtime"
)

// unsetFields contains the fields of a v1.PodStatus that Compute does not set, and why.
var unsetFields = map[string]string{
	"PodStatus.nominatedNodeName":                    "the scheduler sets it",
	"PodStatus.resize":                               "deprecated; the kubelet uses the conditions PodResizePending and PodResizeInProgress",
	"PodStatus.resourceClaimStatuses":                "the controller of ResourceClaims sets it",
	"PodStatus.extendedResourceClaimStatus":          "the scheduler sets it",
	"PodStatus.nodeAllocatableResourceClaimStatuses": "the scheduler sets it",
	"PodStatus.volumeHealth":                         "podd does not have the alpha feature CSIVolumeHealth",
	"PodCondition.lastProbeTime":                     "the kubelet sets it only in the conditions of a resize, to the time of its last attempt",
	"ResourceRequirements.claims":                    "podd does not allocate the devices of ResourceClaims",
	"ContainerStateTerminated.signal":                "the kubelet does not set it either, because CRI reports only the exit code",
	"VolumeMountStatus.volumeStatus":                 "podd does not have the alpha feature ImageVolumeWithDigest",
	"ResourceHealth.message":                         "the kubelet sets it only for devices of ResourceClaims",
}

// fieldSamples returns statuses that together have all fields and all condition types that Compute sets.
func fieldSamples() []any {
	cpu := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
	full := runningFacts(v1.Container{
		Image:        "a:1",
		Resources:    v1.ResourceRequirements{Requests: cpu, Limits: cpu},
		VolumeMounts: []v1.VolumeMount{{Name: "data", MountPath: "/data", ReadOnly: true}},
		Lifecycle:    &v1.Lifecycle{StopSignal: new(v1.SIGUSR1)},
	})
	full.Pod.Object.Generation = 2
	full.Pod.Object.Spec.InitContainers = []v1.Container{{Name: "init"}}
	full.Pod.Object.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug"}}}
	full.AllocatedResources, full.Resources = cpu, &v1.ResourceRequirements{Requests: cpu, Limits: cpu}
	full.Resize = Resize{PendingReason: Reason{"Deferred", "later"}, InProgress: true}
	full.UnhealthyDevices = &allocation.UnhealthyDevices{}
	record := &full.Observed[0].Containers[0]
	record.ImageRef, record.User, record.Attempt = "sha256:1", &runtime.User{UID: 1, GID: 1, Groups: []int64{1}}, 1
	record.Annotations = map[string]string{runtime.AnnotationDevices: `{"example.com/gpu":["a"]}`}
	full.Observed[0].Containers = append(full.Observed[0].Containers, runtime.Container{
		ID: "earlier", Name: "main", State: runtime.Exited, StartedAt: epoch, FinishedAt: epoch, ExitCode: 1, Reason: "Error", Message: "failed",
	})

	evicted := runningFacts(v1.Container{})
	evicted.Observed[0].Containers[0].State = runtime.Exited
	evicted.FailureReason, evicted.IsPressureEviction = &Reason{"Evicted", "The node was low on resource: memory."}, true

	waiting := runningFacts(v1.Container{RestartPolicy: new(v1.ContainerRestartPolicyNever), RestartPolicyRules: []v1.ContainerRestartRule{{Action: v1.ContainerRestartRuleActionRestartAllContainers}}})
	waiting.Observed = nil
	waiting.Containers["main"] = ContainerFacts{Waiting: Reason{"ErrImagePull", "not found"}}
	return []any{Compute(full), Compute(evicted), Compute(waiting)}
}

// TestFields checks that Compute sets all fields of a v1.PodStatus except unsetFields.
func TestFields(t *testing.T) { apifields.Check(t, unsetFields, fieldSamples()...) }

// TestConditionTypes checks that Compute sets all types of conditions.
func TestConditionTypes(t *testing.T) {
	var got []string
	for _, s := range fieldSamples() {
		for _, c := range s.(v1.PodStatus).Conditions {
			got = append(got, string(c.Type))
		}
	}
	for _, want := range apifields.Constants(t, "PodConditionType") {
		if !slices.Contains(got, want) {
			t.Errorf("got no condition %s, want one; got %v", want, got)
		}
	}
}
