package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/manifest"
)

// A checker validates the merged configuration and collects the problems.
type checker struct {
	kubelet  *kubelet.KubeletConfiguration // the merged configuration without defaults
	merged   *mergedTree
	host     HostFacts
	problems []manifest.Problem
}

// errorf adds an error that concerns a field.
func (c *checker) errorf(field, format string, args ...any) {
	o := c.merged.origin(field)
	c.problems = append(c.problems, o.problem(manifest.Error, field, fmt.Sprintf(format, args...)))
}

// warnf adds a warning about a field.
func (c *checker) warnf(field, format string, args ...any) {
	o := c.merged.origin(field)
	c.problems = append(c.problems, o.problem(manifest.Warning, field, fmt.Sprintf(format, args...)))
}

// check runs all checks and returns the problems.
func (c *checker) check() []manifest.Problem {
	c.checkSources()
	c.checkRanges()
	c.checkTLS()
	c.checkDurations()
	c.checkZeroFlags()
	c.checkEnums()
	c.checkSysctls()
	c.checkDefaultSysctls()
	c.checkTaints()
	c.checkTracing()
	c.checkAddresses()
	c.checkPaths()
	c.checkLogging()
	c.checkGates()
	c.checkReservedMemory()
	c.checkCombined()
	c.checkUnsupported()
	return c.problems
}

// checkSources checks the manifest URL and its headers.
func (c *checker) checkSources() {
	if c.kubelet.StaticPodURL != "" {
		if reason := checkURL(c.kubelet.StaticPodURL); reason != "" {
			c.errorf("staticPodURL", "%s", reason)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.kubelet.StaticPodURLHeader)) {
		if reason := checkHeader(name, c.kubelet.StaticPodURLHeader[name]); reason != "" {
			c.errorf(joinKey("staticPodURLHeader", name), "%s", reason)
		}
	}
}

// checkURL returns the reason for which a manifest URL is invalid, or "" if the URL is valid.
// The reason contains no part of the URL except the scheme, because the URL may contain a password.
func checkURL(text string) (reason string) {
	u, err := url.Parse(strings.NewReplacer("{node}", "node", "{machineID}", "id").Replace(text))
	switch {
	case err != nil:
		return "not a valid URL; must begin with http:// or https://"
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Sprintf("unsupported scheme %q; must be http or https", u.Scheme)
	case u.Host == "":
		return "the host is missing"
	}
	return ""
}

// checkRanges checks that numbers are in their ranges.
func (c *checker) checkRanges() {
	k := c.kubelet
	const unlimited = math.MaxInt64
	for _, r := range []struct {
		field           string
		value, min, max int64
	}{
		{"healthzPort", derefInt32(k.HealthzPort), 0, 65535},
		{"readOnlyPort", int64(k.ReadOnlyPort), 0, 65535},
		{"port", int64(k.Port), 0, 65535},
		{"maxPods", int64(k.MaxPods), 0, unlimited},
		{"podsPerCore", int64(k.PodsPerCore), 0, unlimited},
		{"registryPullQPS", derefInt32(k.RegistryPullQPS), 0, unlimited},
		{"registryBurst", int64(k.RegistryBurst), 0, unlimited},
		{"eventRecordQPS", derefInt32(k.EventRecordQPS), 0, unlimited},
		{"eventBurst", int64(k.EventBurst), 0, unlimited},
		{"kubeAPIQPS", derefInt32(k.KubeAPIQPS), 0, unlimited},
		{"kubeAPIBurst", int64(k.KubeAPIBurst), 0, unlimited},
		{"nodeLeaseDurationSeconds", int64(k.NodeLeaseDurationSeconds), 0, unlimited},
		{"nodeStatusMaxImages", derefInt32(k.NodeStatusMaxImages), -1, unlimited},
		{"oomScoreAdj", derefInt32(k.OOMScoreAdj), -1000, 1000},
		{"maxOpenFiles", k.MaxOpenFiles, 0, unlimited},
		{"iptablesMasqueradeBit", derefInt32(k.IPTablesMasqueradeBit), 0, 31},
		{"iptablesDropBit", derefInt32(k.IPTablesDropBit), 0, 31},
		{"imageGCHighThresholdPercent", derefInt32(k.ImageGCHighThresholdPercent), 0, 100},
		{"imageGCLowThresholdPercent", derefInt32(k.ImageGCLowThresholdPercent), 0, 100},
	} {
		switch {
		case r.min <= r.value && r.value <= r.max:
		case r.max == unlimited:
			c.errorf(r.field, "%d is too small; must be at least %d", r.value, r.min)
		default:
			c.errorf(r.field, "%d is out of range; must be between %d and %d", r.value, r.min, r.max)
		}
	}
	if p := k.ContainerLogMaxFiles; p != nil && *p < 2 {
		c.errorf("containerLogMaxFiles", "%d is too small; must be at least 2", *p)
	}
	if p := k.ContainerLogMaxWorkers; p != nil && *p < 1 {
		c.errorf("containerLogMaxWorkers", "%d is too small; must be at least 1", *p)
	}
	if p := k.MaxParallelImagePulls; p != nil && *p < 1 {
		c.errorf("maxParallelImagePulls", "%d is too small; must be at least 1", *p)
	}
}

