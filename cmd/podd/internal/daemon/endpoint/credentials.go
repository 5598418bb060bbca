package endpoint

import (
	"encoding/pem"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"time"

	"podd/server"
	"podd/server/auth"
	"podd/server/pki"
)

// credentialIssuer issues and revokes credentials for the kubelet API.
type credentialIssuer struct {
	Options
	certificate certificateFunc
	kubelet     *server.Server // nil if the kubelet API is disabled
}

// issue issues a credential that permits all requests and is valid for lifetime.
func (c *credentialIssuer) issue(lifetime time.Duration) (server.Credential, error) {
	if c.kubelet == nil {
		return server.Credential{}, c.disabledError()
	}
	expiresAt := time.Now().Add(lifetime)
	cert, key, err := c.PKI.SignClient("podd-admin", []string{auth.MastersGroup}, lifetime)
	if err != nil {
		return server.Credential{}, err
	}
	c.Log.Info("credential issued", "user", "podd-admin", "until", expiresAt.Format(time.RFC3339))
	a := c.Server.API
	out := server.Credential{Server: "https://" + dialAddress(a.Address), Certificate: cert, Key: key, ExpiresAt: expiresAt}
	if a.CertFile == "" {
		out.CA = c.PKI.PEM()
		if c.Cluster == nil || c.Cluster.ServingCertificate == nil {
			return out, nil
		}
	}
	return out, addServingCert(&out, c.certificate)
}

// revoke revokes all credentials that podd has issued, and closes the connections that use these
// credentials. Connections of clients that --client-ca-file or a token authenticates stay open.
func (c *credentialIssuer) revoke() (server.Revocation, error) {
	if c.kubelet == nil {
		return server.Revocation{}, c.disabledError()
	}
	revokedCA, err := c.PKI.Replace()
	if err != nil {
		return server.Revocation{}, fmt.Errorf("revoking credentials: %w; the credentials stay valid; try again", err)
	}
	closedCount := c.kubelet.CloseClients(revokedCA)
	c.Log.Info("credentials revoked", "connectionsClosed", closedCount)
	return server.Revocation{ClosedConnections: closedCount}, nil
}

// disabledError returns the error for requests while the kubelet API is disabled.
func (c *credentialIssuer) disabledError() error {
	return server.NewNotFoundError(fmt.Sprintf("the kubelet API is disabled, because enableServer is false or podd has logged an error about it; "+
		"to revoke earlier credentials, remove %s before you enable the API", filepath.Join(c.RootDir, pki.FileName)))
}

// addServingCert adds the serving certificate to the credential c. It also sets the server name
// that the client must verify, which is a DNS name in the certificate.
func addServingCert(c *server.Credential, certificate certificateFunc) error {
	servingCert, err := certificate(nil)
	if err != nil {
		return err
	}
	for _, der := range servingCert.Certificate {
		c.CA = append(c.CA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	if names := servingCert.Leaf.DNSNames; len(names) > 0 {
		c.ServerName = names[0]
	}
	return nil
}

// dialAddress returns the address to which a client on this host connects to reach a listen
// address.
func dialAddress(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip, perr := netip.ParseAddr(host); err == nil && perr == nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return listen
}
