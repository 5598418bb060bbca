package config

import (
	"cmp"
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

// Cluster configures podd as a node of a cluster.
type Cluster struct {
	// Kubeconfig is the path of the kubeconfig; "" means no cluster, and the following fields
	// are ignored.
	Kubeconfig string
	// BootstrapKubeconfig is the path of the kubeconfig with which podd requests a client
	// certificate and writes Kubeconfig, if that has no valid credential; "" disables this.
	BootstrapKubeconfig string
	// CertDir is the absolute path of the directory with the certificates that podd has
	// requested. Rotate renews the client certificate.
	CertDir string
	Rotate  bool
	// ServingBootstrap requests the serving certificate of the kubelet API from the cluster.
	ServingBootstrap bool
	// Register creates the Node if it does not exist.
	Register bool
	// Taints are set when the Node is created.
	Taints []v1.Taint
	// ProviderID is the cloud's ID of this host; may be "".
	ProviderID string
	// ExternalCloud leaves the addresses and the initial taint to a cloud controller.
	ExternalCloud bool
	// AttachDetach lets the attach-detach controller attach volumes.
	AttachDetach bool
	// UpdateFrequency is the interval between comparisons of the Node's status, and
	// ReportFrequency that between updates of an unchanged status.
	UpdateFrequency, ReportFrequency time.Duration
	// Lease is the duration of the node's lease.
	Lease time.Duration
	// QPS and Burst limit requests other than heartbeats.
	QPS, Burst int
	// EventQPS and EventBurst limit requests for events; EventQPS 0 means no limit.
	EventQPS, EventBurst int
	// ContentType is the media type of requests and responses.
	ContentType string
}

func (r *resolver) resolveCluster(c *Config) {
	f, k, d := r.flags, r.k, defaults()
	taints := r.taints()
	if f.CloudProvider != "" && f.CloudProvider != "external" {
		r.add(manifest.Error, "--cloud-provider", "unknown value %q; want external", f.CloudProvider)
	}
	if f.Kubeconfig == "" {
		if f.BootstrapKubeconfig != "" {
			r.add(manifest.Error, "--bootstrap-kubeconfig", "needs --kubeconfig, the path of the kubeconfig to write")
		}
		r.warnClusterFlags()
		return
	}
	if c.RunOnce {
		r.add(manifest.Error, "--kubeconfig", "cannot be used together with --runonce; remove one of them")
	}
	if s := k.ConfigMapAndSecretChangeDetectionStrategy; s == kubelet.TTLCacheChangeDetectionStrategy || s == kubelet.GetChangeDetectionStrategy {
		r.add(manifest.Error, "configMapAndSecretChangeDetectionStrategy", "unsupported value %q, because podd always watches ConfigMaps and Secrets; want Watch", s)
	}
	if taints == nil {
		taints = k.RegisterWithTaints
	}
	c.Cluster = Cluster{
		Kubeconfig: r.absDir("--kubeconfig", f.Kubeconfig, ""), Taints: taints,
		BootstrapKubeconfig: r.absDir("--bootstrap-kubeconfig", f.BootstrapKubeconfig, ""),
		CertDir:             r.absDir("--cert-dir", f.CertDir, filepath.Join(c.RootDir, "pki")),
		Rotate:              k.RotateCertificates, ServingBootstrap: k.ServerTLSBootstrap && c.API.Listen != "",
		Register:   derefOr(k.RegisterNode, d.RegisterNode),
		ProviderID: k.ProviderID, ExternalCloud: f.CloudProvider != "",
		AttachDetach:    derefOr(k.EnableControllerAttachDetach, d.EnableControllerAttachDetach),
		UpdateFrequency: durationOr(k.NodeStatusUpdateFrequency, d.NodeStatusUpdateFrequency),
		// A user who sets only one of the two intends both to be equal.
		ReportFrequency: durationOr(k.NodeStatusReportFrequency, cmp.Or(k.NodeStatusUpdateFrequency, d.NodeStatusReportFrequency)),
		Lease:           time.Duration(cmp.Or(k.NodeLeaseDurationSeconds, d.NodeLeaseDurationSeconds)) * time.Second,
		QPS:             int(derefOr(k.KubeAPIQPS, d.KubeAPIQPS)), Burst: int(cmp.Or(k.KubeAPIBurst, d.KubeAPIBurst)),
		EventQPS: int(derefOr(k.EventRecordQPS, d.EventRecordQPS)), EventBurst: int(cmp.Or(k.EventBurst, d.EventBurst)),
		ContentType: cmp.Or(k.ContentType, d.ContentType),
	}
}

// warnClusterFlags warns of flags that are ignored without a cluster and have no field.
// warnIgnored warns of those with a field.
func (r *resolver) warnClusterFlags() {
	for _, flag := range []struct {
		name  string
		given bool
	}{{"--register-with-taints", len(r.flags.RegisterWithTaints) > 0}, {"--cloud-provider", r.flags.CloudProvider != ""}, {"--cert-dir", r.flags.CertDir != ""}} {
		if flag.given {
			r.add(manifest.Warning, flag.name, "ignored without --kubeconfig")
		}
	}
}

// taints returns the taints of --register-with-taints.
func (r *resolver) taints() (all []v1.Taint) {
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

// parseTaint parses KEY[=VALUE]:EFFECT.
func parseTaint(text string) (v1.Taint, error) {
	pair, effect, ok := strings.Cut(text, ":")
	if !ok {
		return v1.Taint{}, errors.New("the effect is missing; want KEY=VALUE:EFFECT")
	}
	key, value, _ := strings.Cut(pair, "=")
	return v1.Taint{Key: key, Value: value, Effect: v1.TaintEffect(effect)}, nil
}

var taintEffects = []v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute}

// checkTaint validates a taint like the API server. others are the preceding taints.
func checkTaint(t v1.Taint, others []v1.Taint) error {
	if reasons := append(validation.IsQualifiedName(t.Key), validation.IsValidLabelValue(t.Value)...); len(reasons) > 0 {
		return errors.New(strings.Join(reasons, "; "))
	}
	if !slices.Contains(taintEffects, t.Effect) {
		return fmt.Errorf("unknown effect %q; want NoSchedule, PreferNoSchedule or NoExecute", t.Effect)
	}
	if slices.ContainsFunc(others, func(o v1.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect }) {
		return errors.New("duplicate taint; each key and effect must be unique")
	}
	return nil
}

// checkTaints checks the taints of the configuration files.
func (c *checker) checkTaints() {
	all := c.k.RegisterWithTaints
	for i, t := range all {
		if err := checkTaint(t, all[:i]); err != nil {
			c.errorf(index("registerWithTaints", i), "%v", err)
		}
	}
}
