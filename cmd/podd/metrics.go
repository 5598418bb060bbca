package main

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/server/metrics"
)

// newMetrics counts for those who ask podd's metrics.
func newMetrics(node render.Node) *metrics.Metrics {
	version := 1
	if node.CgroupV2 {
		version = 2
	}
	return metrics.New(metrics.Options{CgroupVersion: version, Kubernetes: kubernetesVersion})
}

// counted tells m what came of an effect.
func counted(m *metrics.Metrics) func(reconcile.Outcome) {
	return func(o reconcile.Outcome) {
		switch a := o.Action.(type) {
		case plan.EnsureImage:
			if o.Err == nil && o.Pull != nil {
				m.Pulled(o.Pull.Size, o.Pull.Took)
			}
		case plan.RunSandbox:
			m.Sandbox(handlerOf(o.Pod), o.Took, o.Err)
		case plan.StartContainer:
			m.Container(containerType(o.Pod, a.Container), o.Reason)
		case plan.Probe:
			p := metrics.Probe{Pod: o.Key, Container: a.Container, Kind: string(a.Kind), Passed: o.Passed, Took: o.Took, Err: o.Err}
			if o.Pod != nil {
				p.UID = o.Pod.UID
			}
			m.Probed(p)
		}
	}
}

func handlerOf(p *manifest.Pod) string {
	if p == nil || p.Spec.Spec.RuntimeClassName == nil {
		return ""
	}
	return *p.Spec.Spec.RuntimeClassName
}

// containerType is a kubelet's word for what a container is of its pod.
func containerType(p *manifest.Pod, container string) string {
	if p == nil {
		return "container"
	}
	spec := &p.Spec.Spec
	switch {
	case slices.ContainsFunc(spec.InitContainers, func(c v1.Container) bool { return c.Name == container }):
		return "init_container"
	case slices.ContainsFunc(spec.EphemeralContainers, func(c v1.EphemeralContainer) bool { return c.Name == container }):
		return "ephemeral_container"
	}
	return "container"
}
