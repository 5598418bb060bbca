package main

// These texts are the effects of several fields in fieldEffects.
const (
	obsoleteIPTables = "Obsolete, also in the kubelet: kube-proxy creates the iptables rules."
	splitLog         = "Write the log to standard output, and only warnings and errors to standard error. Needs the feature gate LoggingAlphaOptions. With --runonce, podd writes all of its log to standard error."
	noLogBuffer      = "Any value except 0 is rejected: podd does not buffer its log."
	noNUMA           = "podd does not align resources to NUMA nodes."
	noCPUPinning     = "podd does not assign CPUs to containers."
	noMemoryPinning  = "podd does not assign memory of NUMA nodes to containers."
)

// reloadEffects contains the texts in the column "reload" of the page "configuration", by field path. A
// field without a text here takes effect without a restart of podd.
var reloadEffects = map[string]string{
	"kind": "-", "apiVersion": "-", "runOnce": "no", "featureGates": "yes",

	"providerID": "new Node", "registerWithTaints": "new Node",
	"kubeletCgroups": "not removed", "systemCgroups": "not removed", "protectKernelDefaults": "not removed",
	"enforceNodeAllocatable": "not removed", "systemReservedCgroup": "not removed", "kubeReservedCgroup": "not removed",
	"makeIPTablesUtilChains": "not removed",

	"podLogsDir": "new pods", "clusterDomain": "new pods", "clusterDNS": "new pods", "resolvConf": "new pods",
	"cgroupRoot": "new pods", "cgroupsPerQOS": "new pods", "cgroupDriver": "new pods", "podPidsLimit": "new pods",
	"cpuCFSQuota": "new pods", "cpuCFSQuotaPeriod": "new pods", "memorySwap.swapBehavior": "new pods",
	"memoryThrottlingFactor": "new pods", "memoryReservationPolicy": "new pods", "singleProcessOOMKill": "new pods",
	"seccompDefault": "new pods", "defaultPodSysctls": "new pods", "userNamespaces": "new pods",
}

