package config

import "slices"

// A gateGroup contains feature gates of the kubelet that have no effect in podd for the same reason.
type gateGroup struct {
	// lacksFeature is set if podd does not have the features of the gates. podd then rejects the
	// value true, and accepts false. For the other groups, it prints a warning for both values.
	lacksFeature bool
	reason       string // the last part of the error or warning
	gates        []string
}

var gateGroups = []gateGroup{{
	lacksFeature: true,
	reason:       "podd does not allocate the devices of ResourceClaims",
	gates: []string{
		"DynamicResourceAllocation", "DRAExtendedResource", "DRANodeAllocatableResources", "DRAOptionalNodeOperations", "DRAWorkloadResourceClaims",
		"KubeletPodResourcesDynamicResources", "ResourceHealthStatusMessage",
	},
}, {
	lacksFeature: true,
	reason:       "podd reserves no memory for QoS classes; use memoryReservationPolicy",
	gates:        []string{"QOSReserved"},
}, {
	lacksFeature: true,
	reason:       "podd does not change the delays of crash back-off; use crashLoopBackOff.maxContainerRestartPeriod",
	gates:        []string{"ReduceDefaultCrashLoopBackOffDecay"},
}, {
	lacksFeature: true,
	reason:       "podd rejects the pod fields of this feature",
	gates:        []string{"EmptyDirVolumeMode", "GRPCContainerProbeTLS", "H2CContainerProbe", "UserNamespacesHostNetworkSupport", "VolumeBindMountOptions", "AtomicWriteVolumeUserFields"},
}, {
	lacksFeature: true,
	reason:       "podd measures volumes by counting their files",
	gates:        []string{"LocalStorageCapacityIsolationFSQuotaMonitoring"},
}, {
	lacksFeature: true,
	reason:       "podd resizes neither volumes in memory nor containers by preempting other pods",
	gates:        []string{"InPlacePodVerticalScalingMemoryBackedVolumes", "InPlacePodVerticalScalingSchedulerPreemption"},
}, {
	lacksFeature: true,
	reason:       "podd requests a serving certificate only for a node with an IP address",
	gates:        []string{"AllowDNSOnlyNodeCSR"},
}, {
	lacksFeature: true,
	reason:       "podd reports neither the health of CSI volumes nor the digests of image volumes",
	gates:        []string{"CSIVolumeHealth", "ImageVolumeWithDigest"},
}, {
	lacksFeature: true,
	reason:       "podd keeps the status of containers when it restarts",
	gates:        []string{"ChangeContainerStatusOnKubeletRestart"},
}, {
	lacksFeature: true,
	reason:       "podd rejects gitRepo volumes because of CVE-2024-10220; clone the repository in an init container",
	gates:        []string{"GitRepoVolumeDriver"},
}, {
	lacksFeature: true,
	reason:       "podd does not serve /allocatedPods; use /pods, whose status contains allocatedResources",
	gates:        []string{"KubeletAllocatedPodsEndpoint"},
}, {
	lacksFeature: true,
	reason:       "podd does not distinguish images by RuntimeClass",
	gates:        []string{"RuntimeClassInImageCriApi"},
}, {
	reason: "it has an effect only with the CPU, memory and topology manager policies that podd rejects",
	gates: []string{
		"CPUManagerPolicyAlphaOptions", "CPUManagerPolicyBetaOptions", "CPUManagerPolicyOptions", "DisableCPUQuotaWithExclusiveCPUs",
		"InPlacePodVerticalScalingExclusiveCPUs", "InPlacePodVerticalScalingExclusiveMemory", "PodLevelResourceManagers",
		"TopologyManagerPolicyAlphaOptions", "TopologyManagerPolicyBetaOptions", "TopologyManagerPolicyOptions",
	},
}, {
	reason: "it has an effect only on Windows",
	gates:  []string{"WinDSR", "WinOverlay", "WindowsCPUAndMemoryAffinity", "WindowsGracefulNodeShutdown", "WindowsHostNetwork"},
}, {
	reason: "it selects an implementation in the kubelet or its libraries, and podd has its own",
	gates: []string{
		"AtomicFIFO", "CRIListStreaming", "ClientsAllowCARotation", "ClientsAllowCBOR", "ClientsAllowTLSCacheGC", "ClientsPreferCBOR", "ContextualLogging",
		"ExtendWebSocketsToKubelet", "InOrderInformers", "InOrderInformersBatchProcess", "InformerResourceVersion",
		"KubeletPodResourcesListUseActivePods", "KubeletRegistrationGetOnExistsOnly", "KubeletSeparateDiskGC", "LoggingBetaOptions", "NativeHistograms",
		"PodAndContainerStatsFromCRI", "PodLevelResourcesFixKubeletQOSClass", "UnlockWhileProcessingFIFO", "WatchListClient",
	},
}}

// gatesElsewhere is the group of all feature gates that are in no other table. They have an effect only
// in other programs of Kubernetes, because the kubelet shares the list of feature gates with them.
var gatesElsewhere = gateGroup{reason: "it has no effect in the kubelet either; set it in the programs of the control plane, or in kube-proxy"}

// findGateGroup returns the group of a feature gate that the kubelet has, or nil if the gate is in another
// table.
func findGateGroup(name string) *gateGroup {
	for i := range gateGroups {
		if slices.Contains(gateGroups[i].gates, name) {
			return &gateGroups[i]
		}
	}
	_, isSwitchable := switchableGates[name]
	if isSwitchable || isAlwaysEnabled[name] || name == gateAllAlpha || name == gateAllBeta {
		return nil
	}
	return &gatesElsewhere
}
