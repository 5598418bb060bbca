package config

import (
	"k8s.io/component-helpers/node/util/sysctl"

	"podd/manifest/validate"
)

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
			c.errorf(at, "%q is not namespaced and would apply to the whole host; must be one of kernel.domainname, kernel.shm*, kernel.msg*, kernel.sem, fs.mqueue.*, net.* or user.*", name)
		}
	}
}
