// Package cluster is a control plane of Kubernetes 1.34.4 for tests: the programs
// themselves, as processes on loopback with certificates of their own, and below
// one directory.
//
//	test ──▶ Client ──────┐
//	node agent ──▶ Kubeconfig("system:node:n", "system:nodes") ──▶ kube-apiserver ──▶ etcd
//	                      Control: kube-controller-manager, kube-scheduler ──▲
//	                      Metrics: metrics-server, which the API server asks as well
//
// Node and RBAC authorize, the default admission plugins and NodeRestriction
// admit, bootstrap tokens are known, and what agents of nodes ask for is in the file
// audit.log. The API server reaches an agent as KubeletUser.
//
// Controllers and the scheduler run between Control and Release only. Without them
// whoever makes a pod gives it its spec.nodeName, and the objects that a controller
// would make, as Namespace and Bind do for service accounts and claims; and no node
// is tainted, or loses its pods, because its agent is gone.
//
// A node agent under test gets a kubeconfig of the user that NodeUser names and
// needs nothing else of this package.
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

// Options say where a cluster is; both are required.
type Options struct {
	Dir      string // for its data, certificates and logs; made when missing
	Programs string // has those of Build
}

// Cluster is one that runs until Stop.
type Cluster struct {
	URL string // of the API server
	// Client is a cluster administrator's.
	Client kubernetes.Interface

	dir, programs string
	authority     *authority
	processes     []*process // all that run
	store, peers  string     // URLs of etcd
	etcd          *process
	command       []string     // of the API server
	server        *process     // it, while it runs
	controllers   []*process   // those of Control
	admin         *http.Client // asks for health
}

// loopback is where all of it listens.
var loopback = net.IPv4(127, 0, 0, 1)

// readyWithin is how long a busy machine may take to start one program.
const readyWithin = 3 * time.Minute

// Start starts a control plane and returns when it is ready and has the
// namespace default.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	c := &Cluster{dir: o.Dir, programs: o.Programs}
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
	c.store, c.peers = "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	if err := c.remember(ctx); err != nil {
		return err
	}
	if c.admin, err = c.authority.client(administrator, "system:masters"); err != nil {
		return err
	}
	if err := c.compose(ports[2]); err != nil {
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
	return c.Namespace(ctx, "default")
}

// remember starts etcd.
func (c *Cluster) remember(ctx context.Context) (err error) {
	// Whatever power cut this data meets, nobody needs it afterwards.
	c.etcd, err = c.run(filepath.Join(c.programs, "etcd"), "--data-dir", c.data(), "--unsafe-no-fsync", "--log-level", "warn",
		"--listen-client-urls", c.store, "--advertise-client-urls", c.store,
		"--listen-peer-urls", c.peers, "--initial-advertise-peer-urls", c.peers, "--initial-cluster", "default="+c.peers)
	if err != nil {
		return err
	}
	return c.etcd.ready(ctx, http.DefaultClient, c.store+"/health")
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "etcd") }

const administrator = "administrator"

// KubeletUser is who the API server is to the agents of nodes.
const KubeletUser = "kube-apiserver-kubelet-client"

// frontProxy is who the API server is to those that it asks for others.
const frontProxy = "front-proxy-client"

// compose makes the command line of the API server. It names itself 192.0.2.1, for
// a Service may have no address of loopback; nobody asks there.
func (c *Cluster) compose(port string) error {
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
	c.command = []string{filepath.Join(c.programs, "kube-apiserver"), "--etcd-servers", c.store, "--bind-address", "127.0.0.1", "--secure-port", port, "--advertise-address", "192.0.2.1",
		"--cert-dir", c.dir, "--tls-cert-file", server.cert, "--tls-private-key-file", server.key, "--client-ca-file", c.authority.cert,
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", c.authority.key, "--service-account-signing-key-file", c.authority.key,
		"--authorization-mode", "Node,RBAC", "--enable-admission-plugins", "NodeRestriction", "--service-cluster-ip-range", "10.96.0.0/16",
		"--allow-privileged", "--enable-bootstrap-token-auth", "--kubelet-client-certificate", kubelet.cert, "--kubelet-client-key", kubelet.key,
		"--kubelet-preferred-address-types", "InternalIP,ExternalIP,Hostname",
		"--requestheader-client-ca-file", c.authority.cert, "--requestheader-allowed-names", frontProxy,
		"--requestheader-username-headers", "X-Remote-User", "--requestheader-group-headers", "X-Remote-Group", "--requestheader-extra-headers-prefix", "X-Remote-Extra-",
		"--proxy-client-cert-file", front.cert, "--proxy-client-key-file", front.key,
		"--audit-policy-file", audit, "--audit-log-path", filepath.Join(c.dir, "audit.log")}
	return nil
}

// auditPolicy has what the agents of nodes ask for written to audit.log, a line of
// JSON for each request.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, userGroups: ["system:nodes"]}
- {level: None}
`

// Kill ends the API server as a power cut does; what it has stays in etcd.
func (c *Cluster) Kill() error { return c.end((*process).kill, c.server) }

// Serve starts the API server, again after Kill where it was, and returns when it is
// ready.
func (c *Cluster) Serve(ctx context.Context) (err error) {
	if c.server, err = c.run(c.command[0], c.command[1:]...); err != nil {
		return err
	}
	return c.server.ready(ctx, c.admin, c.URL+"/readyz")
}

// Lose has the API server come back without anything that it had, at the same URL and
// with the same certificates.
func (c *Cluster) Lose(ctx context.Context) error {
	if err := errors.Join(c.Kill(), c.end((*process).kill, c.etcd), os.RemoveAll(c.data())); err != nil {
		return err
	}
	if err := c.remember(ctx); err != nil {
		return err
	}
	if err := c.Serve(ctx); err != nil {
		return err
	}
	var failed error // a connection to the one before may still be tried
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, readyWithin, true, func(ctx context.Context) (bool, error) {
		failed = c.Namespace(ctx, "default")
		return failed == nil, nil
	})
	return errors.Join(err, failed)
}

// Config is that of a client who is the user of the groups.
func (c *Cluster) Config(user string, groups ...string) (*rest.Config, error) {
	id, err := c.authority.issue(user, groups)
	if err != nil {
		return nil, err
	}
	return &rest.Config{Host: c.URL, TLSClientConfig: rest.TLSClientConfig{CAFile: c.authority.cert, CertFile: id.cert, KeyFile: id.key}}, nil
}

// Stop ends what runs. The directory stays.
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
		defer l.Close() // together, or one comes twice
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
