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

	"podd/manifest/durable"
)

// bootstraps says that the kubeconfig gives podd no identity that is good, and another
// is to be asked for: it is missing, or nothing can be made of it, or its certificate
// is over. What only cannot be read now may be good.
func (o *Options) bootstraps() bool {
	if o.BootstrapKubeconfig == "" {
		return false
	}
	config, err := read(o.Kubeconfig)
	if err != nil {
		return !unread(err)
	}
	pair, err := pairOf(config)
	if err != nil {
		return !unread(err)
	}
	if pair == nil {
		return config.BearerToken == "" && config.BearerTokenFile == "" && config.ExecProvider == nil && config.AuthProvider == nil && config.Username == ""
	}
	if o.RotateCertificates {
		kept, err := o.pairs(toAsk).load()
		if kept != nil && kept.Leaf.NotAfter.After(pair.Leaf.NotAfter) {
			pair = kept
		}
		if unread(err) {
			return false
		}
	}
	return time.Now().After(pair.Leaf.NotAfter)
}

// unread is that a file is there and what it has is not known.
func unread(err error) bool {
	var file *fs.PathError
	return errors.As(err, &file) && !errors.Is(err, fs.ErrNotExist)
}

// bootstrap asks for an identity where there is none, with the one of the bootstrap
// kubeconfig, and writes the kubeconfig. Until somebody has approved that it waits,
// or until one of the files is another.
func (o *Options) bootstrap(ctx context.Context, s *speaker) error {
	if !o.bootstraps() {
		return nil
	}
	failed := func(doing string, err error) error {
		return configError{fmt.Errorf("%s --bootstrap-kubeconfig %s: %w", doing, o.BootstrapKubeconfig, err)}
	}
	file, err := load(o.BootstrapKubeconfig)
	if err != nil {
		return failed("reading", err)
	}
	config, err := configOf(file)
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
	asking, stop := while(ctx, func() bool {
		return has.good() == nil && stamp(o.Kubeconfig) == seen && stamp(o.BootstrapKubeconfig) == by
	})
	defer stop()
	asking, done := context.WithCancel(asking)
	defer done()
	r := &renewer{o: o, c: c, say: s, to: toAsk, has: has, wish: o.wishToAsk, took: func() {
		if has.good() != nil { // by this machine's clock
			done()
		}
	}}
	r.run(asking)
	pair := has.good()
	if pair == nil {
		return nil // another file is to be looked at
	}
	if err := o.writeKubeconfig(file); err != nil {
		return fileError{fmt.Errorf("writing --kubeconfig %s: %w", o.Kubeconfig, err)}
	}
	o.Log.Info("the cluster gave podd a certificate", "kubeconfig", o.Kubeconfig, "until", pair.Leaf.NotAfter)
	return nil
}

// writeKubeconfig writes one for the cluster of another, with the pair that is kept:
// in the kubelet's words, which kubeadm changes later on.
func (o *Options) writeKubeconfig(of *api.Config) error {
	const cluster, user, context = "default-cluster", "default-auth", "default-context"
	k := api.NewConfig()
	from := of.Contexts[of.CurrentContext]
	if from == nil || of.Clusters[from.Cluster] == nil {
		return errors.New("the bootstrap kubeconfig has no current context, or none with a cluster")
	}
	k.Clusters[cluster] = of.Clusters[from.Cluster].DeepCopy()
	k.Clusters[cluster].LocationOfOrigin = ""
	current := o.pairs(toAsk).current()
	k.AuthInfos[user] = &api.AuthInfo{ClientCertificate: current, ClientKey: current}
	k.Contexts[context] = &api.Context{Cluster: cluster, AuthInfo: user, Namespace: "default"}
	k.CurrentContext = context
	text, err := clientcmd.Write(*k)
	if err != nil {
		return err
	}
	return durable.Write(o.Kubeconfig, text)
}

// configOf is the configuration of a kubeconfig's current context.
func configOf(file *api.Config) (*rest.Config, error) {
	return clientcmd.NewNonInteractiveClientConfig(*file, "", &clientcmd.ConfigOverrides{}, nil).ClientConfig()
}
