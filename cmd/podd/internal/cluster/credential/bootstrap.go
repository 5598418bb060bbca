package credential

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/runtime/atomicfile"
)

// needsBootstrap reports whether podd must request a client certificate with the bootstrap
// kubeconfig. It must do so if the kubeconfig does not exist or is invalid, or if the client
// certificate has expired. If a kubeconfig or certificate file exists but cannot be read,
// needsBootstrap returns false, because the file may contain a valid certificate.
func (m *Manager) needsBootstrap() bool {
	if m.BootstrapKubeconfig == "" {
		return false
	}
	config, err := readKubeconfig(m.Kubeconfig)
	if err != nil {
		return !isUnreadable(err)
	}
	pair, err := loadClientCert(config)
	if err != nil {
		return !isUnreadable(err)
	}
	if pair == nil {
		return config.BearerToken == "" && config.BearerTokenFile == "" && config.ExecProvider == nil && config.AuthProvider == nil && config.Username == ""
	}
	if m.RotateCertificates {
		stored, err := m.certFiles(clientPurpose).load()
		if stored != nil && stored.Leaf.NotAfter.After(pair.Leaf.NotAfter) {
			pair = stored
		}
		if isUnreadable(err) {
			return false
		}
	}
	return time.Now().After(pair.Leaf.NotAfter)
}

// isUnreadable reports whether err is the error of a file that exists but cannot be read.
func isUnreadable(err error) bool {
	var file *fs.PathError
	return errors.As(err, &file) && !errors.Is(err, fs.ErrNotExist)
}

// Bootstrap does nothing unless needsBootstrap returns true. It then requests a client certificate
// with the credential of the bootstrap kubeconfig, waits for the certificate and writes the
// kubeconfig. If the kubeconfig or the bootstrap kubeconfig changes first, Bootstrap returns nil
// without a certificate, and the caller must call Bootstrap again. If ctx is done first, it also
// returns nil. While it waits, it calls report with the results of the requests.
func (m *Manager) Bootstrap(ctx context.Context, report ReportFunc) error {
	if !m.needsBootstrap() {
		return nil
	}
	fail := func(operation string, err error) error {
		return KubeconfigError{fmt.Errorf("%s --bootstrap-kubeconfig %s: %w", operation, m.BootstrapKubeconfig, err)}
	}
	file, err := loadKubeconfig(m.BootstrapKubeconfig)
	if err != nil {
		return fail("reading", err)
	}
	config, err := restConfig(file)
	if err != nil {
		return fail("reading", err)
	}
	c, err := apiserver.New(config, &m.Client, nil)
	if err != nil {
		return fail("using", err)
	}
	defer c.CloseConnections()
	kubeconfigVersion, bootstrapVersion := statFile(m.Kubeconfig), statFile(m.BootstrapKubeconfig)
	clientIdentity := &Identity{}
	requestCtx, stop := cancelUnless(ctx, func() bool {
		return clientIdentity.ValidCertificate() == nil && statFile(m.Kubeconfig) == kubeconfigVersion && statFile(m.BootstrapKubeconfig) == bootstrapVersion
	})
	defer stop()
	requestCtx, cancel := context.WithCancel(requestCtx)
	defer cancel()
	r := &Renewer{manager: m, c: c, report: report, purpose: clientPurpose, identity: clientIdentity, template: m.clientTemplate, onRenewed: func() {
		if clientIdentity.ValidCertificate() != nil { // nil if the certificate has expired according to the clock of this host
			cancel()
		}
	}}
	r.Run(requestCtx)
	pair := clientIdentity.ValidCertificate()
	if pair == nil {
		return nil // the kubeconfig or the bootstrap kubeconfig has changed, or ctx is done
	}
	if err := m.writeKubeconfig(file); err != nil {
		return FileError{fmt.Errorf("writing --kubeconfig %s: %w", m.Kubeconfig, err)}
	}
	m.Log.Info("client certificate issued and kubeconfig written", "kubeconfig", m.Kubeconfig, "expires", pair.Leaf.NotAfter)
	return nil
}

// writeKubeconfig writes a kubeconfig with the cluster of the bootstrap kubeconfig and the stored
// certificate. The cluster, the user and the context in the file have the names that the kubelet
// uses, because kubeadm modifies these entries later.
func (m *Manager) writeKubeconfig(bootstrap *api.Config) error {
	const cluster, user, context = "default-cluster", "default-auth", "default-context"
	k := api.NewConfig()
	bootstrapContext := bootstrap.Contexts[bootstrap.CurrentContext]
	if bootstrapContext == nil || bootstrap.Clusters[bootstrapContext.Cluster] == nil {
		return errors.New("current-context does not name a context with a cluster")
	}
	k.Clusters[cluster] = bootstrap.Clusters[bootstrapContext.Cluster].DeepCopy()
	k.Clusters[cluster].LocationOfOrigin = ""
	certPath := m.certFiles(clientPurpose).currentPath()
	k.AuthInfos[user] = &api.AuthInfo{ClientCertificate: certPath, ClientKey: certPath}
	k.Contexts[context] = &api.Context{Cluster: cluster, AuthInfo: user, Namespace: "default"}
	k.CurrentContext = context
	text, err := clientcmd.Write(*k)
	if err != nil {
		return err
	}
	return atomicfile.Write(m.Kubeconfig, text)
}

// restConfig returns the client configuration of the current context in a kubeconfig.
func restConfig(file *api.Config) (*rest.Config, error) {
	return clientcmd.NewNonInteractiveClientConfig(*file, "", &clientcmd.ConfigOverrides{}, nil).ClientConfig()
}
