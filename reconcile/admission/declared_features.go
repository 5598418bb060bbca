package admission

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-helpers/nodedeclaredfeatures"

	"podd/manifest"
)

// declaredGates are the feature gates of the features that podd declares in the status of the Node
// (KEP-5328). The scheduler and the API server bind a pod that needs a feature only to a node that
// declares this feature. podd does not declare ExtendWebSocketsToKubelet, which the kubelet
// declares by default, because the runtime serves WebSocket streams only up to version 4.
type declaredGates struct{}

// Enabled implements nodedeclaredfeatures.FeatureGate.
func (declaredGates) Enabled(gate string) bool {
	switch gate {
	case "InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers", "RestartAllContainersOnContainerExits":
		return true
	}
	return false
}

// declaredVersion is the version of the kubelet with which podd is compatible. A feature that every
// node of this version has is neither declared nor required.
var declaredVersion = version.MustParse(manifest.KubernetesVersion)

// DeclaredFeatures returns the features for the Node's status, sorted by name. The caller may
// change the result.
func DeclaredFeatures() []string {
	return nodedeclaredfeatures.DefaultFramework.DiscoverNodeFeatures(&nodedeclaredfeatures.NodeConfiguration{
		FeatureGates: declaredGates{}, Version: declaredVersion,
	})
}

// declaredSet contains the features that DeclaredFeatures returns.
var declaredSet = nodedeclaredfeatures.DefaultFramework.MustMapSorted(DeclaredFeatures())

// checkDeclared implements requirement.describeUnmet.
func (f *Features) checkDeclared(pod *v1.Pod) string {
	missingFeatures, err := undeclaredFeatures(pod)
	switch {
	case err != nil:
		return fmt.Sprintf("failed to determine the features that the pod requires: %v", err)
	case len(missingFeatures) > 0:
		return "the pod requires features that podd does not support: " + strings.Join(missingFeatures, ", ")
	}
	return ""
}

// rejectUndeclared returns the kubelet's message for a pod that requires undeclared features. It
// returns "" for other pods.
func rejectUndeclared(pod *v1.Pod) string {
	missingFeatures, err := undeclaredFeatures(pod)
	switch {
	case err != nil:
		return fmt.Sprintf("Failed to infer pod's feature requirements: %v", err)
	case len(missingFeatures) > 0:
		return "Pod requires node features that are not available: " + strings.Join(missingFeatures, ", ")
	}
	return ""
}

// undeclaredFeatures returns the features that the pod requires and podd does not declare.
func undeclaredFeatures(pod *v1.Pod) ([]string, error) {
	framework := nodedeclaredfeatures.DefaultFramework
	required, err := framework.InferForPodScheduling(&nodedeclaredfeatures.PodInfo{Spec: &pod.Spec, Status: &pod.Status}, declaredVersion)
	if err != nil {
		return nil, err
	}
	match, err := framework.MatchNodeFeatureSet(required, declaredSet)
	if err != nil {
		return nil, err
	}
	return match.UnsatisfiedRequirements, nil
}
