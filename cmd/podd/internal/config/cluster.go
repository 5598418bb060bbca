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
	// Kubeconfig is the path of the kubeconfig. If it is "", podd runs without a cluster, and
	// the other fields are ignored.
	Kubeconfig string
	// BootstrapKubeconfig is the path of a kubeconfig that is used if Kubeconfig contains no
	// valid credential. podd then requests a client certificate and writes Kubeconfig. "" means
	// that there is no such file.
	BootstrapKubeconfig string
	// CertDir is the absolute path of the directory with the certificates that podd has
	// requested.
	CertDir string
	// RotateClientCert enables the renewal of the client certificate.
	RotateClientCert bool
	// RequestServingCert enables requests for the serving certificate of the kubelet API.
	RequestServingCert bool
	// RegisterNode enables the creation of the Node if it does not exist.
	RegisterNode bool
	// Taints are set when the Node is created.
	Taints []v1.Taint
	// Unschedulable is set if the Node is created with spec.unschedulable.
	Unschedulable bool
	// ProviderID is the ID of this host in the cloud; may be "".
	ProviderID string
	// HasExternalCloud is set if an external cloud controller sets the addresses of the Node and
	// removes its initial taint.
	HasExternalCloud bool
	// EnableControllerAttachDetach is set if the attach-detach controller of the cluster attaches
	// volumes to this node.
	EnableControllerAttachDetach bool
	// CreateIPTablesChains enables the creation of the iptables chains KUBE-IPTABLES-HINT and
	// KUBE-FIREWALL.
	CreateIPTablesChains bool
	// StatusUpdateFrequency is the interval at which podd computes the Node's status. podd
	// writes the status if it has changed.
	StatusUpdateFrequency time.Duration
	// StatusReportFrequency is the interval at which podd writes an unchanged status.
	StatusReportFrequency time.Duration
	// LeaseDuration is the duration of the node's Lease.
	LeaseDuration time.Duration
	// QPS and Burst limit the rate of requests other than those for the Node's status, the
	// Lease and events.
	QPS, Burst int
	// EventQPS and EventBurst limit the rate of requests for events. EventQPS 0 means no limit.
	EventQPS, EventBurst int
	// ContentType is the media type of requests and responses.
	ContentType string
}

// resolveCluster sets c.Cluster if --kubeconfig is set. Otherwise it adds a warning for each flag
// that needs a cluster.
func (r *resolver) resolveCluster(c *Config) {
	f, k, d := r.flags, r.kubelet, newDefaults()
	taints := r.parseTaints()
	if f.Kubeconfig == "" {
		if f.BootstrapKubeconfig != "" {
			r.addProblem(manifest.Error, "--bootstrap-kubeconfig", "needs --kubeconfig, the path of the kubeconfig to write")
		}
		r.warnClusterFlags()
		return
	}
	r.checkCloudProvider()
	if c.RunOnce {
		r.addProblem(manifest.Error, "--kubeconfig", "cannot be used together with --runonce; remove one of them")
	}
	if s := k.ConfigMapAndSecretChangeDetectionStrategy; s == kubelet.TTLCacheChangeDetectionStrategy || s == kubelet.GetChangeDetectionStrategy {
		r.addProblem(manifest.Error, "configMapAndSecretChangeDetectionStrategy", "unsupported value %q, because podd always watches ConfigMaps and Secrets; must be Watch", s)
	}
	if attaches := k.EnableControllerAttachDetach; attaches != nil && !*attaches {
		r.warnf("enableControllerAttachDetach", "false: CSI volumes of drivers that require attachment cannot be mounted, because podd, like the kubelet, does not attach CSI volumes itself; use true")
	}
	if taints == nil {
		taints = k.RegisterWithTaints
	}
	c.Cluster = Cluster{
		Kubeconfig: r.absDir("--kubeconfig", f.Kubeconfig, ""), Taints: taints,
		BootstrapKubeconfig: r.absDir("--bootstrap-kubeconfig", f.BootstrapKubeconfig, ""),
		CertDir:             r.absDir("--cert-dir", f.CertDir, filepath.Join(c.RootDir, "pki")),
		RotateClientCert:    k.RotateCertificates, RequestServingCert: k.ServerTLSBootstrap && c.API.Address != "",
		RegisterNode:  derefOr(k.RegisterNode, d.RegisterNode),
		Unschedulable: slices.ContainsFunc(f.Unsupported, UnsupportedFlag.isUnschedulable),
		ProviderID:    k.ProviderID, HasExternalCloud: f.CloudProvider != "",
		EnableControllerAttachDetach: derefOr(k.EnableControllerAttachDetach, d.EnableControllerAttachDetach),
		CreateIPTablesChains:         derefOr(k.MakeIPTablesUtilChains, d.MakeIPTablesUtilChains),
		StatusUpdateFrequency:        r.duration("nodeStatusUpdateFrequency", k.NodeStatusUpdateFrequency, d.NodeStatusUpdateFrequency),
		StatusReportFrequency:        r.duration("nodeStatusReportFrequency", k.NodeStatusReportFrequency, d.NodeStatusReportFrequency),
		LeaseDuration:                time.Duration(cmp.Or(k.NodeLeaseDurationSeconds, d.NodeLeaseDurationSeconds)) * time.Second,
		// As the help of the kubelet states, a burst of 0 means the default, also on the command line.
		QPS: int(derefOr(k.KubeAPIQPS, d.KubeAPIQPS)), Burst: int(cmp.Or(k.KubeAPIBurst, d.KubeAPIBurst)),
		EventQPS: int(derefOr(k.EventRecordQPS, d.EventRecordQPS)), EventBurst: int(cmp.Or(k.EventBurst, d.EventBurst)),
		ContentType: cmp.Or(k.ContentType, d.ContentType),
	}
}

