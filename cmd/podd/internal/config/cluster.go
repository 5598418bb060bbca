package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/manifest"
)

// Cluster is how podd is the node of a cluster.
type Cluster struct {
	// Kubeconfig is the file that says where the cluster is and who podd is there;
	// "": podd joins none, and nothing below counts.
	Kubeconfig string
	// BootstrapKubeconfig is the file by which podd asks for an identity, and writes
	// Kubeconfig with it, when that gives none that is good; "": never.
	BootstrapKubeconfig string
	// CertDir has the certificates that podd asked for; absolute. Rotate renews the one
	// by which podd is known.
	CertDir string
	Rotate  bool
	// ServingBootstrap has the cluster give the certificate that the kubelet's API
	// shows.
	ServingBootstrap bool
	// Register makes the node where there is none.
	Register bool
	// Taints are those that the node is made with.
	Taints []v1.Taint
	// ProviderID is what the cloud calls this machine; "" when not told.
	ProviderID string
	// ExternalCloud has a cloud controller tell the node's addresses and take its
	// first taint away.
	ExternalCloud bool
	// AttachDetach has the cluster's controller attach the node's volumes.
	AttachDetach bool
	// UpdateFrequency is how often is looked whether the cluster's status is the
	// machine's, ReportFrequency how often it is sent though it is.
	UpdateFrequency, ReportFrequency time.Duration
	// Lease is how long the node counts as alive after a sign of life.
	Lease time.Duration
	// QPS and Burst limit the rate of requests, the signs of life apart.
	QPS, Burst int
	// EventQPS and EventBurst limit those about events; EventQPS 0: nothing does.
	EventQPS, EventBurst int
	// ContentType of requests and answers.
	ContentType string
}

func (r *resolving) cluster(c *Config) {
	f, k, d := r.flags, r.k, defaults()
	taints := r.taints()
	if f.CloudProvider != "" && f.CloudProvider != "external" {
		r.add(manifest.Error, "--cloud-provider", "%q is not known; want external", f.CloudProvider)
	}
	if f.Kubeconfig == "" {
		if f.BootstrapKubeconfig != "" {
			r.add(manifest.Error, "--bootstrap-kubeconfig", "what the cluster gives is written to --kubeconfig; give that too")
		}
		r.noCluster()
		return
	}
	if c.RunOnce {
		r.add(manifest.Error, "--kubeconfig", "a run to completion joins no cluster; leave it out, or --runonce")
	}
	if s := k.ConfigMapAndSecretChangeDetectionStrategy; s == kubelet.TTLCacheChangeDetectionStrategy || s == kubelet.GetChangeDetectionStrategy {
		r.add(manifest.Error, "configMapAndSecretChangeDetectionStrategy", "%s: podd watches what pods refer to, which is newer and asks less; only Watch is served", s)
	}
	if taints == nil {
		taints = k.RegisterWithTaints
	}
	c.Cluster = Cluster{
		Kubeconfig: r.dir("--kubeconfig", f.Kubeconfig, ""), Taints: taints,
		BootstrapKubeconfig: r.dir("--bootstrap-kubeconfig", f.BootstrapKubeconfig, ""),
		CertDir:             r.dir("--cert-dir", f.CertDir, filepath.Join(c.RootDir, "pki")),
		Rotate:              k.RotateCertificates, ServingBootstrap: k.ServerTLSBootstrap && c.API.Listen != "",
		Register:   orNil(k.RegisterNode, d.RegisterNode),
		ProviderID: k.ProviderID, ExternalCloud: f.CloudProvider != "",
		AttachDetach:    orNil(k.EnableControllerAttachDetach, d.EnableControllerAttachDetach),
		UpdateFrequency: or(k.NodeStatusUpdateFrequency, d.NodeStatusUpdateFrequency),
		// Who changed the one and not the other wants both so often.
		ReportFrequency: or(k.NodeStatusReportFrequency, orZero(k.NodeStatusUpdateFrequency, d.NodeStatusReportFrequency)),
		Lease:           time.Duration(orZero(k.NodeLeaseDurationSeconds, d.NodeLeaseDurationSeconds)) * time.Second,
		QPS:             int(orNil(k.KubeAPIQPS, d.KubeAPIQPS)), Burst: int(orZero(k.KubeAPIBurst, d.KubeAPIBurst)),
		EventQPS: int(orNil(k.EventRecordQPS, d.EventRecordQPS)), EventBurst: int(orZero(k.EventBurst, d.EventBurst)),
		ContentType: orZero(k.ContentType, d.ContentType),
	}
}

// noCluster names the flags without a field that nobody reads.
func (r *resolving) noCluster() {
	for _, flag := range []struct {
		name  string
		given bool
	}{{"--register-with-taints", len(r.flags.RegisterWithTaints) > 0}, {"--cloud-provider", r.flags.CloudProvider != ""}, {"--cert-dir", r.flags.CertDir != ""}} {
		if flag.given {
			r.add(manifest.Warning, flag.name, "for the node of a cluster, and without --kubeconfig has no effect")
		}
	}
}

// taints are those of the flag.
func (r *resolving) taints() (all []v1.Taint) {
	for _, text := range r.flags.RegisterWithTaints {
		t, err := parseTaint(strings.TrimSpace(text))
		if err == nil {
			err = checkTaint(t, all)
		}
		if err != nil {
			r.add(manifest.Error, "--register-with-taints", "%q: %v", text, err)
			continue
		}
		all = append(all, t)
	}
	return all
}

// parseTaint reads KEY[=VALUE]:EFFECT.
func parseTaint(text string) (v1.Taint, error) {
	pair, effect, ok := strings.Cut(text, ":")
	if !ok {
		return v1.Taint{}, errors.New("has no effect; want KEY=VALUE:EFFECT")
	}
	key, value, _ := strings.Cut(pair, "=")
	return v1.Taint{Key: key, Value: value, Effect: v1.TaintEffect(effect)}, nil
}

var effects = []v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute}

// checkTaint says what the API server would say of a taint beside others.
func checkTaint(t v1.Taint, others []v1.Taint) error {
	if wrong := append(validation.IsQualifiedName(t.Key), validation.IsValidLabelValue(t.Value)...); len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	if !slices.Contains(effects, t.Effect) {
		return fmt.Errorf("the effect %q is not known; want NoSchedule, PreferNoSchedule or NoExecute", t.Effect)
	}
	if slices.ContainsFunc(others, func(o v1.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect }) {
		return errors.New("is there twice")
	}
	return nil
}

// taints checks those of a file.
func (c *checking) taints() {
	all := c.k.RegisterWithTaints
	for i, t := range all {
		if err := checkTaint(t, all[:i]); err != nil {
			c.errorf(index("registerWithTaints", i), "%v", err)
		}
	}
}
