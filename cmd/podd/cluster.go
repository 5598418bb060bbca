package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"podd/cmd/podd/internal/cluster"
	"podd/manifest"
	"podd/server/auth"
)

// joinCluster keeps this machine the node of the configured cluster until ctx is
// done; where there is none it does nothing.
func (d *podd) joinCluster(ctx context.Context) error {
	if d.cluster == nil {
		return nil
	}
	return d.cluster.Run(ctx, d.view.latest)
}

// newCluster is the configured one; nil when there is none.
func (d *podd) newCluster() *cluster.Cluster {
	c := d.cfg.Cluster
	if c.Kubeconfig == "" {
		return nil
	}
	o := cluster.Options{
		Kubeconfig: c.Kubeconfig, Version: thisVersion().Version, Origin: filepath.Join(d.cfg.RootDir, "cluster.json"),
		BootstrapKubeconfig: c.BootstrapKubeconfig, CertDir: c.CertDir, RotateCertificates: c.Rotate,
		QPS: c.QPS, Burst: c.Burst, EventQPS: c.EventQPS, EventBurst: c.EventBurst, ContentType: c.ContentType,
		Node: d.cfg.NodeName, Register: c.Register, Taints: c.Taints, ProviderID: c.ProviderID,
		ExternalCloud: c.ExternalCloud, ProvidedIP: d.providedIP(), AttachDetach: c.AttachDetach,
		UpdateFrequency: c.UpdateFrequency, ReportFrequency: c.ReportFrequency, Lease: c.Lease,
		Events: d.events, Log: d.log,
		Renewed: func(serving bool, made time.Time, err error) { d.metrics.Renewed(serving, made, time.Now(), err) },
		Refused: func(ctx context.Context, all []cluster.Refusal) {
			problems := refused(all)
			d.view.refused.Store(&problems)
			_ = d.router.Renew(ctx)
		},
		Told: func(ctx context.Context, trouble string) {
			d.view.cluster.Store(&trouble)
			_ = d.router.Renew(ctx) // it ends with podd
		},
	}
	if d.csi != nil {
		o.CSI = d.csi
	}
	return cluster.New(o)
}

// askCluster has a guard ask the configured cluster what it is to ask one.
func (d *podd) askCluster(g *auth.Guard) {
	a := d.cfg.API
	g.OfCluster = d.cluster != nil
	if !a.TokenReview && !a.AccessReview {
		return
	}
	reviews := d.cluster.Reviews(cluster.ReviewOptions{Tokens: a.TokenTTL, Allowed: a.AllowedTTL, Denied: a.DeniedTTL})
	if a.TokenReview {
		g.Authenticator.Review = reviews.User
	}
	if a.AccessReview {
		g.Authorizer = reviews
	}
}

// refused is what keeps the cluster from knowing pods as they are.
func refused(all []cluster.Refusal) []manifest.Problem {
	var problems []manifest.Problem
	for _, r := range all {
		problems = append(problems, manifest.Problem{
			Severity: manifest.Warning, Path: r.Path, Position: manifest.Position{Line: uint32(r.Line)}, Pod: r.Pod,
			Message: "pod " + r.Pod.String() + ": " + r.Why,
		})
	}
	return problems
}

// providedIP is what the user gave as the node's addresses, "" for none or those
// that are to be found.
func (d *podd) providedIP() string {
	var given []string
	for _, ip := range d.cfg.NodeIPs {
		if !ip.IsUnspecified() {
			given = append(given, ip.String())
		}
	}
	return strings.Join(slices.Compact(given), ",")
}