// externalCloud is the only valid value of --cloud-provider.
const externalCloud = "external"

// formerClouds contains the cloud providers that earlier kubelets contained. The values are the versions
// of Kubernetes that have removed them (KEP-2395 and the change logs of Kubernetes).
var formerClouds = map[string]string{
	"auto-detect": "1.10",
	"cloudstack":  "1.15", "ovirt": "1.15", "photon": "1.15",
	"openstack": "1.26",
	"aws":       "1.27",
	"azure":     "1.30", "vsphere": "1.30",
	"gce": "1.31",
}

// checkCloudProvider checks the value of --cloud-provider.
func (r *resolver) checkCloudProvider() {
	name := r.flags.CloudProvider
	if name == "" || name == externalCloud {
		return
	}
	if version := formerClouds[name]; version != "" {
		r.addProblem(manifest.Error, "--cloud-provider", "%q was removed from the kubelet in Kubernetes %s; use %s together with the cloud controller manager of your cloud", name, version, externalCloud)
		return
	}
	r.addProblem(manifest.Error, "--cloud-provider", "unknown value %q; must be %s", name, externalCloud)
}

// warnClusterFlags adds a warning for each flag that is set but has no effect without a cluster. It
// omits flags that have a v1beta1 field, because warnIgnoredSettings returns the warnings for these
// flags.
func (r *resolver) warnClusterFlags() {
	for _, flag := range []struct {
		name  string
		isSet bool
	}{{"--register-with-taints", len(r.flags.RegisterWithTaints) > 0}, {"--cloud-provider", r.flags.CloudProvider != ""}, {"--cert-dir", r.flags.CertDir != ""}} {
		if flag.isSet {
			r.addProblem(manifest.Warning, flag.name, "ignored without --kubeconfig")
		}
	}
}

// parseTaints returns the taints of --register-with-taints, or nil if there are none.
func (r *resolver) parseTaints() (taints []v1.Taint) {
	for _, text := range r.flags.RegisterWithTaints {
		t, err := parseTaint(strings.TrimSpace(text))
		if err == nil {
			err = checkTaint(t, taints)
		}
		if err != nil {
			r.addProblem(manifest.Error, "--register-with-taints", "%q: %v", text, err)
			continue
		}
		taints = append(taints, t)
	}
	return taints
}

// parseTaint parses KEY[=VALUE]:EFFECT.
func parseTaint(text string) (v1.Taint, error) {
	pair, effect, ok := strings.Cut(text, ":")
	if !ok {
		return v1.Taint{}, errors.New("the taint has no EFFECT part; the value must have the form KEY=VALUE:EFFECT")
	}
	key, value, _ := strings.Cut(pair, "=")
	return v1.Taint{Key: key, Value: value, Effect: v1.TaintEffect(effect)}, nil
}

var taintEffects = []v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute}

// checkTaint returns an error if the API server would reject t in a list that starts with earlier.
func checkTaint(t v1.Taint, earlier []v1.Taint) error {
	if reasons := append(validation.IsQualifiedName(t.Key), validation.IsValidLabelValue(t.Value)...); len(reasons) > 0 {
		return errors.New(strings.Join(reasons, "; "))
	}
	if !slices.Contains(taintEffects, t.Effect) {
		return fmt.Errorf("unknown effect %q; must be NoSchedule, PreferNoSchedule or NoExecute", t.Effect)
	}
	if slices.ContainsFunc(earlier, func(o v1.Taint) bool { return o.Key == t.Key && o.Effect == t.Effect }) {
		return errors.New("duplicate taint; each key and effect must be unique")
	}
	return nil
}

// checkTaints checks the taints of the configuration files.
func (c *checker) checkTaints() {
	taints := c.kubelet.RegisterWithTaints
	for i, t := range taints {
		if err := checkTaint(t, taints[:i]); err != nil {
			c.errorf(joinIndex("registerWithTaints", i), "%v", err)
		}
		if t.TimeAdded != nil {
			c.errorf(joinIndex("registerWithTaints", i)+".timeAdded", "cannot be configured, as in the kubelet; remove this field")
		}
	}
}
