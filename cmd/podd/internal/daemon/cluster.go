package daemon

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster"
	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/credential"
	"podd/cmd/podd/internal/cluster/nodesync"
	"podd/cmd/podd/internal/cluster/podwriter"
	"podd/cmd/podd/internal/cluster/review"
	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/daemon/endpoint"
	"podd/cmd/podd/internal/rootdir"
	"podd/manifest"
	"podd/reconcile/device"
	"podd/reconcile/event"
	"podd/reconcile/pull/provider"
	"podd/reconcile/volume/csi"
	"podd/server/metrics"
)

// newCluster returns the configured cluster, or nil if none is configured. hasPort is set if the
// kubelet API listens on a port. If hasPort is false, reviews and a serving certificate are not needed.
func newCluster(b processState, t telemetry, drivers *csi.Drivers, hasPort bool) *cluster.Cluster {
	c := b.cfg.Cluster
	if c.Kubeconfig == "" {
		return nil
	}
	return cluster.New(cluster.Options{
		NodeName: b.cfg.NodeName, OriginFile: filepath.Join(b.cfg.RootDir, "cluster.json"),
		Credential: credential.Config{
			Kubeconfig: c.Kubeconfig, BootstrapKubeconfig: c.BootstrapKubeconfig, CertDir: c.CertDir, RotateCertificates: c.RotateClientCert,
			OnRenewal: func(serving bool, previousNotBefore time.Time, err error) {
				t.metrics.RecordCertificateRequest(serving, previousNotBefore, time.Now(), err)
			},
		},
		RequestServingCert: hasPort && c.RequestServingCert, Reviews: newReviewOptions(b.cfg.API, hasPort),
		Client: apiserver.Options{
			Version: b.version, QPS: c.QPS, Burst: c.Burst, EventQPS: c.EventQPS, EventBurst: c.EventBurst, ContentType: c.ContentType,
			OnRequest: t.metrics.RecordClientRequest, Tracer: t.tracing.Tracer(),
		},
		Node: nodesync.Config{
			RegisterNode: c.RegisterNode, Taints: c.Taints, Unschedulable: c.Unschedulable, ProviderID: c.ProviderID,
			HasExternalCloud: c.HasExternalCloud, ProvidedIP: joinProvidedIPs(b.cfg.NodeIPs), EnableControllerAttachDetach: c.EnableControllerAttachDetach,
			NodeSyncedFile: rootdir.NodeSyncedPath(b.cfg.RootDir), UpdateFrequency: c.StatusUpdateFrequency, ReportFrequency: c.StatusReportFrequency,
			DisksInUse: rootdir.PodDirs(b.cfg.RootDir).DisksInUse, OnRegistrationStep: registrationFunc(t),
		},
		IsNewHost: isNewHost(b.cfg.RootDir), LeaseDuration: c.LeaseDuration, Events: t.events, CSI: drivers, Log: b.log,
		OnPodWarning: func(pod *v1.Pod, reason, message string) {
			s := event.Subject{Key: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, UID: pod.UID, At: time.Now()}
			t.record([]event.Event{s.NewWarningEvent(reason, "", message)})
		},
		OnStatusSynced: t.metrics.RecordStatusSync, OnConfigSource: configSourceFunc(b.configLink),
		OnSchedulable: func(schedulable bool) {
			reason := "NodeNotSchedulable"
			if schedulable {
				reason = "NodeSchedulable"
			}
			t.record([]event.Event{event.ForNodeCondition(b.cfg.NodeName, reason, time.Now())})
		},
		OnRejected: func(_ context.Context, rejections []podwriter.Rejection) {
			t.state.SetRejectedPods(rejectionProblems(rejections))
		},
		OnProblem: func(_ context.Context, problem string) { t.state.SetClusterProblem(problem) },
	})
}

