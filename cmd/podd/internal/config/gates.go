package config

import (
	_ "embed"
	"fmt"
	"strings"

	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/manifest"
	"podd/manifest/wording"
)

// featureGates contains the names of the kubelet's feature gates, which the program
// testdata/controlplane/settings records. The kubelet does not start if another name is set.
//
//go:embed feature_gates.txt
var featureGates string

var gateNames = strings.Fields(featureGates)

// isAlwaysEnabled is the set of feature gates whose features podd supports and cannot disable. All
// other feature gates are always disabled in podd, except switchableGates.
var isAlwaysEnabled = newSet(
	"ClusterTrustBundle", "ClusterTrustBundleProjection", "ComponentFlagz", "ComponentStatusz", "ContainerCheckpoint", "ContainerRestartRules", "ContainerStopSignals",
	"DisableNodeKubeProxyVersion", "EnvFiles", "EventedPLEG", "ExecProbeTimeout", "HostnameOverride", "ImageVolume",
	"InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScaling", "InPlacePodVerticalScalingInitContainers",
	"KubeletCgroupDriverFromCRI", "KubeletCrashLoopBackOffMax", "KubeletFineGrainedAuthz", "KubeletPSI", "KubeletPodResourcesGet", "KubeletServiceAccountTokenForCredentialProviders",
	"NodeDeclaredFeatures", "NodeSwap", "PLEGOnDemandRelist",
	"PodCertificateRequest", "PodLevelResources", "PodLogsQuerySplitStreams", "PodObservedGenerationTracking", "PodReadyToStartContainersCondition", "ProcMountType",
	"RecoverVolumeExpansionFailure", "RecursiveReadOnlyMounts", "RelaxedEnvironmentVariableValidation",
	"ReloadKubeletClientCAFile", "ReloadKubeletServerCertificateFile", "ResourceHealthStatus", "RestartAllContainersOnContainerExits", "RotateKubeletServerCertificate",
	"SupplementalGroupsPolicy", "SystemdWatchdog", "TaintTolerationComparisonOperators", "UserNamespacesSupport",
)

// switchableGates contains the feature gates that a user can enable and disable, with their defaults.
var switchableGates = map[string]bool{
	gateGracefulShutdown:   true,
	gateShutdownByPriority: true,
	gateMemoryQoS:          true,
	gateVerifyCredentials:  true,
	gateDefaultPodSysctls:  false,
	gatePodsAPI:            true,
	gateCustomQuotaPeriod:  true,
}

// gatePodsAPI is the feature gate of the API that package podsapi serves.
const gatePodsAPI = "PodsAPI"

// isGateEnabled reports whether a gate of switchableGates is enabled.
func isGateEnabled(k *kubelet.KubeletConfiguration, gate string) bool {
	if isOn, isSet := k.FeatureGates[gate]; isSet {
		return isOn
	}
	return switchableGates[gate]
}

// gateAllBeta is the feature gate of all beta features. podd supports some of these features and
// cannot disable those that it supports.
const gateAllBeta = "AllBeta"

// isFeatureGate is the set of the names in gateNames.
var isFeatureGate = newSet(gateNames...)

// newUnknownGateWarning returns a warning that suggests the feature gate with the most similar
// name. o is the position of the unknown gate.
func newUnknownGateWarning(name string, o origin) manifest.Problem {
	text := "unknown feature gate, which is ignored"
	if near := wording.FindClosest(name, gateNames); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return o.keyProblem(manifest.Warning, "featureGates", name, text)
}
