package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	rbac "k8s.io/api/rbac/v1"

	"podd/cmd/podd/internal/config"
	"podd/runtime"
	"podd/runtime/cri"
	"podd/server"
	"podd/server/auth"
	"podd/server/kubelet"
	"podd/server/pki"
	"podd/server/reload"
)

// kubeletConns is how many clients of the kubelet's API there may be at a time:
// followers of logs, watchers and shells hold theirs.
const kubeletConns = 2048

// maxCommandLine bounds a request's line, which has the words of a command.
const maxCommandLine = 256 << 10

// kubeletAPI is what the kubelet serves, for whoever is let in.
func (d *podd) kubeletAPI(stats http.Handler) http.Handler {
	a := d.cfg.API
	k := &kubelet.API{
		State: d.view.latest, Logs: d.logReader(), Runtime: inContainers{d.client}, Health: d.health(), Stats: stats,
		Config: d.cfg.Shown.Kubelet, Started: d.pulse.began,
		Checkpoints: filepath.Join(d.cfg.RootDir, "checkpoints"),
		Debugging:   a.Debugging, Profiling: a.Profiling,
	}
	for _, name := range slices.Sorted(maps.Keys(d.cfg.Shown.Flags)) {
		k.Flags = append(k.Flags, kubelet.Flag{Name: name, Value: d.cfg.Shown.Flags[name]})
	}
	if a.SystemLogs {
		k.SystemLogs = systemLogs{"/var/log"}
	}
	if a.DebugFlags {
		k.SetVerbosity = d.level.set
	}
	return k.Handler()
}

// openKubelet opens the port of the kubelet's API.
func (d *podd) openKubelet(ctx context.Context, guard *auth.Guard) (face, error) {
	conf, err := d.kubeletTLS()
	if err != nil {
		return nil, err
	}
	ln, err := server.Listen(ctx, "--port", d.cfg.API.Listen)
	if err != nil {
		return nil, err
	}
	s := &server.Server{
		Handler: d.metrics.Requests("readwrite", guard), Guarded: true, Streams: true, MaxConns: kubeletConns, Log: d.log,
		MaxHeader: maxCommandLine, TLS: conf,
	}
	return func(ctx context.Context) error { return s.Serve(ctx, ln) }, nil
}

// kubeletTLS is what that port is served with, as configured.
func (d *podd) kubeletTLS() (*tls.Config, error) {
	var err error
	if d.show, err = d.certificate(); err != nil {
		return nil, err
	}
	return &tls.Config{
		// Without a list of authorities clients show what they have.
		GetCertificate: d.show, ClientAuth: tls.RequestClientCert,
		MinVersion: d.cfg.API.MinTLS, CipherSuites: d.cfg.API.Ciphers,
	}, nil
}

// newGuard knows the clients of podd's own authority and those configured.
func newGuard(a config.KubeletAPI, own *pki.Authority, node string, log *slog.Logger) (*auth.Guard, error) {
	who := &auth.Authenticator{Anonymous: a.Anonymous}
	g := &auth.Guard{Authenticator: who, Authorizer: auth.Policy{}, Node: node}
	roots, err := own.Trust(nil)
	if err != nil {
		return nil, err
	}
	who.CAs = func() *x509.CertPool { return roots }
	if a.ClientCAFile != "" {
		f, err := reload.Open(log, reload.Single(own.Trust), a.ClientCAFile)
		if err != nil {
			return nil, fmt.Errorf("--client-ca-file: %w", err)
		}
		who.CAs = f.Get
	}
	if a.TokenFile != "" {
		f, err := reload.Open(log, reload.Single(auth.ParseTokens), a.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-auth-file: %w", err)
		}
		who.Tokens = f.Get
	}
	switch {
	case a.AlwaysAllow:
		g.Authorizer = auth.All{}
	case a.PolicyFile != "":
		f, err := reload.Open(log, reload.Single(auth.ParsePolicy), a.PolicyFile)
		if err != nil {
			return nil, fmt.Errorf("--authorization-policy-file: %w", err)
		}
		g.Authorizer = newest{f}
	}
	return g, nil
}

