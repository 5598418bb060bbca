package config

import (
	"cmp"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"podd/manifest"
	"podd/reconcile/gc"
)

// resolveRuntime sets how pods run on the CRI runtime, and the rotation of container logs.
func (r *resolver) resolveRuntime(c *Config) {
	f, k, d := r.flags, r.kubelet, newDefaults()
	c.RuntimeEndpoint, _ = parseEndpoint(k.ContainerRuntimeEndpoint)
	c.ImageEndpoint, _ = parseEndpoint(k.ImageServiceEndpoint)
	if c.RuntimeEndpoint == "" {
		c.RuntimeEndpoint = r.privateRuntimeEndpoint()
	}
	c.PodCIDR = k.PodCIDR
	c.RuntimeRequestTimeout = r.duration("runtimeRequestTimeout", k.RuntimeRequestTimeout, d.RuntimeRequestTimeout)
	c.CgroupDriver, c.ConfiguredCgroupDriver = cmp.Or(k.CgroupDriver, d.CgroupDriver), k.CgroupDriver
	c.CgroupRoot, c.DisablePodCgroups = k.CgroupRoot, disablesPodCgroups(k)
	c.IDsPerPod = idsPerPod(k)
	c.SandboxImage = f.PodInfraContainerImage
	c.SeccompDefault = derefOr(k.SeccompDefault, d.SeccompDefault)
	c.SELinuxMountOnlySinglePod = !isGateEnabled(k, gateSELinuxMount)
	c.RuntimeClasses = r.parseFlagPairs("--runtime-class", f.RuntimeClass, func(class, handler string) []string {
		if handler == "" {
			return []string{"the runtime class has no handler; the value must have the form CLASS=HANDLER"}
		}
		return validation.IsDNS1123Subdomain(class)
	})
	c.UnsafeSysctls, c.DefaultSysctls = k.AllowedUnsafeSysctls, defaultSysctls(k)
	c.MaxRestartPeriod = derefOr(k.CrashLoopBackOff.MaxContainerRestartPeriod, d.CrashLoopBackOff.MaxContainerRestartPeriod).Duration
	c.LogMaxSize, _ = parseLogSize(cmp.Or(k.ContainerLogMaxSize, d.ContainerLogMaxSize))
	c.LogMaxFiles = int(derefOr(k.ContainerLogMaxFiles, d.ContainerLogMaxFiles))
	c.LogWorkers = int(derefOr(k.ContainerLogMaxWorkers, new(int32(defaultLogWorkers))))
	c.LogCheckInterval = derefOr(k.ContainerLogMonitorInterval, d.ContainerLogMonitorInterval).Duration
	r.resolveDeadContainers(c)
	c.MaxParallelStarts = f.ParallelStarts
	if f.ParallelStarts < 0 {
		r.addProblem(manifest.Error, "--parallel-starts", "%d is negative; with 0, podd chooses the number", f.ParallelStarts)
	}
}

// resolveDeadContainers sets how many exited containers remain in the runtime. As in the kubelet, a
// negative number means that there is no maximum.
func (r *resolver) resolveDeadContainers(c *Config) {
	f := r.flags
	c.MaxDeadPerContainer, c.MaxDeadContainers = 1, -1
	if n := f.MaximumDeadContainers; n != nil {
		c.MaxDeadContainers = int(max(*n, -1))
	}
	if n := f.MaximumDeadContainersPerContainer; n != nil {
		switch {
		case *n > 0:
			c.MaxDeadPerContainer = int(*n)
		case *n < 0:
			c.MaxDeadPerContainer = -1
		default:
			r.addProblem(manifest.Warning, "--maximum-dead-containers-per-container",
				"0 has the same effect as 1, because podd retains the newest exited container for its log and its last state")
		}
	}
	if d := f.MinimumContainerTTLDuration; d != nil {
		c.MinDeadContainerAge = *d
		if *d < 0 {
			r.addProblem(manifest.Error, "--minimum-container-ttl-duration", "%s is negative", *d)
		}
	}
}

