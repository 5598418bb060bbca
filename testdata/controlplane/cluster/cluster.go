// Package cluster runs a control plane of Kubernetes for tests. It runs the real programs as
// processes that listen on loopback. Each cluster has its own certificates and its own directory.
//
//	test ──▶ Client ──────┐
//	node agent ──▶ WriteKubeconfig("system:node:n", "system:nodes") ──▶ kube-apiserver ──▶ etcd
//	           StartControllers: kube-controller-manager, kube-scheduler ──▲
//	           StartMetricsServer: metrics-server, to which the API server forwards requests
//
// The API server uses the Node and RBAC authorizers, the default admission plugins and
// NodeRestriction, and accepts bootstrap tokens. The requests of node agents are logged in the
// file audit.log. The API server connects to an agent as KubeletUser.
//
// Controllers and the scheduler run only between StartControllers and StopControllers. At other
// times the caller must set spec.nodeName of pods and create the objects that controllers create;
// see CreateNamespace for service accounts and CreateBoundVolume for claims. At these times, a node
// whose agent has stopped is not tainted and keeps its pods.
//
// A node agent under test needs only a kubeconfig for the user that NodeUser returns.
package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Options configure Start. Dir and Programs are required.
type Options struct {
	Dir          string // for data, certificates and logs; created if necessary
	Programs     string // the directory of the programs that Build has built
	FeatureGates string // the value of --feature-gates of the API server; "" means the defaults
}

// A Cluster is a control plane that runs until Stop is called.
type Cluster struct {
	URL string // URL of the API server
	// Client is a client with the permissions of a cluster administrator.
	Client kubernetes.Interface

	dir, programs string
	featureGates  string // Options.FeatureGates
	authority     *authority
	processes     []*process // all running processes
	etcdURL       string     // URL of etcd for clients
	etcdPeerURL   string     // URL of etcd for other members, of which there are none
	etcd          *process
	serverCommand []string     // command line of the API server
	server        *process     // the API server; nil before the first start
	controllers   []*process   // started by StartControllers
	admin         *http.Client // for health checks
}

// loopback is the address on which all programs listen.
var loopback = net.IPv4(127, 0, 0, 1)

// readyTimeout is the maximum time that the start of a program takes on a busy host.
const readyTimeout = 3 * time.Minute

// Start starts a control plane. It returns when the control plane is ready and the namespace
// default exists.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	c := &Cluster{dir: o.Dir, programs: o.Programs, featureGates: o.FeatureGates}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a control plane in %s: %w", o.Dir, err), c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	if c.authority, err = newAuthority(c.dir); err != nil {
		return err
	}
	c.etcdURL, c.etcdPeerURL = "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	if c.admin, err = c.authority.client(administrator, "system:masters"); err != nil {
		return err
	}
	if err := c.setServerCommand(ports[2]); err != nil {
		return err
	}
	if err := c.Serve(ctx); err != nil {
		return err
	}
	config, err := c.Config(administrator, "system:masters")
	if err != nil {
		return err
	}
	config.QPS, config.Burst = -1, -1
	if c.Client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	return c.CreateNamespace(ctx, "default")
}

// startEtcd starts etcd.
func (c *Cluster) startEtcd(ctx context.Context) (err error) {
	// The data does not have to survive a power cut.
	c.etcd, err = c.startProgram(filepath.Join(c.programs, "etcd"), "--data-dir", c.etcdDir(), "--unsafe-no-fsync", "--log-level", "warn",
		"--listen-client-urls", c.etcdURL, "--advertise-client-urls", c.etcdURL,
		"--listen-peer-urls", c.etcdPeerURL, "--initial-advertise-peer-urls", c.etcdPeerURL, "--initial-cluster", "default="+c.etcdPeerURL)
	if err != nil {
		return err
	}
	return c.etcd.waitUntilReady(ctx, http.DefaultClient, c.etcdURL+"/health")
}

func (c *Cluster) etcdDir() string { return filepath.Join(c.dir, "etcd") }

const administrator = "administrator"

// KubeletUser is the user as which the API server connects to node agents.
const KubeletUser = "kube-apiserver-kubelet-client"

// frontProxy is the user as which the API server connects to aggregated API servers.
const frontProxy = "front-proxy-client"

