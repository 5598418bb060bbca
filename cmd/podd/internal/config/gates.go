package config

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/manifest"
	"podd/manifest/wording"
)

// featureGates contains a line for each of the kubelet's feature gates: the name, the default, the stage,
// and "locked" if the kubelet rejects all other values. The program testdata/controlplane/settings writes
// this file. The kubelet does not start if its configuration contains any other feature gate.
//
//go:embed feature_gates.txt
var featureGates string

// formerGates contains a line for each feature gate that is not in featureGates and that a kubelet from
// Kubernetes 1.4, the first with feature gates, to 1.36 had. The names come from the last patch releases
// (pkg/features of k8s.io/kubernetes, k8s.io/apiserver and their predecessors).
//
//go:embed former_feature_gates.txt
var formerGates string

// gateNames contains the names in featureGates. lockedGates contains the values of the locked gates.
var gateNames, lockedGates = parseFeatureGates(featureGates)

// parseFeatureGates parses lines with the format of featureGates.
func parseFeatureGates(text string) (names []string, lockedValues map[string]bool) {
	lockedValues = map[string]bool{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		names = append(names, fields[0])
		if len(fields) == 4 {
			lockedValues[fields[0]] = fields[1] == "true"
		}
	}
	return names, lockedValues
}

// isAlwaysEnabled is the set of feature gates whose features podd supports and cannot disable. podd
// rejects the value false. The last line contains gates that a kubelet reads only to check static pods and to
// set their defaults.
var isAlwaysEnabled = newSet(
	"AllowParsingUserUIDFromCertAuth", "ClusterTrustBundle", "ClusterTrustBundleProjection", "ComponentFlagz", "ComponentStatusz", "ContainerCheckpoint", "ContainerRestartRules", "ContainerStopSignals",
	"DisableNodeKubeProxyVersion", "EnvFiles", "EventedPLEG", "ExecProbeTimeout", "HostnameOverride", "ImageMaximumGCAge", "ImageVolume",
	"InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScaling", "InPlacePodVerticalScalingInitContainers",
	"KubeletCgroupDriverFromCRI", "KubeletCrashLoopBackOffMax", "KubeletFineGrainedAuthz", "KubeletPSI", "KubeletPodResourcesGet", "KubeletServiceAccountTokenForCredentialProviders", "KubeletTracing",
	"MutableCSINodeAllocatableCount", "NodeDeclaredFeatures", "NodeLogQuery", "NodeSwap", "PLEGOnDemandRelist",
	"PodCertificateRequest", "PodLevelResources", "PodLogsQuerySplitStreams", "PodObservedGenerationTracking", "PodReadyToStartContainersCondition", "ProcMountType",
	"RecoverVolumeExpansionFailure", "RecursiveReadOnlyMounts", "RelaxedEnvironmentVariableValidation",
	"ReloadKubeletClientCAFile", "ReloadKubeletServerCertificateFile", "ResourceHealthStatus", "RestartAllContainersOnContainerExits", gateRotateServing,
	"SELinuxChangePolicy", "SELinuxMountReadWriteOncePod", "SupplementalGroupsPolicy", "SystemdWatchdog", "TaintTolerationComparisonOperators", "UserNamespacesSupport",
	"MatchLabelKeysInPodTopologySpread", "MatchLabelKeysInPodTopologySpreadSelectorMerge", "PodDeletionCost", "PodLevelResourcesFixDefaulting", "StrictIPCIDRValidation",
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
	gateSplitStream:        false,
	gateSELinuxMount:       true,
	gateHugePageEviction:   true,
	gateInUserNamespace:    true,
}

// gateRotateServing is the feature gate of serverTLSBootstrap.
const gateRotateServing = "RotateKubeletServerCertificate"

// gatePodsAPI is the feature gate of the API that package podsapi serves.
const gatePodsAPI = "PodsAPI"

// gateSELinuxMount is the feature gate of SELinux labels for mounts with any access mode.
const gateSELinuxMount = "SELinuxMount"

// gateHugePageEviction is the feature gate that subtracts huge pages from the available memory of the node.
const gateHugePageEviction = "HugepageAwareEviction"

// gateInUserNamespace is the feature gate of the field runningInUserNamespace of the Node. In the kubelet,
// it also determines whether the kubelet runs in a user namespace in which it cannot read the kernel's
// log or set kernel parameters. podd always runs.
const gateInUserNamespace = "KubeletInUserNamespace"

// isGateEnabled reports whether a gate of switchableGates is enabled.
func isGateEnabled(k *kubelet.KubeletConfiguration, gate string) bool {
	if isOn, isSet := k.FeatureGates[gate]; isSet {
		return isOn
	}
	return switchableGates[gate]
}

// gateAllAlpha and gateAllBeta are the feature gates of all alpha features and of all beta features.
// podd supports only some of these features.
const (
	gateAllAlpha = "AllAlpha"
	gateAllBeta  = "AllBeta"
)

// isFeatureGate is the set of the names in gateNames.
var isFeatureGate = newSet(gateNames...)

// newUnknownGateProblem returns the Problem of a name that is not in featureGates. It is a warning
// if an earlier kubelet had this feature gate, so that podd starts with the configuration of such a
// kubelet. Otherwise it is an error, as in the kubelet, that suggests the feature gate with the most
// similar name. o is the position of the name.
func newUnknownGateProblem(name string, o origin) manifest.Problem {
	if slices.Contains(strings.Fields(formerGates), name) {
		return o.keyProblem(manifest.Warning, "featureGates", name, "ignored, because Kubernetes has removed this feature gate")
	}
	text := "unknown feature gate"
	if near := wording.FindClosest(name, gateNames); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return o.keyProblem(manifest.Error, "featureGates", name, text)
}

// checkGates rejects unknown feature gates, and feature gates with values that podd does not support.
// It warns about feature gates that Kubernetes has removed.
func (c *checker) checkGates() {
	for _, name := range slices.Sorted(maps.Keys(c.kubelet.FeatureGates)) {
		o := c.merged.origin(joinKey("featureGates", name))
		if !isFeatureGate[name] {
			c.problems = append(c.problems, newUnknownGateProblem(name, o))
			continue
		}
		if name == gateRotateServing && !c.kubelet.FeatureGates[name] && !c.kubelet.ServerTLSBootstrap {
			c.problems = append(c.problems, o.keyProblem(manifest.Warning, "featureGates", name, "ignored, because it has no effect without serverTLSBootstrap"))
			continue
		}
		if reason := rejectGate(name, c.kubelet.FeatureGates[name]); reason != "" {
			c.problems = append(c.problems, o.keyProblem(manifest.Error, "featureGates", name, reason))
		}
	}
}

// rejectGate returns the reason why podd rejects the value of a feature gate, or "" if podd
// accepts the value.
func rejectGate(name string, value bool) string {
	group := findGateGroup(name)
	lock, isLocked := lockedGates[name]
	switch {
	case name == gateAllAlpha && value, name == gateAllBeta:
		return fmt.Sprintf("%t: podd supports only some of these features and cannot disable others; set the feature gates that you need", value)
	case isAlwaysEnabled[name] && !value:
		return "false: podd cannot disable this feature; remove this feature gate"
	case group != nil && group.lacksFeature && value:
		return "true: " + group.reason + "; remove this feature gate"
	case isLocked && value != lock && (group == nil || !group.lacksFeature):
		return fmt.Sprintf("%t: Kubernetes has locked this feature gate to %t; remove it", value, lock)
	}
	return ""
}
