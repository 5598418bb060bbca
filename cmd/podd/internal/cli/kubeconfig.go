package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/alecthomas/kong"
	"sigs.k8s.io/yaml"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/iostreams"
	"podd/server"
)

// KubeconfigCmd is the podd kubeconfig command.
type KubeconfigCmd struct {
	client.Flags
	Output   *string        `placeholder:"FILE" help:"Write to FILE with mode 0600 instead of to stdout." complete:"file"`
	Duration *time.Duration `placeholder:"DURATION" help:"Requested lifetime of the credential, from 1m to 8760h (8760h)."`
	Revoke   bool           `help:"Revoke all credentials that have been issued, and print none."`
}

// Help describes how to store and revoke the credential.
func (c *KubeconfigCmd) Help() string {
	return `Anyone who has the credential is root on this node until it expires or is revoked, because it permits running commands in every container. Keep the credential in a file that no other user can read, such as the one that --output creates.

--revoke replaces podd's certificate authority. The revocation takes effect at once, stays in effect after a restart, and closes the connections that were opened with the credentials. Credentials of --client-ca-file and --token-auth-file stay valid. Clients that verify podd with the certificate authority of an earlier credential need a new credential. If podd is not running, remove pki/ca.pem in its root directory instead.`
}

// Validate rejects flags that contradict each other.
func (c *KubeconfigCmd) Validate(*kong.Context) error {
	switch {
	case c.Revoke && (c.Output != nil || c.Duration != nil):
		return errors.New("--revoke prints no credential; run \"podd kubeconfig\" again for a new one")
	case c.Output != nil && *c.Output == "":
		return errors.New("--output: missing file name")
	case c.Duration != nil:
		if err := server.CheckCredentialLifetime(*c.Duration); err != nil {
			return fmt.Errorf("--duration: %w", err)
		}
	}
	return nil
}

// Run prints a kubeconfig with a credential that permits all requests, or revokes all such
// credentials.
func (c *KubeconfigCmd) Run(ctx context.Context, s iostreams.Streams) error {
	p, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	if c.Revoke {
		return revokeCredentials(ctx, p, s.Out)
	}
	var file *privateFile
	if c.Output != nil {
		if file, err = openPrivateFile(*c.Output); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
		defer file.close()
	}
	var cred server.Credential
	query := url.Values{}
	if c.Duration != nil {
		query.Set("duration", c.Duration.String())
	}
	if err := p.RequestCredential(ctx, http.MethodPost, query, &cred); err != nil {
		return err
	}
	text, err := yaml.Marshal(newKubeconfig(cred))
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig: %w", err)
	}
	if file == nil {
		warnIfReadableByOthers(s)
		_, err = s.Out.Write(text)
		return err
	}
	if err := file.write(text); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	_, err = fmt.Fprintf(s.Out, "%s: root's credential, valid until %s; \"podd kubeconfig --revoke\" revokes it\n", *c.Output, cred.ExpiresAt.Local().Format("2006-01-02 15:04 MST"))
	return err
}

// revokeCredentials revokes all credentials that podd has issued and prints the result.
func revokeCredentials(ctx context.Context, p *client.Client, out io.Writer) error {
	var revocation server.Revocation
	if err := p.RequestCredential(ctx, http.MethodDelete, nil, &revocation); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "all earlier credentials are revoked; connections closed: %d\n", revocation.ClosedConnections)
	return err
}

// warnIfReadableByOthers warns if standard output is a file that other users can read.
func warnIfReadableByOthers(s iostreams.Streams) {
	f, ok := s.Out.(*os.File)
	if !ok {
		return
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o044 == 0 {
		return
	}
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		name = "standard output"
	}
	fmt.Fprintf(s.Err, "podd: warning: other users can read %s (mode %04o), which now contains root's credential; "+
		"run \"podd kubeconfig --revoke\", and then \"podd kubeconfig --output FILE\"\n", name, info.Mode().Perm())
}

// newKubeconfig returns a v1 Config with one cluster, user and context. Its []byte values are
// encoded in base64.
func newKubeconfig(c server.Credential) any {
	type object = map[string]any
	const name = "podd"
	cluster := object{"server": c.Server}
	cluster["certificate-authority-data"] = c.CA
	if c.ServerName != "" {
		cluster["tls-server-name"] = c.ServerName
	}
	return object{
		"apiVersion": "v1", "kind": "Config", "current-context": name,
		"clusters": []object{{"name": name, "cluster": cluster}},
		"users":    []object{{"name": name, "user": object{"client-certificate-data": c.Certificate, "client-key-data": c.Key}}},
		"contexts": []object{{"name": name, "context": object{"cluster": name, "user": name}}},
	}
}
