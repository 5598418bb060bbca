package admission

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/nodedeclaredfeatures/features"
)

// undeclaredReasons maps each feature that podd does not declare to the reason.
var undeclaredReasons = map[string]string{
	"ExtendWebSocketsToKubelet":                    "the runtime serves WebSocket streams only up to version 4",
	"InPlacePodVerticalScalingMemoryBackedVolumes": "disabled by default",
	"UserNamespacesHostNetworkSupport":             "disabled by default",
	"VolumeBindMountOptions":                       "disabled by default",
	"DRANodeAllocatableResources":                  "disabled by default",
	"DRAOptionalNodeOperations":                    "disabled by default",
}

// TestDeclaredFeatures checks that podd either declares a feature or has a reason not to.
func TestDeclaredFeatures(t *testing.T) {
	got := DeclaredFeatures()
	if want := []string{"InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers", "RestartAllContainersOnContainerExits"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, f := range features.AllFeatures {
		if declared := slices.Contains(got, f.Name()); declared == (undeclaredReasons[f.Name()] != "") {
			t.Errorf("feature %s: got declared %v and reason not to declare it %q, want either of them", f.Name(), declared, undeclaredReasons[f.Name()])
		}
	}
}

func TestCheckDeclared(t *testing.T) {
	pod := &v1.Pod{Spec: v1.PodSpec{
		HostNetwork: true, HostUsers: new(false),
		Containers: []v1.Container{{Name: "app", VolumeMounts: []v1.VolumeMount{{Name: "v", MountPath: "/v", BindMountOptions: []string{"noexec"}}}}},
	}}
	const want = "the pod requires features that podd does not support: UserNamespacesHostNetworkSupport, VolumeBindMountOptions"
	if got := (&Features{}).checkDeclared(pod); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	pod = &v1.Pod{Spec: v1.PodSpec{InitContainers: []v1.Container{{
		RestartPolicyRules: []v1.ContainerRestartRule{{Action: v1.ContainerRestartRuleActionRestartAllContainers}},
	}}}}
	if got := (&Features{}).checkDeclared(pod); got != "" {
		t.Errorf("a feature that podd declares: got %q, want none", got)
	}
}
