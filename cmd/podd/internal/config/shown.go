package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	kubelet "k8s.io/kubelet/config/v1beta1"
)

// masked replaces secret values.
const masked = "<masked>"

// shown returns the configuration for display. user is the merged configuration without
// defaults.
func shown(f *Flags, user *kubelet.KubeletConfiguration, m *merged, c *Config) (Shown, error) {
	k := defaults()
	leaves(reflect.ValueOf(user).Elem(), reflect.ValueOf(k).Elem(), "", func(path string, v, def reflect.Value) {
		if m.isSet(path) && !v.IsZero() {
			def.Set(v)
		}
	})
	if len(k.StaticPodURLHeader) > 0 {
		header := map[string][]string{}
		for name := range k.StaticPodURLHeader {
			header[name] = []string{masked}
		}
		k.StaticPodURLHeader = header
	}
	if k.StaticPodURL != "" { // may contain a password
		k.StaticPodURL = masked
	}
	k.EvictionHard = evictionHard(user)
	c.API.setEffective(k)
	if c.Cluster.Kubeconfig == "" {
		k.RegisterNode = new(false)
	} else {
		k.RegisterNode, k.RegisterWithTaints = new(c.Cluster.Register), c.Cluster.Taints
	}
	text, err := json.Marshal(k)
	return Shown{text, f.setFlags()}, err
}

// setFlags returns the flags that were set, with secret values masked.
func (f *Flags) setFlags() map[string]string {
	set := map[string]string{}
	for field, v := range f.settings() {
		if !v.IsZero() {
			set[flagName(field)] = flagText(v)
		}
	}
	if len(f.ManifestURLHeader) > 0 {
		set["manifest-url-header"] = masked
	}
	if len(f.ManifestURL) > 0 { // may contain a password
		set["manifest-url"] = masked
	}
	return set
}

// flagText returns the value of a flag as on the command line.
func flagText(v reflect.Value) string {
	if list, ok := v.Interface().([]string); ok {
		return strings.Join(list, ",")
	}
	if v = reflect.Indirect(v); v.Kind() == reflect.String {
		return v.String()
	}
	return fmt.Sprint(v.Interface())
}
