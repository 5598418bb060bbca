package config

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/component-helpers/node/util/sysctl"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/manifest/validate"
)

// gateDefaultPodSysctls is the feature gate of defaultPodSysctls.
const gateDefaultPodSysctls = "DefaultPodSysctls"

// notNamespaced is the message about a sysctl that would apply to the whole host.
const notNamespaced = "%q is not namespaced and would apply to the whole host; must be one of kernel.domainname, kernel.shm*, kernel.msg*, kernel.sem, fs.mqueue.*, net.* or user.*"

// checkSysctls rejects sysctls that are not namespaced, because they would apply to the whole
// host.
func (c *checker) checkSysctls() {
	for i, name := range c.kubelet.AllowedUnsafeSysctls {
		at := joinIndex("allowedUnsafeSysctls", i)
		ns, _, _ := sysctl.GetNamespace(name)
		switch {
		case !validate.IsSysctlPattern(name):
			c.errorf(at, "%q is neither the name of a sysctl nor a prefix that ends in *, such as net.ipv4.*", name)
		case ns == sysctl.UnknownNamespace:
			c.errorf(at, notNamespaced, name)
		}
	}
}

// checkDefaultSysctls checks defaultPodSysctls with the rules of the kubelet.
func (c *checker) checkDefaultSysctls() {
	const field = "defaultPodSysctls"
	defaults := c.kubelet.DefaultPodSysctls
	if len(defaults) == 0 {
		return
	}
	if !isGateEnabled(c.kubelet, gateDefaultPodSysctls) {
		c.errorf(field, "needs the feature gate %[1]s; set featureGates.%[1]s to true", gateDefaultPodSysctls)
		return
	}
	names := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		at, normal := joinKey(field, name), sysctl.NormalizeName(name)
		ns, _, _ := sysctl.GetNamespace(name)
		switch {
		case !validate.IsSysctlName(name):
			c.errorf(at, "%q is not the name of a sysctl, such as net.ipv4.tcp_syncookies", name)
		case ns == sysctl.UnknownNamespace:
			c.errorf(at, notNamespaced, name)
		case names[normal]:
			c.errorf(at, "%s is set twice; remove one of the values", normal)
		case strings.ContainsRune(defaults[name], 0):
			c.errorf(at, "the value contains a NUL character; remove it")
		}
		names[normal] = true
	}
}

// defaultSysctls returns the sysctls that are set in each pod. The parts of their names are separated
// by dots. defaultSysctls returns nil if there are none.
func defaultSysctls(k *kubelet.KubeletConfiguration) map[string]string {
	if len(k.DefaultPodSysctls) == 0 || !isGateEnabled(k, gateDefaultPodSysctls) {
		return nil
	}
	sysctls := map[string]string{}
	for name, value := range k.DefaultPodSysctls {
		sysctls[sysctl.NormalizeName(name)] = value
	}
	return sysctls
}