// registrationFunc returns the function that records the steps of the registration of the node.
func registrationFunc(t telemetry) func(nodesync.RegistrationStep, time.Time) {
	return func(step nodesync.RegistrationStep, at time.Time) {
		switch step {
		case nodesync.Attempted:
			t.metrics.RecordRegistrationAttempt(at)
		case nodesync.Registered:
			t.metrics.RecordRegistration(at)
		case nodesync.Ready:
			t.metrics.RecordNodeReady(at)
		}
	}
}

// isNewHost reports whether, with this root directory, podd has not synced the Node and has recorded no
// devices, and no kubelet has run. Sockets and the lock file of device plugins do not count, because
// podd creates them before it has synced the Node.
func isNewHost(root string) bool {
	for _, file := range []string{
		rootdir.NodeSyncedPath(root), rootdir.DevicesPath(root),
		filepath.Join(root, "cpu_manager_state"), // every kubelet creates this file
		filepath.Join(rootdir.DevicePluginsPath(root), device.KubeletFile),
	} {
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// newReviewOptions returns the options of reviews, or nil if the kubelet API needs none.
func newReviewOptions(a config.KubeletAPI, hasPort bool) *review.Options {
	if !hasPort || !a.EnableTokenReview && !a.EnableAccessReview {
		return nil
	}
	return &review.Options{TokenTTL: a.TokenTTL, AllowedTTL: a.AllowedTTL, DeniedTTL: a.DeniedTTL}
}

// podCIDR returns a function that returns the address range of the Node in c. If the Node has none or
// c is nil, the function returns configuredCIDR.
func podCIDR(configuredCIDR string, c *cluster.Cluster) func() string {
	return func() string {
		if c == nil {
			return configuredCIDR
		}
		return cmp.Or(c.PodCIDR(), configuredCIDR)
	}
}

// serviceAccounts returns the service accounts of the cluster for credential providers, or nil without
// a cluster.
func serviceAccounts(c *cluster.Cluster) provider.ServiceAccounts {
	if c == nil {
		return nil
	}
	return c.ServiceAccounts()
}

// newEndpointCluster returns the functions of the cluster that the endpoints use, or nil without a
// cluster. hasPort is set if the kubelet API listens on a port.
func newEndpointCluster(cfg *config.Config, c *cluster.Cluster, hasPort bool) *endpoint.Cluster {
	if c == nil {
		return nil
	}
	e := &endpoint.Cluster{MirrorCount: c.MirrorCount, MirrorUID: c.MirrorUID, ClientCertExpiry: func() (time.Time, error) {
		expiry, ok := c.ClientCertExpiry()
		if !ok {
			return expiry, errors.New("the node has no client certificate that podd renews")
		}
		return expiry, nil
	}, CountPodCertificates: func() map[metrics.PodCertificateState]int {
		counts := map[metrics.PodCertificateState]int{}
		for s, n := range c.CountPodCertificates() {
			counts[metrics.PodCertificateState(s)] = n
		}
		return counts
	}}
	if reviews := c.Reviews(); reviews != nil {
		if cfg.API.EnableTokenReview {
			e.ReviewToken = reviews.Authenticate
		}
		if cfg.API.EnableAccessReview {
			e.Authorizer = reviews
		}
	}
	if hasPort && cfg.Cluster.RequestServingCert {
		e.ServingCertificate = c.ServingCertificate
	}
	return e
}

// rejectionProblems returns the problems of pods that the API server has rejected.
func rejectionProblems(rejections []podwriter.Rejection) []manifest.Problem {
	var problems []manifest.Problem
	for _, r := range rejections {
		problems = append(problems, manifest.Problem{
			Severity: manifest.Warning, Path: r.Path, Position: manifest.Position{Line: uint32(r.Line)}, Pod: r.Pod,
			Message: "pod " + r.Pod.String() + ": " + r.Reason,
		})
	}
	return problems
}

// joinProvidedIPs returns the node addresses that the user has configured, separated by commas, or
// "" if podd detects the addresses.
func joinProvidedIPs(ips []netip.Addr) string {
	var addresses []string
	for _, ip := range ips {
		if !ip.IsUnspecified() {
			addresses = append(addresses, ip.String())
		}
	}
	return strings.Join(slices.Compact(addresses), ",")
}
