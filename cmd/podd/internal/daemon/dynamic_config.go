package daemon

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/cmd/podd/internal/cluster/configsource"
	"podd/cmd/podd/internal/daemon/view"
	"podd/cmd/podd/internal/dynconfig"
	"podd/manifest"
	"podd/reconcile/event"
	"podd/server"
	"podd/server/metrics"
)

// followConfig reports which configuration is in use, until ctx is done. It also reports the health of
// podd's parts to link, which may be nil.
func (p *parts) followConfig(ctx context.Context) error {
	link := p.configLink
	if link == nil {
		return nil
	}
	link.SetHealth(p.health)
	defer link.SetHealth(nil)
	for {
		status, changed := link.Status()
		setConfig(p.state, status)
		p.metrics.RecordNodeConfig(nodeConfig(status.Assigned), nodeConfig(status.Active), nodeConfig(status.LastKnownGood), status.Error != "")
		for _, n := range link.TakeNotices() {
			p.reportNotice(n)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// setConfig sets the condition and the problem of the configuration.
func setConfig(state *view.NodeState, s dynconfig.Status) {
	state.SetConfig(configCondition(s), configProblem(s))
}

// reportNotice logs a notice and records it as an event of the node.
func (p *parts) reportNotice(n dynconfig.Notice) {
	kind := v1.EventTypeNormal
	if n.IsWarning {
		kind = v1.EventTypeWarning
		p.log.Error("problem with the configuration", "reason", n.Reason, "err", n.Message)
	} else {
		p.log.Info("configuration changed", "reason", n.Reason, "message", n.Message)
	}
	p.record([]event.Event{event.NewNodeEvent(kind, n.Reason, n.Message, time.Now())})
}

// health returns which peers of podd respond.
func (p *parts) health() dynconfig.Health {
	runtime := p.podObserver.Health()
	h := dynconfig.Health{Runtime: runtime.Err == nil && !runtime.LastRelist.IsZero(), HasCluster: p.cluster != nil}
	h.APIServer = h.HasCluster && p.cluster.Reachable()
	return h
}

// configCondition returns the condition of the Node that describes the configuration.
func configCondition(s dynconfig.Status) v1.NodeCondition {
	c := v1.NodeCondition{Type: server.ConfigCondition, Status: v1.ConditionTrue, Reason: "LastKnownGood", Message: "podd uses " + s.Active.String()}
	switch {
	case s.Error != "":
		c.Status, c.Reason, c.Message = v1.ConditionFalse, "ConfigNotUsed", configProblem(s).Message
	case s.IsOnTrial:
		c.Reason, c.Message = "OnTrial", c.Message+", which is on trial"
	}
	return c
}

// configProblem returns the problem of the configuration, or nil.
func configProblem(s dynconfig.Status) *manifest.Problem {
	switch {
	case s.Error != "" && s.IsOnTrial:
		return &manifest.Problem{Severity: manifest.Error, Message: s.Error + "; podd uses the configuration on trial"}
	case s.Error != "":
		return &manifest.Problem{Severity: manifest.Error, Message: s.Error + "; podd uses the last known good configuration"}
	case s.Warning != "":
		return &manifest.Problem{Severity: manifest.Warning, Message: s.Warning}
	}
	return nil
}

// nodeConfig converts a version for the metrics.
func nodeConfig(v dynconfig.Version) metrics.NodeConfig {
	c := metrics.NodeConfig{Digest: v.Digest}
	if m := v.ConfigMap; m != nil {
		c.Namespace, c.Name, c.Key, c.UID, c.ResourceVersion = m.Namespace, m.Name, m.Key, string(m.UID), m.ResourceVersion
	}
	return c
}

// configSourceFunc returns the function that passes the ConfigMap of the Node to link. It returns nil if
// link is nil.
func configSourceFunc(link *dynconfig.Link) func(configsource.Source) {
	if link == nil {
		return nil
	}
	return func(s configsource.Source) {
		if s.Name == "" || s.Err != "" {
			link.SetConfigMap(nil, s.Err)
			return
		}
		link.SetConfigMap(&dynconfig.ConfigMap{Data: s.Data, Version: dynconfig.ConfigMapVersion{
			Namespace: s.Namespace, Name: s.Name, Key: s.Key, UID: s.UID, ResourceVersion: s.ResourceVersion,
		}}, "")
	}
}