// privateRuntimeEndpoint returns the endpoint of the private runtime in HostFacts.PrivateRuntimeDir as
// "unix:///path", or "" if there is none. If there is a private runtime, the default
// directories of podd are in the checkout, too.
func (r *resolver) privateRuntimeEndpoint() string {
	if r.host.PrivateRuntimeDir == "" {
		return ""
	}
	socket := filepath.Join(r.host.PrivateRuntimeDir, "containerd.sock")
	if info, err := os.Lstat(socket); err != nil || info.Mode().Type() != os.ModeSocket {
		return ""
	}
	return "unix://" + socket
}

// resolveImages sets the limits of image pulls, and the thresholds of image garbage collection.
func (r *resolver) resolveImages(c *Config) {
	k, d := r.kubelet, newDefaults()
	switch {
	case k.MaxParallelImagePulls != nil:
		c.MaxParallelPulls = int(*k.MaxParallelImagePulls)
	case k.SerializeImagePulls == nil:
		c.MaxParallelPulls = defaultMaxParallelPulls
	case *k.SerializeImagePulls:
		c.MaxParallelPulls = 1
	}
	c.PullQPS = int(derefOr(k.RegistryPullQPS, d.RegistryPullQPS))
	c.PullBurst = int(valueOr(r.merged, "registryBurst", k.RegistryBurst, d.RegistryBurst))
	c.ImageGC = gc.Policy{
		HighPercent: int(derefOr(k.ImageGCHighThresholdPercent, d.ImageGCHighThresholdPercent)),
		LowPercent:  int(derefOr(k.ImageGCLowThresholdPercent, d.ImageGCLowThresholdPercent)),
		MinAge:      r.duration("imageMinimumGCAge", k.ImageMinimumGCAge, d.ImageMinimumGCAge),
		MaxAge:      k.ImageMaximumGCAge.Duration,
	}
	c.OfflinePullPolicy = cmp.Or(r.flags.PullOffline, PullStrict)
	c.CredentialVerification = credentialVerification(k)
}

// resolveEndpoints sets the fields of c for DNS, the endpoints and logging.
func (r *resolver) resolveEndpoints(c *Config) {
	k, d := r.kubelet, newDefaults()
	c.ClusterDNS = k.ClusterDNS
	c.ClusterDomain = strings.TrimSuffix(k.ClusterDomain, ".")
	c.ResolvConf = derefOr(k.ResolverConfig, d.ResolverConfig)
	c.HealthzAddress = listenAddress(cmp.Or(k.HealthzBindAddress, d.HealthzBindAddress), derefOr(k.HealthzPort, d.HealthzPort))
	if c.EventLog = r.flags.EventLog; c.EventLog != "" {
		c.EventLog = filepath.Clean(c.EventLog)
	}
	c.ReadOnlyAddress = listenAddress(cmp.Or(k.Address, "127.0.0.1"), k.ReadOnlyPort)
	c.CadvisorAddress = listenAddress("127.0.0.1", r.flags.CadvisorPort)
	if p := r.flags.CadvisorPort; p < 0 || p > 65535 {
		r.addProblem(manifest.Error, "--cadvisor-port", "%d is out of range; must be between 0 and 65535", p)
	}
	c.DisablePodsAPI = !isGateEnabled(k, gatePodsAPI)
	c.API = r.resolveKubeletAPI()
	c.ProfileContention = k.EnableContentionProfiling && c.API.Address != "" && c.API.EnableDebugging && c.API.EnableProfiling
	c.LogFormat = cmp.Or(k.Logging.Format, d.Logging.Format)
	c.Verbosity = int(min(k.Logging.Verbosity, 10))
	c.SplitStream = splitsLog(&k.Logging)
	for _, item := range k.Logging.VModule {
		c.FileVerbosity = append(c.FileVerbosity, FileVerbosity{item.FilePattern, int(min(item.Verbosity, 10))})
	}
}

// listenAddress returns "host:port", or "" if port is 0.
func listenAddress(host string, port int32) string {
	if port == 0 {
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}
