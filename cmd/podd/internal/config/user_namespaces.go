package config

import (
	"math"

	kubelet "k8s.io/kubelet/config/v1beta1"
)

// idUnit is the default of userNamespaces.idsPerPod. All values must be multiples of it.
const idUnit = 65536

// idsPerPod returns the number of user and group IDs of a pod with a user namespace.
// checkUserNamespaces must have found no error in k.
func idsPerPod(k *kubelet.KubeletConfiguration) uint32 {
	if k.UserNamespaces == nil || k.UserNamespaces.IDsPerPod == nil {
		return idUnit
	}
	return uint32(*k.UserNamespaces.IDsPerPod)
}

// checkUserNamespaces checks userNamespaces.idsPerPod with the rules of the kubelet
// (pkg/kubelet/userns and pkg/kubelet/apis/config/validation). As in the kubelet, the only upper limit
// is that there must be IDs for maxPods pods. The first range belongs to the users of the host, and the
// last ID belongs to no user. The kubelet does not consider the last ID, so that its last pod cannot
// start. The kubelet starts with a number that does not divide 2^32 only if the user kubelet has suitable
// subordinate IDs (getsubids), which package host checks. podd always accepts such a number, because
// package config does not read subordinate IDs.
func (c *checker) checkUserNamespaces() {
	const field = "userNamespaces.idsPerPod"
	if c.kubelet.UserNamespaces == nil || c.kubelet.UserNamespaces.IDsPerPod == nil {
		return
	}
	n := *c.kubelet.UserNamespaces.IDsPerPod
	if n < idUnit || n%idUnit != 0 || n > math.MaxUint32 {
		c.errorf(field, "%d is not a positive multiple of %d below 4294967296", n, idUnit)
		return
	}
	maxPods := int64(valueOr(c.merged, "maxPods", c.kubelet.MaxPods, newDefaults().MaxPods))
	if ranges := math.MaxUint32/n - 1; ranges < maxPods {
		c.errorf(field, "%d leaves user IDs for only %d pods, but maxPods is %d; decrease one of them", n, ranges, maxPods)
	}
}
