package config

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"podd/manifest"
)

func (r *resolving) runtime(c *Config) {
	f, k, d := r.flags, r.k, defaults()
	c.RuntimeEndpoint, _ = endpoint(k.ContainerRuntimeEndpoint)
	c.ImageEndpoint, _ = endpoint(k.ImageServiceEndpoint)
	if c.RuntimeEndpoint == "" {
		c.RuntimeEndpoint = r.checkoutRuntime()
	}
	c.RuntimeRequestTimeout = or(k.RuntimeRequestTimeout, d.RuntimeRequestTimeout)
	c.CgroupDriver = orZero(k.CgroupDriver, d.CgroupDriver)
	c.CgroupRoot = k.CgroupRoot
	c.SandboxImage = f.PodInfraContainerImage
	c.SeccompDefault = orNil(k.SeccompDefault, d.SeccompDefault)
	c.RuntimeClasses = r.pairs("--runtime-class", f.RuntimeClass, func(class, handler string) []string {
		if handler == "" {
			return []string{"the handler is missing"}
		}
		return validation.IsDNS1123Subdomain(class)
	})
	c.UnsafeSysctls = k.AllowedUnsafeSysctls
	c.MaxRestartPeriod = d.CrashLoopBackOff.MaxContainerRestartPeriod.Duration
	if p := k.CrashLoopBackOff.MaxContainerRestartPeriod; p != nil && p.Duration != 0 {
		c.MaxRestartPeriod = p.Duration
	}
	c.LogMaxSize, _ = logSize(orZero(k.ContainerLogMaxSize, d.ContainerLogMaxSize))
	c.LogMaxFiles = int(orNil(k.ContainerLogMaxFiles, d.ContainerLogMaxFiles))
	c.LogEvery = or(orNil(k.ContainerLogMonitorInterval, d.ContainerLogMonitorInterval), *d.ContainerLogMonitorInterval)
	c.ParallelStarts = f.ParallelStarts
	if f.ParallelStarts < 0 {
		r.add(manifest.Error, "--parallel-starts", "%d is negative; 0 lets podd choose", f.ParallelStarts)
	}
}

// checkoutRuntime returns the socket of the private runtime of the checkout that contains
// podd, or "". podd then stores its state there too.
func (r *resolving) checkoutRuntime() string {
	if r.machine.Checkout == "" {
		return ""
	}
	socket := filepath.Join(r.machine.Checkout, "containerd.sock")
	if info, err := os.Lstat(socket); err != nil || info.Mode().Type() != os.ModeSocket {
		return ""
	}
	return "unix://" + socket
}

func (r *resolving) images(c *Config) {
	k, d := r.k, defaults()
	switch {
	case k.MaxParallelImagePulls != nil:
		c.ParallelPulls = int(*k.MaxParallelImagePulls)
	case k.SerializeImagePulls == nil:
		c.ParallelPulls = DefaultParallelPulls
	case *k.SerializeImagePulls:
		c.ParallelPulls = 1
	}
	c.PullQPS = int(orNil(k.RegistryPullQPS, d.RegistryPullQPS))
	c.PullBurst = int(orZero(k.RegistryBurst, d.RegistryBurst))
	c.PullOffline = orZero(r.flags.PullOffline, PullStrict)
}

func (r *resolving) faces(c *Config) {
	k, d := r.k, defaults()
	c.ClusterDNS = k.ClusterDNS
	c.ClusterDomain = strings.TrimSuffix(k.ClusterDomain, ".")
	c.ResolvConf = orNil(k.ResolverConfig, d.ResolverConfig)
	c.HealthzListen = listen(orZero(k.HealthzBindAddress, d.HealthzBindAddress), orNil(k.HealthzPort, d.HealthzPort))
	if c.EventLog = r.flags.EventLog; c.EventLog != "" {
		c.EventLog = filepath.Clean(c.EventLog)
	}
	c.ReadOnlyListen = listen(orZero(k.Address, "127.0.0.1"), k.ReadOnlyPort)
	c.CadvisorListen = listen("127.0.0.1", r.flags.CadvisorPort)
	if p := r.flags.CadvisorPort; p < 0 || p > 65535 {
		r.add(manifest.Error, "--cadvisor-port", "%d is out of range; want 0 to 65535", p)
	}
	c.API = r.kubelet()
	c.LogFormat = orZero(k.Logging.Format, d.Logging.Format)
	c.Verbosity = int(min(k.Logging.Verbosity, 10))
}

// listen returns "host:port", or "" for port 0.
func listen(host string, port int32) string {
	if port == 0 {
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}
