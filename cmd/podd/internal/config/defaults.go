package config

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logs "k8s.io/component-base/logs/api/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

// newDefaults returns the v1beta1 defaults of Kubernetes.
func newDefaults() *kubelet.KubeletConfiguration {
	k := &kubelet.KubeletConfiguration{
		SyncFrequency:         seconds(60),
		FileCheckFrequency:    seconds(20),
		HTTPCheckFrequency:    seconds(20),
		RuntimeRequestTimeout: seconds(120),
		MaxPods:               110,
		PodPidsLimit:          new(int64(-1)),
		PodLogsDir:            "/var/log/pods",
		CgroupDriver:          "cgroupfs",
		ResolverConfig:        new("/etc/resolv.conf"),
		RegistryPullQPS:       new(int32(5)),
		RegistryBurst:         10,
		HealthzPort:           new(int32(10248)),
		HealthzBindAddress:    "127.0.0.1",
		SeccompDefault:        new(false),
		FailSwapOn:            new(true),
		FailCgroupV1:          new(true),
	}
	k.CrashLoopBackOff.MaxContainerRestartPeriod = &metav1.Duration{Duration: 300 * time.Second}
	k.Logging.Format = "text"
	setServerDefaults(k)
	setNodeDefaults(k)
	setResourceDefaults(k)
	return k
}

// setServerDefaults sets the defaults of the kubelet API, authentication and authorization.
func setServerDefaults(k *kubelet.KubeletConfiguration) {
	k.EnableServer = new(true)
	k.Address = "0.0.0.0"
	k.Port = 10250
	k.Authentication.Anonymous.Enabled = new(false)
	k.Authentication.Webhook.Enabled = new(true)
	k.Authentication.Webhook.CacheTTL = seconds(120)
	k.Authorization.Mode = kubelet.KubeletAuthorizationModeWebhook
	k.Authorization.Webhook.CacheAuthorizedTTL = seconds(300)
	k.Authorization.Webhook.CacheUnauthorizedTTL = seconds(30)
	k.EnableDebuggingHandlers = new(true)
	k.EnableSystemLogHandler = new(true)
	k.EnableProfilingHandler = new(true)
	k.EnableDebugFlagsHandler = new(true)
	k.EnableSystemLogQuery = new(false)
	k.StreamingConnectionIdleTimeout = seconds(4 * 3600)
	k.VolumeStatsAggPeriod = seconds(60)
	k.Logging.FlushFrequency = logs.TimeOrMetaDuration{Duration: seconds(5), SerializeAsString: true}
}

// setNodeDefaults sets the defaults of the Node, requests to the API server and networking.
func setNodeDefaults(k *kubelet.KubeletConfiguration) {
	k.NodeStatusUpdateFrequency = seconds(10)
	k.NodeStatusReportFrequency = seconds(300)
	k.NodeLeaseDurationSeconds = 40
	k.NodeStatusMaxImages = new(int32(50))
	k.EventRecordQPS = new(int32(50))
	k.EventBurst = 100
	k.KubeAPIQPS = new(int32(50))
	k.KubeAPIBurst = 100
	k.ContentType = "application/vnd.kubernetes.protobuf"
	k.ConfigMapAndSecretChangeDetectionStrategy = kubelet.WatchChangeDetectionStrategy
	k.RegisterNode = new(true)
	k.EnableControllerAttachDetach = new(true)
	k.VolumePluginDir = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/"
	k.HairpinMode = kubelet.PromiscuousBridge
	k.MakeIPTablesUtilChains = new(true)
	k.IPTablesMasqueradeBit = new(int32(14))
	k.IPTablesDropBit = new(int32(15))
}

// setResourceDefaults sets the defaults of cgroups, resource managers, eviction, images,
// garbage collection and container logs.
func setResourceDefaults(k *kubelet.KubeletConfiguration) {
	k.OOMScoreAdj = new(int32(-999))
	k.MaxOpenFiles = 1000000
	k.CgroupsPerQOS = new(true)
	k.EnforceNodeAllocatable = []string{"pods"}
	k.CPUManagerPolicy = "none"
	k.CPUManagerReconcilePeriod = seconds(10)
	k.MemoryManagerPolicy = kubelet.NoneMemoryManagerPolicy
	k.TopologyManagerPolicy = kubelet.NoneTopologyManagerPolicy
	k.TopologyManagerScope = kubelet.ContainerTopologyManagerScope
	k.CPUCFSQuota = new(true)
	k.CPUCFSQuotaPeriod = &metav1.Duration{Duration: 100 * time.Millisecond}
	k.MemoryReservationPolicy = kubelet.NoneMemoryReservationPolicy
	k.LocalStorageCapacityIsolation = new(true)
	k.EvictionPressureTransitionPeriod = seconds(300)
	k.MergeDefaultEvictionSettings = new(false)
	k.ImagePullCredentialsVerificationPolicy = kubelet.NeverVerifyPreloadedImages
	k.ImageMinimumGCAge = seconds(120)
	k.ImageGCHighThresholdPercent = new(int32(85))
	k.ImageGCLowThresholdPercent = new(int32(80))
	k.ContainerLogMaxSize = "10Mi"
	k.ContainerLogMaxFiles = new(int32(5))
	k.ContainerLogMaxWorkers = new(int32(1))
	k.ContainerLogMonitorInterval = &metav1.Duration{Duration: 10 * time.Second}
}

// seconds returns a duration of n seconds.
func seconds(n int) metav1.Duration {
	return metav1.Duration{Duration: time.Duration(n) * time.Second}
}
