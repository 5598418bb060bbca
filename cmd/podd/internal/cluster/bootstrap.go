package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"podd/runtime/atomicfile"
)

// needsBootstrap reports whether podd must request a new client certificate: the
// kubeconfig is missing or invalid, or its certificate has expired. A file that cannot be
// read at the moment may be valid.
func (o *Options) needsBootstrap() bool {
	if o.BootstrapKubeconfig == "" {
		return false
	}
	config, err := read(o.Kubeconfig)
	if err != nil {
		return !isUnreadable(err)
	}
	pair, err := loadPair(config)
	if err != nil {
		return !isUnreadable(err)
	}
	if pair == nil {
		return config.BearerToken == "" && config.BearerTokenFile == "" && config.ExecProvider == nil && config.AuthProvider == nil && config.Username == ""
	}
	if o.RotateCertificates {
		kept, err := o.pairs(clientPurpose).load()
		if kept != nil && kept.Leaf.NotAfter.After(pair.Leaf.NotAfter) {
			pair = kept
		}
		if isUnreadable(err) {
			return false
		}
	}
	return time.Now().After(pair.Leaf.NotAfter)
}

// isUnreadable reports whether err is that of a file that exists but cannot be read.
func isUnreadable(err error) bool {
	var file *fs.PathError
	return errors.As(err, &file) && !errors.Is(err, fs.ErrNotExist)
}

// bootstrap requests a client certificate with the credential of the bootstrap
// kubeconfig, if needed, and writes the kubeconfig. It waits for the approval, or until
// one of the two files changes.
func (o *Options) bootstrap(ctx context.Context, s *problemReporter) error {
	if !o.needsBootstrap() {
		return nil
	}
	failed := func(doing string, err error) error {
		return configError{fmt.Errorf("%s --bootstrap-kubeconfig %s: %w", doing, o.BootstrapKubeconfig, err)}
	}
	file, err := load(o.BootstrapKubeconfig)
	if err != nil {
		return failed("reading", err)
	}
	config, err := restConfig(file)
	if err != nil {
		return failed("reading", err)
	}
	c := newClient(config, o)
	defer c.close()
	if err := c.open(config, o); err != nil {
		return failed("using", err)
	}
	seen, by := stamp(o.Kubeconfig), stamp(o.BootstrapKubeconfig)
	has := &identity{}
	asking, stop := cancelUnless(ctx, func() bool {
		return has.valid() == nil && stamp(o.Kubeconfig) == seen && stamp(o.BootstrapKubeconfig) == by
	})
	defer stop()
	asking, done := context.WithCancel(asking)
	defer done()
	r := &renewer{o: o, c: c, problems: s, purpose: clientPurpose, identity: has, template: o.clientTemplate, onRenewed: func() {
		if has.valid() != nil { // valid by the clock of this host
			done()
		}
	}}
	r.run(asking)
	pair := has.valid()
	if pair == nil {
		return nil // a file has changed
	}
	if err := o.writeKubeconfig(file); err != nil {
		return fileError{fmt.Errorf("writing --kubeconfig %s: %w", o.Kubeconfig, err)}
	}
	o.Log.Info("the cluster gave podd a certificate", "kubeconfig", o.Kubeconfig, "until", pair.Leaf.NotAfter)
	return nil
}

// writeKubeconfig writes a kubeconfig for the cluster of another one with the stored
// certificate. It has the kubelet's names, because kubeadm modifies the file later.
func (o *Options) writeKubeconfig(of *api.Config) error {
	const cluster, user, context = "default-cluster", "default-auth", "default-context"
	k := api.NewConfig()
	from := of.Contexts[of.CurrentContext]
	if from == nil || of.Clusters[from.Cluster] == nil {
		return errors.New("the bootstrap kubeconfig has no current context, or none with a cluster")
	}
	k.Clusters[cluster] = of.Clusters[from.Cluster].DeepCopy()
	k.Clusters[cluster].LocationOfOrigin = ""
	current := o.pairs(clientPurpose).current()
	k.AuthInfos[user] = &api.AuthInfo{ClientCertificate: current, ClientKey: current}
	k.Contexts[context] = &api.Context{Cluster: cluster, AuthInfo: user, Namespace: "default"}
	k.CurrentContext = context
	text, err := clientcmd.Write(*k)
	if err != nil {
		return err
	}
	return atomicfile.Write(o.Kubeconfig, text)
}

// restConfig returns the configuration of the current context.
func restConfig(file *api.Config) (*rest.Config, error) {
	return clientcmd.NewNonInteractiveClientConfig(*file, "", &clientcmd.ConfigOverrides{}, nil).ClientConfig()
}
