//go:build e2e

package kubeadm

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// patience is how long a test waits for what must come, on a busy machine.
var patience = func() time.Duration {
	if given, err := time.ParseDuration(os.Getenv("PODD_E2E_PATIENCE")); err == nil {
		return given
	}
	return 3 * time.Minute
}()

func eventually(t *testing.T, what string, is func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := is()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waiting until %s: %v", what, err)
		}
	}
}

// client is the user of a kubeconfig.
type client struct {
	server string
	http   *http.Client
}

func newClient(t *testing.T, kubeconfig string) *client {
	t.Helper()
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	var k struct {
		Clusters []struct {
			Cluster struct {
				Server string `json:"server"`
				CA     []byte `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				Cert []byte `json:"client-certificate-data"`
				Key  []byte `json:"client-key-data"`
			} `json:"user"`
		} `json:"users"`
	}
	if err := yaml.Unmarshal(text, &k); err != nil || len(k.Clusters) != 1 || len(k.Users) != 1 {
		t.Fatalf("%s: %v", kubeconfig, err)
	}
	cluster, user := k.Clusters[0].Cluster, k.Users[0].User
	pair, err := tls.X509KeyPair(user.Cert, user.Key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cluster.CA)
	transport := &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{cluster.Server, &http.Client{Transport: transport, Timeout: 10 * time.Second}}
}

// ask makes a request; answer may be nil.
func (c *client) ask(method, path string, answer any) error {
	q, err := http.NewRequest(method, c.server+path, nil)
	if err != nil {
		return err
	}
	r, err := c.http.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	all, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		return err
	case r.StatusCode != http.StatusOK:
		return fmt.Errorf("%s %s: %s: %s", method, path, r.Status, all)
	case answer == nil:
		return nil
	}
	return json.Unmarshal(all, answer)
}
