package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strconv"

	v1 "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	aggregator "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// metricsServer is the name of metrics-server's user, and of the Service to which the API server
// forwards requests for metrics.k8s.io.
const metricsServer = "metrics-server"

// StartMetricsServer starts a metrics-server, from which kubectl top gets its values, and returns
// when the server is alive. The server returns values after it has queried the node agents twice,
// with an interval of ten seconds.
func (c *Cluster) StartMetricsServer(ctx context.Context, program string) error {
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	if err := c.createMetricsObjects(ctx, ports[0]); err != nil {
		return fmt.Errorf("registering %s at the API server: %w", metricsServer, err)
	}
	server, err := c.authority.issue(metricsServer+"-serving", nil, loopback)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(c.dir, metricsServer+".kubeconfig")
	if err := c.WriteKubeconfig(kubeconfig, metricsServer); err != nil {
		return err
	}
	p, err := c.startProgram(program,
		"--kubeconfig", kubeconfig, "--authentication-kubeconfig", kubeconfig, "--authorization-kubeconfig", kubeconfig,
		"--bind-address", loopback.String(), "--secure-port", ports[0], "--tls-cert-file", server.cert, "--tls-private-key-file", server.key,
		"--kubelet-insecure-tls", "--kubelet-use-node-status-port", "--kubelet-preferred-address-types", "InternalIP,ExternalIP,Hostname",
		"--metric-resolution", "10s", "--kubelet-request-timeout", "9s")
	if err != nil {
		return err
	}
	return p.waitUntilReady(ctx, c.admin, "https://"+net.JoinHostPort(loopback.String(), ports[0])+"/livez")
}

// createMetricsObjects creates the objects of an installation of metrics-server: its permissions,
// and the Service to which the API server forwards requests. The external name of the Service is an
// address, because metrics-server does not run in a pod.
func (c *Cluster) createMetricsObjects(ctx context.Context, port string) error {
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		return err
	}
	const system = "kube-system"
	named := metav1.ObjectMeta{Name: metricsServer}
	roles := c.Client.RbacV1()
	if _, err := roles.ClusterRoles().Create(ctx, &rbac.ClusterRole{ObjectMeta: named, Rules: []rbac.PolicyRule{
		{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"nodes/metrics"}},
		{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"pods", "nodes"}},
	}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	subjects := []rbac.Subject{{APIGroup: rbac.GroupName, Kind: rbac.UserKind, Name: metricsServer}}
	for name, role := range map[string]string{metricsServer: metricsServer, metricsServer + ":system:auth-delegator": "system:auth-delegator"} {
		if _, err := roles.ClusterRoleBindings().Create(ctx, &rbac.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects, RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: role},
		}, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if _, err := roles.RoleBindings(system).Create(ctx, &rbac.RoleBinding{
		ObjectMeta: named, Subjects: subjects, RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "Role", Name: "extension-apiserver-authentication-reader"},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := c.Client.CoreV1().Services(system).Create(ctx, &v1.Service{
		ObjectMeta: named, Spec: v1.ServiceSpec{Type: v1.ServiceTypeExternalName, ExternalName: loopback.String()},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	text, err := json.Marshal(&aggregator.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1beta1.metrics.k8s.io"},
		Spec: aggregator.APIServiceSpec{
			Service: &aggregator.ServiceReference{Namespace: system, Name: metricsServer, Port: new(int32(number))},
			Group:   "metrics.k8s.io", Version: "v1beta1", InsecureSkipTLSVerify: true, GroupPriorityMinimum: 100, VersionPriority: 100,
		},
	})
	if err != nil {
		return err
	}
	return c.Client.Discovery().RESTClient().Post().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices").
		SetHeader("Content-Type", "application/json").Body(text).Do(ctx).Error()
}
