package config

import (
	"reflect"
	"strings"

	logs "k8s.io/component-base/logs/api/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

// maskedValue is printed instead of a secret value.
const maskedValue = "<masked>"

// zeroMeansDefault is the set of fields for which 0 also means the default on the command line.
var zeroMeansDefault = newSet("kubeAPIBurst", "eventBurst")

// redact returns the effective configuration with all secrets masked. Like the configuration that
// the kubelet serves at /configz, it contains all defaults, the kind and the API version. Fields that podd
// ignores have their defaults, or the values with which the kubelet behaves like podd.
// userConfig is the merged configuration without defaults. The caller must not change f and c later,
// because the function Flags of the result reads them.
func redact(f *Flags, userConfig *kubelet.KubeletConfiguration, m *mergedTree, c *Config) RedactedConfig {
	k := newDefaults()
	k.Kind, k.APIVersion = kubeletConfigKind, kubeletConfigAPIVersion
	visitFields(reflect.ValueOf(userConfig).Elem(), reflect.ValueOf(k).Elem(), "", func(path string, v, def reflect.Value) {
		isZeroFlag := m.isSetByFlag(path) && v.Kind() != reflect.String && !zeroMeansDefault[path]
		if m.isSet(path) && !isIgnored(path, userConfig.RunOnce, f.Kubeconfig != "") && (!v.IsZero() || isZeroFlag) {
			def.Set(v)
		}
	})
	c.Sources.setEffectiveValues(k)
	k.EvictionHard = effectiveEvictionHard(userConfig)
	c.API.setEffectiveValues(k)
	c.setEffectiveValues(k)
	if userConfig.FailSwapOn == nil {
		k.FailSwapOn = new(false)
	}
	if userConfig.FailCgroupV1 == nil {
		k.FailCgroupV1 = new(false)
	}
	c.Cluster.setEffectiveValues(k)
	return RedactedConfig{k, func() map[string]string { return effectiveFlags(f, k, c) }}
}

// setEffectiveValues sets the fields of k that configure static pods. They have one value each, so k
// contains only the first path and the first URL. The flags at /flagz contain all.
func (s *Sources) setEffectiveValues(k *kubelet.KubeletConfiguration) {
	if len(s.ManifestPaths) > 0 {
		k.StaticPodPath = s.ManifestPaths[0]
	}
	if len(s.ManifestURLs) > 0 {
		k.StaticPodURL = redactURL(s.ManifestURLs[0])
	}
	k.StaticPodURLHeader = nil
	for name := range s.URLHeader {
		if k.StaticPodURLHeader == nil {
			k.StaticPodURLHeader = map[string][]string{}
		}
		k.StaticPodURLHeader[name] = []string{maskedValue}
	}
}

// redactURL masks the parts of a manifest URL that may be secret: the user with the password, the query
// and the fragment. It does not parse the URL, because the host may contain {node}.
func redactURL(text string) string {
	scheme, rest, _ := strings.Cut(text, "://")
	secret := ""
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest, secret = rest[:i], rest[i:i+1]+maskedValue
	}
	host, path, hasPath := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = maskedValue + host[i:]
	}
	if hasPath {
		host += "/" + path
	}
	return scheme + "://" + host + secret
}

// setEffectiveValues sets the fields of k that configure podd as a node of a cluster. Without a cluster,
// podd does not do what these fields enable.
func (c *Cluster) setEffectiveValues(k *kubelet.KubeletConfiguration) {
	k.RegisterNode, k.RegisterWithTaints = new(c.RegisterNode), c.Taints
	k.RotateCertificates, k.ServerTLSBootstrap = c.RotateClientCert, c.RequestServingCert
	k.EnableControllerAttachDetach, k.MakeIPTablesUtilChains = new(c.EnableControllerAttachDetach), new(c.CreateIPTablesChains)
}

// setEffectiveValues sets the fields of k that differ from the configuration: podd has another default,
// or ignores the configured value.
func (c *Config) setEffectiveValues(k *kubelet.KubeletConfiguration) {
	k.SerializeImagePulls = new(c.MaxParallelPulls == 1)
	if c.MaxParallelPulls > 1 {
		k.MaxParallelImagePulls = new(int32(c.MaxParallelPulls))
	}
	if c.CredentialVerification == nil {
		k.ImagePullCredentialsVerificationPolicy = ""
	}
	k.KernelMemcgNotification = !c.DisableMemoryNotifications
	k.ContainerLogMaxWorkers = new(int32(c.LogWorkers))
	k.ContainerRuntimeEndpoint, k.PodLogsDir = c.RuntimeEndpoint, c.PodLogsDir
	if c.DisablePodCgroups {
		k.CgroupRoot = ""
	}
	k.EnableContentionProfiling = c.ProfileContention
	k.Logging.Verbosity = logs.VerbosityLevel(c.Verbosity)
}
