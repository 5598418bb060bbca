package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"sigs.k8s.io/yaml"

	"podd/cmd/podd/internal/config"
	"podd/server"
	"podd/server/auth"
	"podd/server/pki"
)

// credentialLife is how long what podd kubeconfig prints is good.
const credentialLife = 365 * 24 * time.Hour

// openPKI is nil when the kubelet's API is off, or cannot be: pods run without it.
func openPKI(cfg *config.Config, log *slog.Logger) *pki.Authority {
	if cfg.API.Listen == "" {
		return nil
	}
	authority, err := pki.Open(cfg.RootDir)
	if err != nil {
		log.Error("the kubelet's API is not served", "err", err)
		return nil
	}
	return authority
}

// credential makes root's for the kubelet's API.
func (d *podd) credential() (server.Credential, error) {
	if d.pki == nil {
		return server.Credential{}, server.NotFound("podd serves no kubelet's API: enableServer is false, or its log says why")
	}
	cert, key, err := d.pki.Client("podd-admin", []string{auth.Masters}, credentialLife)
	if err != nil {
		return server.Credential{}, err
	}
	c := server.Credential{Server: "https://" + reachable(d.cfg.API.Listen), Certificate: cert, Key: key}
	if d.cfg.API.CertFile == "" {
		c.CA = d.pki.PEM()
		if !d.cfg.Cluster.ServingBootstrap {
			return c, nil
		}
	}
	return c, trustGiven(&c, d.show)
}

// trustGiven has the client trust the certificate that podd was given, by a name
// that is in it.
func trustGiven(c *server.Credential, show func(*tls.ClientHelloInfo) (*tls.Certificate, error)) error {
	given, err := show(nil)
	if err != nil {
		return err
	}
	for _, der := range given.Certificate {
		c.CA = append(c.CA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	if names := given.Leaf.DNSNames; len(names) > 0 {
		c.Name = names[0]
	}
	return nil
}

// reachable is an address to connect to for one that is listened on.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip, perr := netip.ParseAddr(host); err == nil && perr == nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return listen
}

// servingNames are those by which clients may call a node.
func servingNames(node string, given []netip.Addr) ([]string, []net.IP) {
	ips := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	for _, text := range hostIPs(given) {
		ips = append(ips, net.ParseIP(text))
	}
	return []string{node, "localhost"}, ips
}

// KubeconfigCmd is podd kubeconfig.
type KubeconfigCmd struct {
	Client
}

// Help is the verb's longer help.
func (c *KubeconfigCmd) Help() string {
	return "Whoever has what it prints is root on this node for a year: it may run commands in every container. Keep it like a key of root's, in a file that nobody else can read."
}

// Run prints a file for kubectl --kubeconfig, with a credential that may do
// everything.
func (c *KubeconfigCmd) Run(ctx context.Context, s Streams) error {
	p, err := c.connect(ctx)
	if err != nil {
		return err
	}
	resp, err := p.call(ctx, http.MethodPost, "/v1/credential", nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var cred server.Credential
	if err := json.NewDecoder(resp.Body).Decode(&cred); err != nil {
		return fmt.Errorf("reading the answer of podd at %s: %w", p.socket, err)
	}
	text, err := yaml.Marshal(kubeconfig(cred))
	if err != nil {
		return err
	}
	_, err = s.Out.Write(text)
	return err
}

// kubeconfig is a v1 Config of one cluster, user and context; []byte is base64
// there.
func kubeconfig(c server.Credential) any {
	type object = map[string]any
	const name = "podd"
	cluster := object{"server": c.Server}
	cluster["certificate-authority-data"] = c.CA
	if c.Name != "" {
		cluster["tls-server-name"] = c.Name
	}
	return object{
		"apiVersion": "v1", "kind": "Config", "current-context": name,
		"clusters": []object{{"name": name, "cluster": cluster}},
		"users":    []object{{"name": name, "user": object{"client-certificate-data": c.Certificate, "client-key-data": c.Key}}},
		"contexts": []object{{"name": name, "context": object{"cluster": name, "user": name}}},
	}
}
