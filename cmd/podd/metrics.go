package main

import (
	"crypto/x509"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/cgroup"
	"podd/reconcile/plan"
	"podd/reconcile/render"
	"podd/server/metrics"
)

// newMetrics counts for those who ask podd's metrics.
func (d *podd) newMetrics(node render.Node) *metrics.Metrics {
	version := 1
	if node.CgroupV2 {
		version = 2
	}
	o := metrics.Options{
		CgroupVersion: version, Kubernetes: kubernetesVersion, NotAdmitted: plan.NotAdmitted,
		Certificate: d.servingUntil, Disks: d.podDisks,
	}
	if d.cfg.Cluster.Kubeconfig != "" {
		o.ClientCertificate, o.Mirrors = d.knownUntil, func() int { return d.cluster.Mirrors() }
	}
	return metrics.New(o)
}

// knownUntil is how long the certificate is good by which the cluster knows the node.
func (d *podd) knownUntil() (time.Time, error) {
	until, ok := d.cluster.Identity()
	if !ok {
		return until, errors.New("the cluster knows the node by no certificate that podd renews")
	}
	return until, nil
}

// servingUntil is how long the certificate of the kubelet's port is good.
func (d *podd) servingUntil() (time.Time, error) {
	if d.show == nil {
		return time.Time{}, errors.New("the port is not open")
	}
	c, err := d.show(nil)
	if err != nil {
		return time.Time{}, err
	}
	leaf := c.Leaf
	if leaf == nil { // GODEBUG=x509keypairleaf=0
		if leaf, err = x509.ParseCertificate(c.Certificate[0]); err != nil {
			return time.Time{}, err
		}
	}
	return leaf.NotAfter, nil
}

// counted tells m what came of an effect.
func counted(m *metrics.Metrics) func(reconcile.Outcome) {
	return func(o reconcile.Outcome) {
		now := time.Now()
		if operation := operationOf(o.Action); operation != "" {
			m.Worked(operation, o.Took)
			if operation == metrics.Create && o.Pod != nil {
				m.Began(o.Pod.UID, now.Add(-o.Took))
			}
		}
		switch a := o.Action.(type) {
		case plan.EnsureImage:
			if o.Pod != nil && (o.Pull != nil || o.Err != nil) {
				m.Pulls(o.Pod.UID, now.Add(-o.Took), now)
			}
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

// operationOf is a kubelet's word for what a worker does; "" for what it only looks
// at.
func operationOf(a plan.Action) string {
	switch a.(type) {
	case plan.EnsureImage, plan.PrepareVolumes, plan.RunSandbox, plan.StartContainer:
		return metrics.Create
	case plan.ResizeContainer, plan.ResizePod:
		return metrics.Update
	case plan.UpdateVolumes, plan.CheckVolumes, plan.PostStart:
		return metrics.Sync
	case plan.PreStop, plan.StopContainer, plan.StopSandbox, plan.EndForeign,
		plan.RemoveContainer, plan.RemoveSandbox, plan.ReleaseVolumes, plan.RemoveDir:
		return metrics.Kill
	}
	return ""
}

// timedMake is cgroup.Make of a pod's, counted.
func (d *podd) timedMake(c render.Cgroup) error {
	began := time.Now()
	err := cgroup.Make(c)
	d.metrics.Cgroup("create", time.Since(began))
	return err
}

func (d *podd) cgroupRemoved(took time.Duration) { d.metrics.Cgroup("destroy", took) }

// done has count hear of an outcome, and the node of an image that came.
func (d *podd) done(count func(reconcile.Outcome)) func(reconcile.Outcome) {
	return func(o reconcile.Outcome) {
		count(o)
		if o.Pull == nil {
			return
		}
		select {
		case d.pulled <- struct{}{}:
		default: // it is told already
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
