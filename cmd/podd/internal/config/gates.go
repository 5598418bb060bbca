package config

import (
	"fmt"
	"maps"
	"slices"

	"podd/manifest"
	"podd/manifest/wording"
)

// gateNames are the feature gates of the kubelet 1.34. The kubelet does not start if another
// name is set.
var gateNames = []string{
	"APIResponseCompression", "APIServerIdentity", "APIServerTracing", "APIServingWithRoutine",
	"AggregatedDiscoveryRemoveBetaType", "AllAlpha", "AllBeta", "AllowDNSOnlyNodeCSR",
	"AllowInsecureKubeletCertificateSigningRequests", "AllowOverwriteTerminationGracePeriodSeconds",
	"AllowParsingUserUIDFromCertAuth", "AllowServiceLBStatusOnNonLB", "AllowUnsafeMalformedObjectDeletion",
	"AnonymousAuthConfigurableEndpoints", "AnyVolumeDataSource", "AuthorizeNodeWithSelectors",
	"AuthorizeWithSelectors", "BtreeWatchCache", "CBORServingAndStorage", "CPUManagerPolicyAlphaOptions",
	"CPUManagerPolicyBetaOptions", "CPUManagerPolicyOptions", "CRDValidationRatcheting", "CSIMigrationPortworx",
	"CSIVolumeHealth", "ClearingNominatedNodeNameAfterBinding", "ClientsAllowCBOR", "ClientsPreferCBOR",
	"CloudControllerManagerWebhook", "ClusterTrustBundle", "ClusterTrustBundleProjection", "ComponentFlagz",
	"ComponentSLIs", "ComponentStatusz", "ConcurrentWatchObjectDecode", "ConsistentListFromCache",
	"ContainerCheckpoint", "ContainerRestartRules", "ContainerStopSignals", "ContextualLogging",
	"CoordinatedLeaderElection", "CronJobsScheduledAnnotation", "CrossNamespaceVolumeDataSource",
	"CustomCPUCFSQuotaPeriod", "CustomResourceFieldSelectors", "DRAAdminAccess", "DRAConsumableCapacity",
	"DRADeviceBindingConditions", "DRADeviceTaints", "DRAExtendedResource", "DRAPartitionableDevices",
	"DRAPrioritizedList", "DRAResourceClaimDeviceStatus", "DRASchedulerFilterTimeout", "DeclarativeValidation",
	"DeclarativeValidationTakeover", "DeploymentReplicaSetTerminatingReplicas", "DetectCacheInconsistency",
	"DisableAllocatorDualWrite", "DisableCPUQuotaWithExclusiveCPUs", "DisableNodeKubeProxyVersion",
	"DynamicResourceAllocation", "EnvFiles", "EventedPLEG", "ExecProbeTimeout",
	"ExternalServiceAccountTokenSigner", "GitRepoVolumeDriver", "GracefulNodeShutdown",
	"GracefulNodeShutdownBasedOnPodPriority", "HPAConfigurableTolerance", "HPAScaleToZero",
	"HonorPVReclaimPolicy", "HostnameOverride", "ImageMaximumGCAge", "ImageVolume", "InOrderInformers",
	"InPlacePodVerticalScaling", "InPlacePodVerticalScalingAllocatedStatus",
	"InPlacePodVerticalScalingExclusiveCPUs", "InPlacePodVerticalScalingExclusiveMemory",
	"InTreePluginPortworxUnregister", "InformerResourceVersion", "JobBackoffLimitPerIndex", "JobManagedBy",
	"JobPodReplacementPolicy", "JobSuccessPolicy", "KMSv1", "KubeletCgroupDriverFromCRI",
	"KubeletCrashLoopBackOffMax", "KubeletEnsureSecretPulledImages", "KubeletFineGrainedAuthz",
	"KubeletInUserNamespace", "KubeletPSI", "KubeletPodResourcesDynamicResources", "KubeletPodResourcesGet",
	"KubeletPodResourcesListUseActivePods", "KubeletRegistrationGetOnExistsOnly", "KubeletSeparateDiskGC",
	"KubeletServiceAccountTokenForCredentialProviders", "KubeletTracing", "ListFromCacheSnapshot",
	"LoadBalancerIPMode", "LocalStorageCapacityIsolationFSQuotaMonitoring", "LogarithmicScaleDown",
	"LoggingAlphaOptions", "LoggingBetaOptions", "LoggingStableOptions", "MatchLabelKeysInPodAffinity",
	"MatchLabelKeysInPodTopologySpread", "MatchLabelKeysInPodTopologySpreadSelectorMerge",
	"MaxUnavailableStatefulSet", "MemoryManager", "MemoryQoS", "MultiCIDRServiceAllocator",
	"MutableCSINodeAllocatableCount", "MutatingAdmissionPolicy", "MyFeature", "NFTablesProxyMode",
	"NodeInclusionPolicyInPodTopologySpread", "NodeLogQuery", "NodeSwap", "NominatedNodeNameForExpectation",
	"OpenAPIEnums", "OrderedNamespaceDeletion", "PodAndContainerStatsFromCRI", "PodCertificateRequest",
	"PodDeletionCost", "PodIndexLabel", "PodLevelResources", "PodLifecycleSleepAction",
	"PodLifecycleSleepActionAllowZero", "PodLogsQuerySplitStreams", "PodObservedGenerationTracking",
	"PodReadyToStartContainersCondition", "PodSchedulingReadiness", "PodTopologyLabelsAdmission",
	"PortForwardWebsockets", "PreferSameTrafficDistribution", "PreventStaticPodAPIReferences",
	"ProbeHostPodSecurityStandards", "ProcMountType", "QOSReserved", "RecoverVolumeExpansionFailure",
	"RecursiveReadOnlyMounts", "ReduceDefaultCrashLoopBackOffDecay", "RelaxedDNSSearchValidation",
	"RelaxedEnvironmentVariableValidation", "RelaxedServiceNameValidation",
	"ReloadKubeletServerCertificateFile", "RemoteRequestHeaderUID", "ResilientWatchCacheInitialization",
	"ResourceHealthStatus", "RetryGenerateName", "RotateKubeletServerCertificate", "RuntimeClassInImageCriApi",
	"SELinuxChangePolicy", "SELinuxMount", "SELinuxMountReadWriteOncePod", "SchedulerAsyncAPICalls",
	"SchedulerAsyncPreemption", "SchedulerPopFromBackoffQ", "SchedulerQueueingHints", "SeparateCacheWatchRPC",
	"SeparateTaintEvictionController", "ServiceAccountNodeAudienceRestriction", "ServiceAccountTokenJTI",
	"ServiceAccountTokenNodeBinding", "ServiceAccountTokenNodeBindingValidation",
	"ServiceAccountTokenPodNodeInfo", "ServiceTrafficDistribution", "SidecarContainers",
	"SizeBasedListCostEstimate", "SizeMemoryBackedVolumes", "StatefulSetAutoDeletePVC",
	"StatefulSetSemanticRevisionComparison", "StorageCapacityScoring", "StorageNamespaceIndex",
	"StorageVersionAPI", "StorageVersionHash", "StorageVersionMigrator", "StreamingCollectionEncodingToJSON",
	"StreamingCollectionEncodingToProtobuf", "StrictCostEnforcementForVAP", "StrictCostEnforcementForWebhooks",
	"StrictIPCIDRValidation", "StructuredAuthenticationConfiguration",
	"StructuredAuthenticationConfigurationEgressSelector", "StructuredAuthorizationConfiguration",
	"SupplementalGroupsPolicy", "SystemdWatchdog", "TokenRequestServiceAccountUIDValidation",
	"TopologyAwareHints", "TopologyManagerPolicyAlphaOptions", "TopologyManagerPolicyBetaOptions",
	"TopologyManagerPolicyOptions", "TranslateStreamCloseWebsocketRequests",
	"UnauthenticatedHTTP2DOSMitigation", "UnknownVersionInteroperabilityProxy",
	"UserNamespacesPodSecurityStandards", "UserNamespacesSupport", "VolumeAttributesClass",
	"WatchCacheInitializationPostStartHook", "WatchFromStorageWithoutResourceVersion", "WatchList",
	"WatchListClient", "WinDSR", "WinOverlay", "WindowsCPUAndMemoryAffinity", "WindowsGracefulNodeShutdown",
	"WindowsHostNetwork",
}

