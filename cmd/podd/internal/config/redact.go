package config

import (
	"reflect"

	kubelet "k8s.io/kubelet/config/v1beta1"
)

// maskedValue is printed instead of a secret value.
const maskedValue = "<masked>"

// zeroMeansDefault is the set of fields for which 0 also means the default on the command line.
var zeroMeansDefault = newSet("kubeAPIBurst", "eventBurst")

// redact returns the effective configuration with all secrets masked. Like the configuration that
// the kubelet serves at /configz, it contains all defaults, the kind and the API version.
// userConfig is the merged configuration without defaults. The caller must not change f and c later,
// because the function Flags of the result reads them.
func redact(f *Flags, userConfig *kubelet.KubeletConfiguration, m *mergedTree, c *Config) RedactedConfig {
	k := newDefaults()
	k.Kind, k.APIVersion = kubeletConfigKind, kubeletConfigAPIVersion
	visitFields(reflect.ValueOf(userConfig).Elem(), reflect.ValueOf(k).Elem(), "", func(path string, v, def reflect.Value) {
		isZeroFlag := m.isSetByFlag(path) && v.Kind() != reflect.String && !zeroMeansDefault[path]
		if m.isSet(path) && (!v.IsZero() || isZeroFlag) {
			def.Set(v)
		}
	})
	if len(k.StaticPodURLHeader) > 0 {
		header := map[string][]string{}
		for name := range k.StaticPodURLHeader {
			header[name] = []string{maskedValue}
		}
		k.StaticPodURLHeader = header
	}
	if k.StaticPodURL != "" { // the URL may contain a password
		k.StaticPodURL = maskedValue
	}
	k.EvictionHard = effectiveEvictionHard(userConfig)
	c.API.setEffectiveValues(k)
	c.setEffectiveValues(k)
	if userConfig.FailSwapOn == nil {
		k.FailSwapOn = new(false)
	}
	if userConfig.FailCgroupV1 == nil {
		k.FailCgroupV1 = new(false)
	}
	if c.Cluster.Kubeconfig == "" {
		k.RegisterNode = new(false)
	} else {
		k.RegisterNode, k.RegisterWithTaints = new(c.Cluster.RegisterNode), c.Cluster.Taints
	}
	return RedactedConfig{k, func() map[string]string { return effectiveFlags(f, k, c) }}
}

// setEffectiveValues sets the fields of k for which podd has another default than the kubelet.
func (c *Config) setEffectiveValues(k *kubelet.KubeletConfiguration) {
	k.SerializeImagePulls = new(c.MaxParallelPulls == 1)
	if c.MaxParallelPulls > 1 {
		k.MaxParallelImagePulls = new(int32(c.MaxParallelPulls))
	}
	k.KernelMemcgNotification = !c.DisableMemoryNotifications
	k.ContainerLogMaxWorkers = new(int32(c.LogWorkers))
}