// derefInt32 returns the value of p, or 0 if p is nil.
func derefInt32(p *int32) int64 {
	if p == nil {
		return 0
	}
	return int64(*p)
}

// parseLogSize parses a value of containerLogMaxSize, such as 10Mi, and returns the number of
// bytes. 0 is an error. A negative number disables rotation.
func parseLogSize(text string) (int64, error) {
	q, err := resource.ParseQuantity(text)
	if err == nil && q.Sign() == 0 {
		err = errors.New("must not be 0")
	}
	return q.Value(), err
}

// checkDurations checks durations, and the maximum size of container logs.
func (c *checker) checkDurations() {
	k := c.kubelet
	for _, d := range []struct {
		field string
		value metav1.Duration
	}{
		{"fileCheckFrequency", k.FileCheckFrequency},
		{"httpCheckFrequency", k.HTTPCheckFrequency},
		{"syncFrequency", k.SyncFrequency},
		{"runtimeRequestTimeout", k.RuntimeRequestTimeout},
		{"imageMinimumGCAge", k.ImageMinimumGCAge},
		{"imageMaximumGCAge", k.ImageMaximumGCAge},
		{"nodeStatusUpdateFrequency", k.NodeStatusUpdateFrequency},
		{"nodeStatusReportFrequency", k.NodeStatusReportFrequency},
		{"authentication.webhook.cacheTTL", k.Authentication.Webhook.CacheTTL},
		{"authorization.webhook.cacheAuthorizedTTL", k.Authorization.Webhook.CacheAuthorizedTTL},
		{"authorization.webhook.cacheUnauthorizedTTL", k.Authorization.Webhook.CacheUnauthorizedTTL},
		{"evictionPressureTransitionPeriod", k.EvictionPressureTransitionPeriod},
		{"shutdownGracePeriod", k.ShutdownGracePeriod},
		{"shutdownGracePeriodCriticalPods", k.ShutdownGracePeriodCriticalPods},
		{"logging.flushFrequency", k.Logging.FlushFrequency.Duration},
	} {
		if d.value.Duration < 0 {
			c.errorf(d.field, "%s is negative", d.value.Duration)
		}
	}
	if p := k.ContainerLogMonitorInterval; p != nil && p.Duration < 3*time.Second {
		c.errorf("containerLogMonitorInterval", "%s is too short; must be at least 3s", p.Duration)
	}
	if _, err := parseLogSize(k.ContainerLogMaxSize); (k.ContainerLogMaxSize != "" || c.merged.isSetByFlag("containerLogMaxSize")) && err != nil {
		c.errorf("containerLogMaxSize", "%q is not a size such as 10Mi", k.ContainerLogMaxSize)
	}
	if p := k.CrashLoopBackOff.MaxContainerRestartPeriod; p != nil && (p.Duration < time.Second || p.Duration > 300*time.Second) {
		c.errorf("crashLoopBackOff.maxContainerRestartPeriod", "%s is out of range; must be between 1s and 300s", p.Duration)
	}
}

// checkZeroFlags rejects flags with the value 0 that podd cannot apply. In a file, 0 means the default.
// The kubelet also rejects the value, or does not work with it.
func (c *checker) checkZeroFlags() {
	k, d := c.kubelet, newDefaults()
	for _, f := range []struct {
		field      string
		value, def time.Duration
	}{
		{"fileCheckFrequency", k.FileCheckFrequency.Duration, d.FileCheckFrequency.Duration},
		{"httpCheckFrequency", k.HTTPCheckFrequency.Duration, d.HTTPCheckFrequency.Duration},
		{"syncFrequency", k.SyncFrequency.Duration, d.SyncFrequency.Duration},
		{"runtimeRequestTimeout", k.RuntimeRequestTimeout.Duration, d.RuntimeRequestTimeout.Duration},
		{"nodeStatusUpdateFrequency", k.NodeStatusUpdateFrequency.Duration, d.NodeStatusUpdateFrequency.Duration},
		{"logging.flushFrequency", k.Logging.FlushFrequency.Duration.Duration, d.Logging.FlushFrequency.Duration.Duration},
	} {
		if f.value == 0 && c.merged.isSetByFlag(f.field) {
			c.errorf(f.field, "must be greater than 0; the default is %s", f.def)
		}
	}
	if k.MaxOpenFiles == 0 && c.merged.isSetByFlag("maxOpenFiles") {
		c.errorf("maxOpenFiles", "must be greater than 0; the default is %d", d.MaxOpenFiles)
	}
	if k.RegistryBurst == 0 && c.merged.isSetByFlag("registryBurst") && (k.RegistryPullQPS == nil || *k.RegistryPullQPS > 0) {
		c.errorf("registryBurst", "0 permits no image pull; set a number greater than 0, or no limit with --registry-qps=0")
	}
}