// newest is the policy that the file has now.
type newest struct{ file *reload.File[auth.Policy] }

// Allows implements auth.Authorizer.
func (n newest) Allows(ctx context.Context, u auth.User, a auth.Attributes) (bool, error) {
	return n.file.Get().Allows(ctx, u, a)
}

// Rules implements auth.Authorizer.
func (n newest) Rules(u auth.User, namespace string) ([]rbac.PolicyRule, error) {
	return n.file.Get().Rules(u, namespace)
}

// certificate is what podd shows to clients: the cluster's, where one is to give it
// and has, or else that of the node.
func (d *podd) certificate() (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	ofNode, err := d.nodeCertificate()
	if err != nil || !d.cfg.Cluster.ServingBootstrap {
		return ofNode, err
	}
	ofCluster := d.cluster.Serving()
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if c := ofCluster(); c != nil {
			return c, nil
		}
		return ofNode(hello)
	}, nil
}

// nodeCertificate is that which is configured, as it is on disk now, or podd's own.
func (d *podd) nodeCertificate() (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	a := d.cfg.API
	if a.CertFile == "" {
		own := d.pki.Serving(servingNames(d.cfg.NodeName, d.cfg.NodeIPs))
		return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own.Get() }, nil
	}
	f, err := reload.Open(d.log, func(files [][]byte) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair(files[0], files[1])
		return &pair, err
	}, a.CertFile, a.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert-file: %w", err)
	}
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.Get(), nil }, nil
}

// inContainers has the runtime serve streams.
type inContainers struct{ client *cri.Client }

var _ kubelet.Runtime = inContainers{}

// Exec implements kubelet.Runtime.
func (c inContainers) Exec(ctx context.Context, id string, command []string, s kubelet.Streams) (string, error) {
	return c.client.Exec(ctx, id, command, runtime.Streams(s))
}

// Attach implements kubelet.Runtime.
func (c inContainers) Attach(ctx context.Context, id string, s kubelet.Streams) (string, error) {
	return c.client.Attach(ctx, id, runtime.Streams(s))
}

// PortForward implements kubelet.Runtime.
func (c inContainers) PortForward(ctx context.Context, sandbox string, ports []int32) (string, error) {
	return c.client.PortForward(ctx, sandbox, ports)
}

// maxOutput is what a command that is run to its end may write to a stream.
const maxOutput = 16 << 20

// Run implements kubelet.Runtime.
func (c inContainers) Run(ctx context.Context, id string, command []string) ([]byte, int32, error) {
	r, err := c.client.ExecSync(ctx, id, command, 0, maxOutput)
	return slices.Concat(r.Stdout, r.Stderr), r.ExitCode, err
}

// Checkpoint implements kubelet.Runtime.
func (c inContainers) Checkpoint(ctx context.Context, id, file string, timeout time.Duration) error {
	err := c.client.Checkpoint(ctx, id, file, timeout)
	if errors.Is(err, runtime.ErrUnimplemented) {
		return server.NotFound("the runtime makes no checkpoints")
	}
	return err
}

// systemLogs are the files and directories below one, whatever links, FIFOs and
// devices a container planted.
type systemLogs struct{ dir string }

// Open implements fs.FS.
func (l systemLogs) Open(name string) (fs.File, error) {
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() // what it opened stays open
	// Opening a device has effects: look first, and again at what was opened.
	if info, err := root.Stat(name); err != nil || !isFile(info) {
		return nil, fs.ErrNotExist
	}
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !isFile(info) {
		f.Close()
		return nil, fs.ErrNotExist
	}
	return f, nil
}

func isFile(info fs.FileInfo) bool { return info.Mode().IsRegular() || info.IsDir() }
