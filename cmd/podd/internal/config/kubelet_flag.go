package config

// An UnsupportedFlag is a flag of the kubelet or of an earlier kubelet that the user has set and that
// Flags does not contain. NormalizeArgs returns these flags.
type UnsupportedFlag struct {
	Name  string // without dashes
	field string // path of the v1beta1 field that the flag sets; may be ""
	value any    // value of the field as decoded from JSON; nil if there is no field
	// isEmpty is set if the value is "" or false. Such a flag has no effect in the kubelet either,
	// and therefore causes no warning.
	isEmpty bool
}

// valueFormat is the format of a flag's value.
type valueFormat int

const (
	textFormat valueFormat = iota
	booleanFormat
	numberFormat
	durationFormat
	listFormat         // a,b
	pairsFormat        // a=b,c=d
	thresholdsFormat   // a<b,c<d
	featureGatesFormat // A=true,B=false
	vmoduleFormat      // pattern=4,pattern=2
	runtimeFormat      // remote
	numaMemoryFormat   // 0:memory=1Gi,hugepages-2Mi=1Gi;1:memory=2Gi
)

// A kubeletFlag is a flag of the kubelet or of an earlier kubelet that Flags does not contain.
type kubeletFlag struct {
	name   string
	format valueFormat
	// field is the path of the v1beta1 field that the flag sets. It is "" if there is no field.
	field string
}

// kubeletFlags are the flags of the kubelet (cmd/kubelet/app/options and the libraries that it
// uses) that Flags does not contain. A flag with a field sets that field, and podd validates the
// value. podd prints a warning for a flag without a field.
var kubeletFlags = []kubeletFlag{
	{"authentication-token-webhook", booleanFormat, "authentication.webhook.enabled"},
	{"authentication-token-webhook-cache-ttl", durationFormat, "authentication.webhook.cacheTTL"},
	{"authorization-webhook-cache-authorized-ttl", durationFormat, "authorization.webhook.cacheAuthorizedTTL"},
	{"authorization-webhook-cache-unauthorized-ttl", durationFormat, "authorization.webhook.cacheUnauthorizedTTL"},
	{"cgroups-per-qos", booleanFormat, "cgroupsPerQOS"},
	{"contention-profiling", booleanFormat, "enableContentionProfiling"},
	{"cpu-cfs-quota", booleanFormat, "cpuCFSQuota"},
	{"cpu-cfs-quota-period", durationFormat, "cpuCFSQuotaPeriod"},
	{"cpu-manager-policy", textFormat, "cpuManagerPolicy"},
	{"cpu-manager-policy-options", pairsFormat, "cpuManagerPolicyOptions"},
	{"cpu-manager-reconcile-period", durationFormat, "cpuManagerReconcilePeriod"},
	{"enable-controller-attach-detach", booleanFormat, "enableControllerAttachDetach"},
	{"enforce-node-allocatable", listFormat, "enforceNodeAllocatable"},
	{"event-burst", numberFormat, "eventBurst"},
	{"event-qps", numberFormat, "eventRecordQPS"},
	{"eviction-hard", thresholdsFormat, "evictionHard"},
	{"eviction-max-pod-grace-period", numberFormat, "evictionMaxPodGracePeriod"},
	{"eviction-minimum-reclaim", pairsFormat, "evictionMinimumReclaim"},
	{"eviction-pressure-transition-period", durationFormat, "evictionPressureTransitionPeriod"},
	{"eviction-soft", thresholdsFormat, "evictionSoft"},
	{"eviction-soft-grace-period", pairsFormat, "evictionSoftGracePeriod"},
	{"feature-gates", featureGatesFormat, "featureGates"},
	{"hairpin-mode", textFormat, "hairpinMode"},
	{"image-gc-high-threshold", numberFormat, "imageGCHighThresholdPercent"},
	{"image-gc-low-threshold", numberFormat, "imageGCLowThresholdPercent"},
	{"kernel-memcg-notification", booleanFormat, "kernelMemcgNotification"},
	{"kube-reserved", pairsFormat, "kubeReserved"},
	{"kube-reserved-cgroup", textFormat, "kubeReservedCgroup"},
	{"kubelet-cgroups", textFormat, "kubeletCgroups"},
	{"local-storage-capacity-isolation", booleanFormat, "localStorageCapacityIsolation"},
	{"log-flush-frequency", durationFormat, "logging.flushFrequency"},
	{"log-json-info-buffer-size", textFormat, "logging.options.json.infoBufferSize"},
	{"log-json-split-stream", booleanFormat, "logging.options.json.splitStream"},
	{"log-text-info-buffer-size", textFormat, "logging.options.text.infoBufferSize"},
	{"log-text-split-stream", booleanFormat, "logging.options.text.splitStream"},
	{"make-iptables-util-chains", booleanFormat, "makeIPTablesUtilChains"},
	{"max-open-files", numberFormat, "maxOpenFiles"},
	{"memory-manager-policy", textFormat, "memoryManagerPolicy"},
	{"minimum-image-ttl-duration", durationFormat, "imageMinimumGCAge"},
	{"oom-score-adj", numberFormat, "oomScoreAdj"},
	{"pod-cidr", textFormat, "podCIDR"},
	{"pods-per-core", numberFormat, "podsPerCore"},
	{"protect-kernel-defaults", booleanFormat, "protectKernelDefaults"},
	{"qos-reserved", pairsFormat, "qosReserved"},
	{"reserved-cpus", textFormat, "reservedSystemCPUs"},
	{"reserved-memory", numaMemoryFormat, "reservedMemory"},
	{"streaming-connection-idle-timeout", durationFormat, "streamingConnectionIdleTimeout"},
	{"system-cgroups", textFormat, "systemCgroups"},
	{"system-reserved", pairsFormat, "systemReserved"},
	{"system-reserved-cgroup", textFormat, "systemReservedCgroup"},
	{"topology-manager-policy", textFormat, "topologyManagerPolicy"},
	{"topology-manager-policy-options", pairsFormat, "topologyManagerPolicyOptions"},
	{"topology-manager-scope", textFormat, "topologyManagerScope"},
	{"vmodule", vmoduleFormat, "logging.vmodule"},
	{"volume-plugin-dir", textFormat, "volumePluginDir"},
	{"volume-stats-agg-period", durationFormat, "volumeStatsAggPeriod"},

	// These flags have no field.
	{"experimental-mounter-path", textFormat, ""},
	{"housekeeping-interval", textFormat, ""},
}

// findKubeletFlag returns the flag with the name in kubeletFlags or formerFlags. name has no leading
// dashes. ok is false if there is no such flag.
func findKubeletFlag(name string) (flag kubeletFlag, ok bool) {
	for _, f := range kubeletFlags {
		if f.name == name {
			return f, true
		}
	}
	return findFormerFlag(name)
}