// fieldEffects contains the texts in the column "effect" of the page "configuration", by field path.
// A field without a text here gets the help of its flag. If a field has no effect, its text
// describes the behavior of podd instead.
var fieldEffects = map[string]string{
	"kind":               "Must be KubeletConfiguration.",
	"apiVersion":         "Must be kubelet.config.k8s.io/v1beta1.",
	"staticPodPath":      "Directory or file with manifests. --pod-manifest-path overrides it.",
	"staticPodURL":       "URL with manifests. --manifest-url overrides it.",
	"staticPodURLHeader": "HTTP headers to use when accessing manifest URLs. --manifest-url-header overrides these headers.",
	"port":               "The port for the kubelet API and the Kubernetes API to serve on. 0 means the default; to disable both, set enableServer to false.",

	"tlsPrivateKeyFile":    "File containing x509 private key matching tlsCertFile.",
	"tlsCurvePreferences":  "Allowed key exchange mechanisms of the server, as CurveID values of Go's package crypto/tls. If omitted, Go's defaults are used.",
	"tlsCipherSuites":      "List of cipher suites for the server. If omitted, the default Go cipher suites will be used.",
	"registryBurst":        "Maximum size of bursty pulls, temporarily allows pulls to burst to this number, while still not exceeding registryPullQPS. Only used if registryPullQPS > 0.",
	"clusterDNS":           "List of DNS server IP addresses, used for containers of pods with dnsPolicy ClusterFirst.",
	"allowedUnsafeSysctls": "List of unsafe sysctls or unsafe sysctl patterns (ending in *) that pods may set. Use these at your own risk.",
	"imageServiceEndpoint": "The endpoint of the container image service. If not specified, it is the same as containerRuntimeEndpoint.",

	"authentication.webhook.enabled":             "With --kubeconfig: authenticate bearer tokens with the TokenReview API of the cluster (default true in a cluster).",
	"authentication.webhook.cacheTTL":            "Duration for which results of TokenReviews are cached.",
	"authorization.webhook.cacheAuthorizedTTL":   "Duration for which authorized responses of SubjectAccessReviews are cached.",
	"authorization.webhook.cacheUnauthorizedTTL": "Duration for which unauthorized responses of SubjectAccessReviews are cached.",

	"imagePullCredentialsVerificationPolicy": "Policy for images on the node that a pod may use only with valid credentials: NeverVerify, NeverVerifyPreloadedImages, NeverVerifyAllowlistedImages or AlwaysVerify. See [manifests](manifests.md).",
	"preloadedImagesVerificationAllowlist":   "Images that every pod can use if the policy is NeverVerifyAllowlistedImages: repositories without a tag, or a registry with an optional path, followed by /*.",
	"eventRecordQPS":                         "Maximum number of events per second that are sent to the API server. 0 means no limit.",
	"eventBurst":                             "Maximum size of a burst of events, if eventRecordQPS is not 0.",
	"enableContentionProfiling":              "Enable the block and mutex profiles of /debug/pprof, which show where podd waits, if enableDebuggingHandlers and enableProfilingHandler are true. This slows podd down.",
	"oomScoreAdj":                            "The oom_score_adj of podd, -1000 to 1000. Programs that podd starts, such as mount helpers, do not inherit a negative value. Without the capability CAP_SYS_RESOURCE, podd cannot lower its value and logs a warning. With --runonce, podd keeps its value.",
	"streamingConnectionIdleTimeout":         "Obsolete, also in the kubelet: the container runtime closes idle streams.",
	"nodeStatusReportFrequency":              "Interval between posts of a node status that has not changed.",
	"nodeLeaseDurationSeconds":               "Duration of the node's Lease.",
	"imageMinimumGCAge":                      "The minimum age of an unused image before it is removed to free space.",
	"imageMaximumGCAge":                      "The time after which an unused image is removed, whatever the disk usage is. 0 disables this.",
	"imageGCHighThresholdPercent":            "The usage of the image file system in percent at which unused images are removed. 100 disables this.",
	"imageGCLowThresholdPercent":             "The usage of the image file system in percent at which the removal of unused images ends.",
	"volumeStatsAggPeriod":                   "podd measures volumes when statistics are requested. A negative value, which disables these statistics in the kubelet, is rejected.",
	"kubeletCgroups":                         "The cgroup to which podd moves itself, below the mount point of each hierarchy. By default, podd stays in the cgroup in which it was started. With --runonce, it has no effect.",
	"systemCgroups":                          "The cgroup to which podd moves all processes in the root cgroup, except process 1 and the threads of the kernel, every minute. Needs cgroupRoot. With --runonce, it has no effect.",
	"cgroupsPerQOS":                          "With false, podd creates no cgroups of pods and QoS classes, and the runtime places the containers in its default cgroup (containerd: only with the cgroup driver cgroupfs). Then enforceNodeAllocatable must be [] or [none], podPidsLimit and TieredReservation are rejected, pods with spec.resources are not admitted, cgroupRoot has no effect, and pod overhead is not limited.",
	"singleProcessOOMKill":                   "On cgroup v2: if true, an out-of-memory kill terminates one process; if false, it terminates all processes of the container (memory.oom.group). On cgroup v1 it always terminates one process, and false is rejected.",

	"cpuManagerPolicy":             "All policies except none are rejected: " + noCPUPinning,
	"cpuManagerPolicyOptions":      "Any value is rejected: " + noCPUPinning,
	"cpuManagerReconcilePeriod":    "No effect with the policy none, as in the kubelet.",
	"memoryManagerPolicy":          "All policies except None are rejected: " + noMemoryPinning,
	"reservedMemory":               "No effect with the policy None, as in the kubelet.",
	"topologyManagerPolicy":        "All policies except none are rejected: " + noNUMA,
	"topologyManagerScope":         "No effect with the policy none, as in the kubelet.",
	"topologyManagerPolicyOptions": "No effect with the policy none, as in the kubelet.",
	"reservedSystemCPUs":           "Any value is rejected: podd does not keep CPUs free of pods.",
	"qosReserved":                  "Any value is rejected: podd reserves no memory for QoS classes. Use memoryReservationPolicy.",
	"memoryThrottlingFactor":       "On cgroup v2: throttle a container (memory.high) that uses more than its memory request plus this part of the difference between its limit and its request. For a container without a limit, the limit is the memory of the node that is not reserved. By default, containers are not throttled.",
	"memoryReservationPolicy":      "On cgroup v2: with TieredReservation, the memory requests of Guaranteed pods are never reclaimed (memory.min), and those of Burstable pods are reclaimed last (memory.low). With None or --runonce, no memory is protected.",

	"defaultPodSysctls":     "Sysctls that are set in each pod, unless the pod sets them or uses the host's namespace for them. Needs the feature gate DefaultPodSysctls.",
	"hairpinMode":           "Obsolete, also in the kubelet: the CNI plugins configure hairpin mode.",
	"podCIDR":               "The address range of pods, or an IPv4 and an IPv6 range separated by a comma. podd sends it to the container runtime, which can write its CNI configuration from it. In a cluster, the ranges of the Node override it.",
	"cpuCFSQuota":           "Enforce the CPU limits of containers and pods. If false, a limit has no effect except as the default of the request.",
	"cpuCFSQuotaPeriod":     "Period in which a container may use its quota of CPU time; 1ms to 1s.",
	"maxOpenFiles":          "The maximum number of files that podd itself can open. podd needs the capability CAP_SYS_RESOURCE to raise its hard limit, and otherwise logs a warning; set LimitNOFILE in its unit file. With --runonce, podd keeps its limit.",
	"podsPerCore":           "Number of pods per CPU that can run on this node, if it is lower than maxPods. 0 means that only maxPods limits the number.",
	"protectKernelDefaults": "The kubelet requires vm.overcommit_memory=1, vm.panic_on_oom=0, kernel.panic=10, kernel.panic_on_oops=1, kernel.keys.root_maxkeys=1000000 and kernel.keys.root_maxbytes=25000000. If true, podd does not start if one of them differs. If set to false, podd changes them when it starts. By default, podd neither checks nor changes them. With --runonce, it has no effect.",

	"serializeImagePulls":              "Pull images one at a time. If neither this nor maxParallelImagePulls is set, podd pulls 5 images in parallel.",
	"evictionHard":                     "Thresholds below which podd evicts pods at once, and a node condition reports pressure. The thresholds of memory and nodefs also reduce the allocatable resources.",
	"evictionSoft":                     "Thresholds below which podd evicts pods after a grace period.",
	"evictionSoftGracePeriod":          "Grace periods of the thresholds in evictionSoft, by signal.",
	"evictionPressureTransitionPeriod": "Duration for which a condition reports pressure after the pressure has ended.",
	"evictionMaxPodGracePeriod":        "Maximum grace period in seconds of a pod that is evicted because of evictionSoft.",
	"evictionMinimumReclaim":           "Amounts above the thresholds that must be available again before podd stops evicting pods, by signal.",
	"mergeDefaultEvictionSettings":     "Use the default thresholds for signals that evictionHard does not contain.",
	"kernelMemcgNotification":          "Check the memory of the node at once when the kernel reports that it may be short. If false, podd only checks it periodically, at least every 10 s.",
	"enableControllerAttachDetach":     "Let the attach-detach controller attach CSI, iSCSI and Fibre Channel volumes.",
	"makeIPTablesUtilChains":           "Create the iptables chains KUBE-IPTABLES-HINT and KUBE-FIREWALL, which other programs use, if iptables is installed. See [cluster](cluster.md).",
	"iptablesMasqueradeBit":            obsoleteIPTables,
	"iptablesDropBit":                  obsoleteIPTables,
	"featureGates":                     "See below. A change of SELinuxMount applies to volumes that are mounted later.",
	"failSwapOn":                       "If set to true, podd does not start while swap is enabled. By default, podd starts.",
	"failCgroupV1":                     "If set to true, podd does not start on a host with cgroup v1. By default, podd starts with a warning.",
	"memorySwap.swapBehavior":          "With LimitedSwap, Burstable pods can use swap in proportion to their memory requests. LimitedSwap is rejected if the kernel cannot limit swap. With NoSwap, pods use no swap.",
	"userNamespaces":                   "idsPerPod is the number of user and group IDs of each pod with hostUsers: false, a multiple of 65536 (default 65536). If the user kubelet exists and the program getsubids is installed, all IDs are in the range of subordinate IDs of this user, which must suffice for maxPods pods. A change applies to new sandboxes; existing pods keep their IDs.",

	"containerLogMaxWorkers":                    "The maximum number of container logs that are rotated in parallel.",
	"containerLogMonitorInterval":               "Maximum interval between checks of the size of logs; at least 3s.",
	"configMapAndSecretChangeDetectionStrategy": "All strategies except Watch are rejected: podd watches the ConfigMaps and Secrets of its pods.",
	"systemReserved":                            "Resources that pods cannot request: cpu, memory, ephemeral-storage and pid.",
	"kubeReserved":                              "Like systemReserved. The sum of kubeReserved and systemReserved is reserved.",
	"showHiddenMetricsForVersion":               "podd always shows all metrics, including deprecated ones. Any value except the previous version of Kubernetes is rejected, as in the kubelet.",
	"volumePluginDir":                           "podd does not run FlexVolume drivers, which are deprecated. Use CSI drivers.",
	"localStorageCapacityIsolation":             "The value false is rejected: podd always enforces the limits of ephemeral-storage.",
	"systemReservedCgroup":                      "The cgroup that system-reserved in enforceNodeAllocatable limits. podd does not create it. With the driver systemd, this is the name of a slice.",
	"kubeReservedCgroup":                        "Like systemReservedCgroup, for kube-reserved.",
	"enforceNodeAllocatable":                    "With pods, all pods together are limited to the resources that are not reserved. With system-reserved or kube-reserved, the cgroup in systemReservedCgroup or kubeReservedCgroup is limited to the CPU weight, memory and number of processes that are reserved for it, and cannot use huge pages. With the suffix -compressible, its memory and its number of processes are not limited. If such a cgroup does not exist or cannot be limited, podd exits with an error. With --runonce, podd limits each pod, but not all pods together. With none, all pods together are limited only to the capacity of the node.",

	"enableSystemLogHandler":              "Enable /logs/ of the kubelet API, which serves /var/log.",
	"enableSystemLogQuery":                "Enable queries of /logs/, such as /logs/?query=kubelet, for the logs of services. podd reads them from the journal with journalctl, or from a file in /var/log.",
	"enableProfilingHandler":              "Enable /debug/pprof of the kubelet API.",
	"enableDebugFlagsHandler":             "Enable /debug/flags/v of the kubelet API, which changes the log level.",
	"logging.flushFrequency":              "podd does not buffer its log: it writes each message at once.",
	"logging.vmodule":                     "Log levels of source files of podd, for example {filePattern: rotator, verbosity: 4}. A pattern matches the name of a file without .go, as in the kubelet. With slashes, it matches the end of the path, for example plan/*. podd warns about a pattern that matches no file. Cannot be used together with the format json.",
	"logging.options.text.splitStream":    splitLog,
	"logging.options.json.splitStream":    splitLog,
	"logging.options.text.infoBufferSize": noLogBuffer,
	"logging.options.json.infoBufferSize": noLogBuffer,
	"tracing":                             "Send traces by OTLP over gRPC, without TLS, to the collector at endpoint (by default, the one in the environment variable OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT, otherwise localhost:4317). samplingRatePerMillion is the number of traces that are recorded, per million. By default, podd records only traces that a client records.",

	"shutdownGracePeriod":                        "Duration by which a node shutdown is delayed so that pods can terminate. 0s means no delay.",
	"shutdownGracePeriodCriticalPods":            "The part of shutdownGracePeriod that is for critical pods, which terminate last.",
	"shutdownGracePeriodByPodPriority":           "Grace periods by pod priority, instead of shutdownGracePeriod.",
	"crashLoopBackOff.maxContainerRestartPeriod": "Maximum back-off of container restarts, 1s to 300s.",
	"registerWithTaints":                         "Taints with which the Node is created. --register-with-taints overrides this field.",
}

