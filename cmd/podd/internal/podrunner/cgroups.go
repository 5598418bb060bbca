package podrunner

import (
	"strings"

	"podd/reconcile/render"
)

// newCgroupCreator returns a function that creates the cgroup of a pod with create. Before the cgroup of
// a BestEffort pod, it creates the cgroup of this QoS class with the lowest CPU weight. With the kernel's
// default weight, BestEffort pods would get as much CPU time as all Burstable pods together.
//
// A run does not set the other limits of QoS classes and of all pods, because they depend on the pods of
// the whole node. Only a daemon or a kubelet knows these pods.
func newCgroupCreator(on render.Node, create func(render.Cgroup) error) func(render.Cgroup) error {
	return func(c render.Cgroup) error {
		on := on
		on.CgroupDriver = c.Driver()
		if class := render.BestEffortCgroup(on); strings.HasPrefix(c.Path, class.Path+"/") {
			if err := create(class); err != nil {
				return err
			}
		}
		return create(c)
	}
}
