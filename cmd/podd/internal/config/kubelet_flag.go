package config

// An UnservedFlag is a flag of the kubelet that the user has set and that Flags does not
// contain. NormalizeArgs returns these flags.
type UnservedFlag struct {
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
	text valueFormat = iota
	boolean
	number
	duration
	list         // a,b
	pairs        // a=b,c=d
	thresholds   // a<b,c<d
	featureGates // A=true,B=false
)

// A kubeletFlag is a flag of the kubelet that Flags does not contain.
type kubeletFlag struct {
	name   string
	format valueFormat
	// field is the path of the v1beta1 field that the flag sets. It is "" if there is no field,
	// or if a merge patch cannot set the field.
	field string
}

// kubeletFlags are the flags of the kubelet 1.34 (cmd/kubelet/app/options and the libraries that it
// uses) that Flags does not contain. A flag with a field sets that field, and podd validates the
// value. A flag without a field only causes a warning.
var kubeletFlags = []kubeletFlag{
	{"authentication-token-webhook", boolean, "authentication.webhook.enabled"},
	{"authentication-token-webhook-cache-ttl", duration, "authentication.webhook.cacheTTL"},
	{"authorization-webhook-cache-authorized-ttl", duration, "authorization.webhook.cacheAuthorizedTTL"},
	{"authorization-webhook-cache-unauthorized-ttl", duration, "authorization.webhook.cacheUnauthorizedTTL"},
	{"cgroups-per-qos", boolean, "cgroupsPerQOS"},
	{"contention-profiling", boolean, "enableContentionProfiling"},
	{"cpu-cfs-quota", boolean, "cpuCFSQuota"},
	{"cpu-cfs-quota-period", duration, "cpuCFSQuotaPeriod"},
	{"cpu-manager-policy", text, "cpuManagerPolicy"},
	{"cpu-manager-policy-options", pairs, "cpuManagerPolicyOptions"},
	{"cpu-manager-reconcile-period", duration, "cpuManagerReconcilePeriod"},
	{"enable-controller-attach-detach", boolean, "enableControllerAttachDetach"},
	{"enforce-node-allocatable", list, "enforceNodeAllocatable"},
	{"event-burst", number, "eventBurst"},
	{"event-qps", number, "eventRecordQPS"},
	{"eviction-hard", thresholds, "evictionHard"},
	{"eviction-max-pod-grace-period", number, "evictionMaxPodGracePeriod"},
	{"eviction-minimum-reclaim", pairs, "evictionMinimumReclaim"},
	{"eviction-pressure-transition-period", duration, "evictionPressureTransitionPeriod"},
	{"eviction-soft", thresholds, "evictionSoft"},
	{"eviction-soft-grace-period", pairs, "evictionSoftGracePeriod"},
	{"feature-gates", featureGates, "featureGates"},
	{"hairpin-mode", text, "hairpinMode"},
	{"image-gc-high-threshold", number, "imageGCHighThresholdPercent"},
	{"image-gc-low-threshold", number, "imageGCLowThresholdPercent"},
	{"kernel-memcg-notification", boolean, "kernelMemcgNotification"},
	{"kube-reserved", pairs, "kubeReserved"},
	{"kube-reserved-cgroup", text, "kubeReservedCgroup"},
	{"kubelet-cgroups", text, "kubeletCgroups"},
	{"local-storage-capacity-isolation", boolean, "localStorageCapacityIsolation"},
	{"log-flush-frequency", duration, "logging.flushFrequency"},
	{"make-iptables-util-chains", boolean, "makeIPTablesUtilChains"},
	{"max-open-files", number, "maxOpenFiles"},
	{"memory-manager-policy", text, "memoryManagerPolicy"},
	{"minimum-image-ttl-duration", duration, "imageMinimumGCAge"},
	{"oom-score-adj", number, "oomScoreAdj"},
	{"pod-cidr", text, "podCIDR"},
	{"pods-per-core", number, "podsPerCore"},
	{"protect-kernel-defaults", boolean, "protectKernelDefaults"},
	{"qos-reserved", pairs, "qosReserved"},
	{"reserved-cpus", text, "reservedSystemCPUs"},
	{"streaming-connection-idle-timeout", duration, "streamingConnectionIdleTimeout"},
	{"system-cgroups", text, "systemCgroups"},
	{"system-reserved", pairs, "systemReserved"},
	{"system-reserved-cgroup", text, "systemReservedCgroup"},
	{"topology-manager-policy", text, "topologyManagerPolicy"},
	{"topology-manager-policy-options", pairs, "topologyManagerPolicyOptions"},
	{"topology-manager-scope", text, "topologyManagerScope"},
	{"volume-plugin-dir", text, "volumePluginDir"},
	{"volume-stats-agg-period", duration, "volumeStatsAggPeriod"},

	// These flags have no field, or a field that a merge patch cannot set.
	{"exit-on-lock-contention", boolean, ""},
	{"experimental-allocatable-ignore-eviction", boolean, ""},
	{"experimental-mounter-path", text, ""},
	{"lock-file", text, ""},
	{"log-json-info-buffer-size", text, ""},
	{"log-json-split-stream", boolean, ""},
	{"log-text-info-buffer-size", text, ""},
	{"log-text-split-stream", boolean, ""},
	{"maximum-dead-containers", text, ""},
	{"maximum-dead-containers-per-container", text, ""},
	{"minimum-container-ttl-duration", text, ""},
	{"reserved-memory", text, ""},
	{"runtime-cgroups", text, ""},
	{"vmodule", text, ""},

	// These are flags of cAdvisor.
	{"application-metrics-count-limit", text, ""},
	{"boot-id-file", text, ""},
	{"container-hints", text, ""},
	{"containerd", text, ""},
	{"containerd-namespace", text, ""},
	{"enable-load-reader", boolean, ""},
	{"event-storage-age-limit", text, ""},
	{"event-storage-event-limit", text, ""},
	{"global-housekeeping-interval", text, ""},
	{"housekeeping-interval", text, ""},
	{"log-cadvisor-usage", boolean, ""},
	{"machine-id-file", text, ""},
	{"storage-driver-buffer-duration", text, ""},
	{"storage-driver-db", text, ""},
	{"storage-driver-host", text, ""},
	{"storage-driver-password", text, ""},
	{"storage-driver-secure", boolean, ""},
	{"storage-driver-table", text, ""},
	{"storage-driver-user", text, ""},
}

// findKubeletFlag returns the entry of kubeletFlags for name, which has no leading dashes. ok is
// false if there is no such entry.
func findKubeletFlag(name string) (flag kubeletFlag, ok bool) {
	for _, f := range kubeletFlags {
		if f.name == name {
			return f, true
		}
	}
	return kubeletFlag{}, false
}