// rejectedValues contains the fields for which podd rejects only some values, with one of the
// rejected values.
var rejectedValues = map[string]string{
	"cpuManagerPolicy":                          "static",
	"memoryManagerPolicy":                       "Static",
	"topologyManagerPolicy":                     "restricted",
	"reservedSystemCPUs":                        "0-1",
	"localStorageCapacityIsolation":             "false",
	"logging.options.text.infoBufferSize":       "1Ki",
	"logging.options.json.infoBufferSize":       "1Ki",
	"configMapAndSecretChangeDetectionStrategy": "Cache",
}

// fieldDefaults contains the defaults in the page "configuration" that differ from the values in the
// effective configuration (see loadEffective), by field path. "" leaves the column empty.
var fieldDefaults = map[string]string{
	"failSwapOn":              "false",
	"failCgroupV1":            "false",
	"memorySwap.swapBehavior": "NoSwap",
	"readOnlyPort":            "0",
	"rotateCertificates":      "false",
	"serverTLSBootstrap":      "false",
	"tlsMinVersion":           "VersionTLS12",
	"serializeImagePulls":     "false",
	"maxParallelImagePulls":   "5",
	"runOnce":                 "false",
	"podLogsDir":              "/var/log/pods",
	"kind":                    "",
	"apiVersion":              "",
	"protectKernelDefaults":   "",
	"maxOpenFiles":            "1000000",
}
