package endpoint

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	rbac "k8s.io/api/rbac/v1"

	"podd/cmd/podd/internal/config"
	"podd/server/auth"
	"podd/server/pki"
	"podd/server/reload"
)

// clientAccess contains the authentication and authorization of clients.
type clientAccess struct {
	authenticator *auth.Authenticator // nil if the kubelet API is disabled
	authorizer    auth.Authorizer
	isInCluster   bool
}

// guard returns a Guard that passes permitted requests to h and rejects all others. node is the
// name of the node.
func (a clientAccess) guard(node string, h http.Handler) *auth.Guard {
	return &auth.Guard{Authenticator: a.authenticator, Authorizer: a.authorizer, Node: node, InCluster: a.isInCluster, Handler: h}
}

// clientAccess returns the authentication and authorization of clients. The authorizer always
// includes auth.WriteAuthorizer, because clients can add ephemeral containers even if the API has no
// directory to write to.
func (o *Options) clientAccess() (clientAccess, error) {
	a := clientAccess{authorizer: auth.Policy{}}
	if o.PKI != nil {
		var err error
		if a, err = newClientAccess(o.Server.API, o.Cluster, o.PKI, o.Log); err != nil {
			return clientAccess{}, err
		}
	}
	a.authorizer = auth.WriteAuthorizer{Authorizer: a.authorizer}
	return a, nil
}

// newClientAccess returns a clientAccess that accepts three kinds of credentials: those that podd's
// own certificate authority has issued, the configured credentials and, unless cluster is nil,
// those of the cluster.
func newClientAccess(c config.KubeletAPI, cluster *Cluster, poddCA *pki.Authority, log *slog.Logger) (clientAccess, error) {
	authenticator, err := newAuthenticator(c, cluster, poddCA, log)
	if err != nil {
		return clientAccess{}, err
	}
	authorizer, err := newAuthorizer(c, log)
	if err != nil {
		return clientAccess{}, err
	}
	if cluster != nil && cluster.Authorizer != nil {
		authorizer = cluster.Authorizer
	}
	return clientAccess{authenticator, authorizer, cluster != nil}, nil
}

// newAuthenticator returns an authenticator that accepts client certificates of podd's own
// certificate authority and of the configured authority. It also accepts the configured tokens and,
// unless cluster is nil, the tokens of the cluster.
func newAuthenticator(c config.KubeletAPI, cluster *Cluster, poddCA *pki.Authority, log *slog.Logger) (*auth.Authenticator, error) {
	a := &auth.Authenticator{AllowsAnonymous: c.AllowAnonymous, CAs: poddCA.RootPoolFunc(nil)}
	if cluster != nil {
		a.ReviewToken = cluster.ReviewToken
	}
	if c.ClientCAFile != "" {
		valid := func(text []byte) ([]byte, error) {
			_, err := poddCA.RootPool(text)
			return text, err
		}
		f, err := reload.Open(log, reload.ParseSingleFile(valid), c.ClientCAFile)
		if err != nil {
			return nil, fmt.Errorf("--client-ca-file: %w", err)
		}
		a.CAs = poddCA.RootPoolFunc(f.Get)
	}
	if c.TokenFile != "" {
		f, err := reload.Open(log, reload.ParseSingleFile(auth.ParseTokens), c.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-auth-file: %w", err)
		}
		a.Tokens = f.Get
	}
	return a, nil
}

// newAuthorizer returns the configured authorizer.
func newAuthorizer(c config.KubeletAPI, log *slog.Logger) (auth.Authorizer, error) {
	switch {
	case c.AlwaysAllow:
		return auth.AllowAll{}, nil
	case c.PolicyFile != "":
		f, err := reload.Open(log, reload.ParseSingleFile(auth.ParsePolicy), c.PolicyFile)
		if err != nil {
			return nil, fmt.Errorf("--authorization-policy-file: %w", err)
		}
		return policyFile{f}, nil
	}
	return auth.Policy{}, nil
}

// A policyFile authorizes clients with the current content of a policy file.
type policyFile struct{ file *reload.File[auth.Policy] }

// Allows implements auth.Authorizer.
func (p policyFile) Allows(ctx context.Context, u auth.User, a auth.Attributes) (bool, error) {
	return p.file.Get().Allows(ctx, u, a)
}

// Rules implements auth.Authorizer.
func (p policyFile) Rules(u auth.User, namespace string) ([]rbac.PolicyRule, error) {
	return p.file.Get().Rules(u, namespace)
}