// setServerCommand sets the command line of the API server. The API server advertises 192.0.2.1,
// because the endpoints of a Service must not be loopback addresses. No program connects to that
// address.
func (c *Cluster) setServerCommand(port string) error {
	server, err := c.authority.issue("kube-apiserver", nil, loopback)
	if err != nil {
		return err
	}
	kubelet, err := c.authority.issue(KubeletUser, []string{"system:masters"})
	if err != nil {
		return err
	}
	front, err := c.authority.issue(frontProxy, nil)
	if err != nil {
		return err
	}
	audit := filepath.Join(c.dir, "audit.yaml")
	if err := os.WriteFile(audit, []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	c.URL = "https://127.0.0.1:" + port
	c.serverCommand = []string{filepath.Join(c.programs, "kube-apiserver"), "--etcd-servers", c.etcdURL, "--bind-address", "127.0.0.1", "--secure-port", port, "--advertise-address", "192.0.2.1",
		"--cert-dir", c.dir, "--tls-cert-file", server.cert, "--tls-private-key-file", server.key, "--client-ca-file", c.authority.cert,
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", c.authority.key, "--service-account-signing-key-file", c.authority.key,
		"--authorization-mode", "Node,RBAC", "--enable-admission-plugins", "NodeRestriction", "--service-cluster-ip-range", "10.96.0.0/16",
		"--allow-privileged", "--enable-bootstrap-token-auth", "--kubelet-client-certificate", kubelet.cert, "--kubelet-client-key", kubelet.key,
		"--kubelet-preferred-address-types", "InternalIP,ExternalIP,Hostname",
		"--requestheader-client-ca-file", c.authority.cert, "--requestheader-allowed-names", frontProxy,
		"--requestheader-username-headers", "X-Remote-User", "--requestheader-group-headers", "X-Remote-Group", "--requestheader-extra-headers-prefix", "X-Remote-Extra-",
		"--proxy-client-cert-file", front.cert, "--proxy-client-key-file", front.key,
		"--feature-gates", c.featureGates, "--audit-policy-file", audit, "--audit-log-path", filepath.Join(c.dir, "audit.log")}
	return nil
}

// auditPolicy logs the requests of node agents to audit.log, one line of JSON per request.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, userGroups: ["system:nodes"]}
- {level: None}
`

// Kill kills the API server. Its data remains in etcd.
func (c *Cluster) Kill() error { return c.endProcesses((*process).kill, c.server) }

// Serve starts the API server and returns when it is ready. Serve can be called again after
// Kill.
func (c *Cluster) Serve(ctx context.Context) (err error) {
	if c.server, err = c.startProgram(c.serverCommand[0], c.serverCommand[1:]...); err != nil {
		return err
	}
	return c.server.waitUntilReady(ctx, c.admin, c.URL+"/readyz")
}

// LoseData restarts the API server with an empty etcd. The URL and the certificates stay the same.
func (c *Cluster) LoseData(ctx context.Context) error {
	if err := errors.Join(c.Kill(), c.endProcesses((*process).kill, c.etcd), os.RemoveAll(c.etcdDir())); err != nil {
		return err
	}
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	if err := c.Serve(ctx); err != nil {
		return err
	}
	var namespaceErr error // a request may still use a connection to the previous API server
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		namespaceErr = c.CreateNamespace(ctx, "default")
		return namespaceErr == nil, nil
	})
	return errors.Join(err, namespaceErr)
}

// Config returns the configuration of a client for a user with groups.
func (c *Cluster) Config(user string, groups ...string) (*rest.Config, error) {
	id, err := c.authority.issue(user, groups)
	if err != nil {
		return nil, err
	}
	return &rest.Config{Host: c.URL, TLSClientConfig: rest.TLSClientConfig{CAFile: c.authority.cert, CertFile: id.cert, KeyFile: id.key}}, nil
}

// Stop stops all processes. The directory remains.
func (c *Cluster) Stop() (err error) {
	for i := len(c.processes) - 1; i >= 0; i-- {
		err = errors.Join(err, c.processes[i].stop())
	}
	c.processes, c.controllers = nil, nil
	return err
}

func freePorts(n int) (ports []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // all are closed at the end, so that no port is returned twice
		_, port, _ := net.SplitHostPort(l.Addr().String())
		ports = append(ports, port)
	}
	return ports, nil
}

func (a *authority) client(user string, groups ...string) (*http.Client, error) {
	id, err := a.issue(user, groups)
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(id.cert, id.key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots}}}, nil
}