const (
	// gateRestartRules is the feature gate for restart policies and rules of containers.
	gateRestartRules = "ContainerRestartRules"
	// gateMaxCrashBackoff is the feature gate for the field
	// crashLoopBackOff.maxContainerRestartPeriod, which podd always supports.
	gateMaxCrashBackoff = "KubeletCrashLoopBackOffMax"
)

// RestartRulesEnabled reports whether ContainerRestartRules is enabled. gates maps feature gates to
// their values. ContainerRestartRules is disabled by default.
func RestartRulesEnabled(gates map[string]bool) bool { return gates[gateRestartRules] }

// CheckFeatureGates returns a warning for each unknown gate in a value of --feature-gates.
func CheckFeatureGates(gates map[string]bool) (unknown []Warning) {
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		if !isFeatureGate[name] {
			unknown = append(unknown, newUnknownGateWarning(name, origin{flag: "--feature-gates"}))
		}
	}
	return unknown
}

// isFeatureGate is the set of gateNames.
var isFeatureGate = newSet(gateNames...)

// newUnknownGateWarning returns a warning that suggests the feature gate with the most similar
// name. o is the position of the unknown gate.
func newUnknownGateWarning(name string, o origin) manifest.Problem {
	text := "unknown feature gate, ignored"
	if near := wording.FindClosest(name, gateNames); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return o.keyProblem(manifest.Warning, "featureGates", name, text)
}
