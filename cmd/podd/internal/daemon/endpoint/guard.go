package endpoint

import (
	"context"
	"fmt"
	"log/slog"

	rbac "k8s.io/api/rbac/v1"

	"podd/cmd/podd/internal/config"
	"podd/server/auth"
	"podd/server/pki"
	"podd/server/reload"
)

// guard returns the guard of the kubelet API, without a handler.
func (o *Options) guard() (*auth.Guard, error) {
	g := &auth.Guard{Authorizer: auth.Policy{}}
	if o.PKI != nil {
		var err error
		if g, err = newGuard(o.Server.API, o.PKI, o.Node, o.Log); err != nil {
			return nil, err
		}
		if c := o.Cluster; c != nil {
			g.InCluster = true
			if c.TokenReview != nil {
				g.Authenticator.Review = c.TokenReview
			}
			if c.AccessReview != nil {
				g.Authorizer = c.AccessReview
			}
		}
	}
	g.Authorizer = auth.Writes{Authorizer: g.Authorizer} // ephemeral containers are always served
	return g, nil
}

// newGuard returns a guard that accepts credentials of podd's own authority and the
// configured ones.
func newGuard(a config.KubeletAPI, own *pki.Authority, node string, log *slog.Logger) (*auth.Guard, error) {
	who := &auth.Authenticator{Anonymous: a.Anonymous}
	g := &auth.Guard{Authenticator: who, Authorizer: auth.Policy{}, Node: node}
	who.CAs = own.Roots(nil)
	if a.ClientCAFile != "" {
		valid := func(text []byte) ([]byte, error) {
			_, err := own.Trust(text)
			return text, err
		}
		f, err := reload.Open(log, reload.Single(valid), a.ClientCAFile)
		if err != nil {
			return nil, fmt.Errorf("--client-ca-file: %w", err)
		}
		who.CAs = own.Roots(f.Get)
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
		g.Authorizer = auth.AllowAll{}
	case a.PolicyFile != "":
		f, err := reload.Open(log, reload.Single(auth.ParsePolicy), a.PolicyFile)
		if err != nil {
			return nil, fmt.Errorf("--authorization-policy-file: %w", err)
		}
		g.Authorizer = policyFile{f}
	}
	return g, nil
}

// A policyFile authorizes by the current content of a file.
type policyFile struct{ file *reload.File[auth.Policy] }

// Allows implements auth.Authorizer.
func (n policyFile) Allows(ctx context.Context, u auth.User, a auth.Attributes) (bool, error) {
	return n.file.Get().Allows(ctx, u, a)
}

// Rules implements auth.Authorizer.
func (n policyFile) Rules(u auth.User, namespace string) ([]rbac.PolicyRule, error) {
	return n.file.Get().Rules(u, namespace)
}
