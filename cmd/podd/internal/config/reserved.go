package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/manifest"
)

// reservableResources contains the resources that kubeReserved and systemReserved can reserve.
var reservableResources = []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, "pid"}

// checkReserved checks the names and quantities of kubeReserved and systemReserved.
func (c *checker) checkReserved() {
	for _, r := range []struct {
		field string
		list  map[string]string
	}{{"kubeReserved", c.kubelet.KubeReserved}, {"systemReserved", c.kubelet.SystemReserved}} {
		for _, name := range slices.Sorted(maps.Keys(r.list)) {
			message := ""
			quantity, err := resource.ParseQuantity(r.list[name])
			switch {
			case !slices.Contains(reservableResources, v1.ResourceName(name)):
				message = "cannot be reserved; must be cpu, memory, ephemeral-storage or pid"
			case err != nil:
				message = fmt.Sprintf("%q is not a quantity such as 500m or 1Gi", r.list[name])
			case quantity.Sign() < 0:
				message = fmt.Sprintf("%q is negative", r.list[name])
			default:
				continue
			}
			o := c.merged.origin(joinKey(r.field, name))
			c.problems = append(c.problems, o.keyProblem(manifest.Error, r.field, name, message))
		}
	}
}

// checkReservedMemory checks the names and quantities of reservedMemory. The kubelet checks them with
// every policy of the memory manager.
func (c *checker) checkReservedMemory() {
	type limit struct {
		node int32
		name v1.ResourceName
	}
	found := map[limit]bool{}
	for i, r := range c.kubelet.ReservedMemory {
		for _, name := range slices.Sorted(maps.Keys(r.Limits)) {
			field, quantity := joinKey(joinIndex("reservedMemory", i)+".limits", string(name)), r.Limits[name]
			if name != v1.ResourceMemory && !strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix) {
				c.errorf(field, "unknown type of memory; must be memory, or hugepages- and a page size")
			}
			if quantity.IsZero() {
				c.errorf(field, "must not be 0")
			}
			key := limit{r.NumaNode, name}
			if found[key] {
				c.errorf(field, "NUMA node %d has this type of memory twice", r.NumaNode)
			}
			found[key] = true
		}
	}
}

// parseReserved returns the resources of a list. checkReserved must have found no error in it. As in
// the kubelet, CPU is rounded to the nearest millicore.
func parseReserved(list map[string]string) v1.ResourceList {
	amounts := v1.ResourceList{}
	for name, text := range list {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			continue
		}
		if name == string(v1.ResourceCPU) {
			q.SetMilli((q.ScaledValue(resource.Micro) + 500) / 1000)
		}
		amounts[v1.ResourceName(name)] = q
	}
	return amounts
}

// sumReserved returns the sum of kubeReserved and systemReserved. checkReserved must have
// found no error in k.
func sumReserved(k *kubelet.KubeletConfiguration) v1.ResourceList {
	sum := v1.ResourceList{}
	for _, list := range []map[string]string{k.KubeReserved, k.SystemReserved} {
		for name, q := range parseReserved(list) {
			q.Add(sum[name])
			sum[name] = q
		}
	}
	return sum
}
