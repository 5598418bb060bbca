package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logs "k8s.io/component-base/logs/api/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

// effectiveFlags returns the effective value of every flag of podd run and of every flag of the
// kubelet that sets a field. If the command line does not set the flag, its value comes from the
// configuration files. If these do not set it either, the value is the default, or "" without a
// default. k is the effective configuration, with secrets masked. effectiveFlags masks the secrets
// of the other flags.
func effectiveFlags(f *Flags, k *kubelet.KubeletConfiguration, c *Config) map[string]string {
	fields := map[string]reflect.Value{}
	v := reflect.ValueOf(k).Elem()
	visitFields(v, v, "", func(path string, value, _ reflect.Value) { fields[path] = value })
	flags := map[string]string{}
	for _, flag := range kubeletFlags {
		if value, ok := fields[flag.field]; ok {
			flags[flag.name] = formatFlagValue(value, flag.format)
		}
	}
	for field, value := range f.settings() {
		if effective, ok := fields[field.Tag.Get("field")]; ok {
			value = effective
		}
		flags[flagName(field)] = formatFlagValue(value, textFormat)
	}
	c.setEffectiveFlags(flags)
	return flags
}

// setEffectiveFlags sets the values of the flags that set no field of KubeletConfiguration directly and
// have defaults. It masks secret values.
func (c *Config) setEffectiveFlags(flags map[string]string) {
	flags["root-dir"], flags["run-dir"] = c.RootDir, c.RunDir
	flags["pod-manifest-path"] = strings.Join(c.ManifestPaths, ",")
	flags["adopt"] = strconv.FormatBool(c.Adopt)
	flags["minimum-container-ttl-duration"] = c.MinDeadContainerAge.String()
	flags["maximum-dead-containers-per-container"] = strconv.Itoa(c.MaxDeadPerContainer)
	flags["maximum-dead-containers"] = strconv.Itoa(c.MaxDeadContainers)
	var taints []string
	for _, t := range c.Cluster.Taints {
		taints = append(taints, t.ToString())
	}
	flags["cert-dir"], flags["register-with-taints"] = c.Cluster.CertDir, strings.Join(taints, ",")
	if c.Cluster.Kubeconfig == "" {
		flags["cloud-provider"] = ""
	}
	if len(c.URLHeader) > 0 {
		flags["manifest-url-header"] = maskedValue
	}
	var urls []string
	for _, u := range c.ManifestURLs {
		urls = append(urls, redactURL(u))
	}
	flags["manifest-url"] = strings.Join(urls, ",")
}

// formatFlagValue returns a value as it is written on the command line. A nil pointer becomes "".
func formatFlagValue(v reflect.Value, format valueFormat) string {
	switch x := indirect(v).(type) {
	case nil:
		return ""
	case metav1.Duration:
		return x.Duration.String()
	case logs.TimeOrMetaDuration:
		return x.Duration.Duration.String()
	case resource.QuantityValue:
		return x.String()
	case []string:
		return strings.Join(x, ",")
	case logs.VModuleConfiguration:
		var items []string
		for _, item := range x {
			items = append(items, fmt.Sprintf("%s=%d", item.FilePattern, item.Verbosity))
		}
		return strings.Join(items, ",")
	}
	if v = reflect.Indirect(v); v.Kind() != reflect.Map {
		return fmt.Sprint(v.Interface())
	}
	separator := "="
	if format == thresholdsFormat {
		separator = "<"
	}
	var pairs []string
	for i := v.MapRange(); i.Next(); {
		pairs = append(pairs, fmt.Sprint(i.Key().Interface())+separator+fmt.Sprint(i.Value().Interface()))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}
