//go:build e2e

package cluster

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const csrs = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

// approve approves the certificate requests of a node for a signer. The function sign issues
// each certificate. If sign is nil, the controllers of the cluster issue it.
func (p *controlPlane) approve(node, signer string, sign func(*certificates.CertificateSigningRequest) error) error {
	var all certificates.CertificateSigningRequestList
	if err := p.do(http.MethodGet, csrs, nil, &all); err != nil {
		return err
	}
	for i := range all.Items {
		r := &all.Items[i]
		block, _ := pem.Decode(r.Spec.Request)
		q, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			return err
		}
		if q.Subject.CommonName != "system:node:"+node || r.Spec.SignerName != signer || len(r.Status.Conditions) > 0 {
			continue
		}
		r.Status.Conditions = append(r.Status.Conditions, certificates.CertificateSigningRequestCondition{
			Type: certificates.CertificateApproved, Status: v1.ConditionTrue, Reason: "Test", Message: "by the test",
		})
		if err := p.do(http.MethodPut, csrs+"/"+r.Name+"/approval", r, r); err != nil {
			return err
		}
		if sign == nil {
			continue
		}
		if err := sign(r); err != nil {
			return err
		}
		if err := p.do(http.MethodPut, csrs+"/"+r.Name+"/status", r, nil); err != nil {
			return err
		}
	}
	return nil
}

// signer returns a function that issues a certificate of the cluster's CA with the given
// lifetime and usage.
func (p *controlPlane) signer(lifetime time.Duration, usage x509.ExtKeyUsage) func(*certificates.CertificateSigningRequest) error {
	return func(r *certificates.CertificateSigningRequest) error {
		block, _ := pem.Decode(r.Spec.Request)
		q, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			return err
		}
		ca, err := tls.LoadX509KeyPair(filepath.Join(p.dir, "ca.crt"), filepath.Join(p.dir, "ca.key"))
		if err != nil {
			return err
		}
		serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
		if err != nil {
			return err
		}
		der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
			SerialNumber: serial, Subject: q.Subject, DNSNames: q.DNSNames, IPAddresses: q.IPAddresses,
			NotBefore: time.Now().Add(-time.Second), NotAfter: time.Now().Add(lifetime),
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
		}, ca.Leaf, q.PublicKey, ca.PrivateKey)
		r.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		return err
	}
}

// writeBootstrapConfig writes a kubeconfig with a bootstrap token.
func (p *controlPlane) writeBootstrapConfig(t *testing.T, file string) {
	t.Helper()
	const id, secret = "abcdef", "0123456789abcdef"
	for path, object := range map[string]any{
		"/api/v1/namespaces/kube-system/secrets": &v1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id}, Type: v1.SecretTypeBootstrapToken,
			StringData: map[string]string{"token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true"},
		},
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings": &rbac.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id},
			RoleRef:    rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: "system:node-bootstrapper"},
			Subjects:   []rbac.Subject{{Kind: "Group", APIGroup: rbac.GroupName, Name: "system:bootstrappers"}},
		},
	} {
		if err := p.do(http.MethodPost, path, object, nil); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.do(http.MethodDelete, path+"/bootstrap-token-"+id, nil, nil) })
	}
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: x,
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}],
users: [{name: u, user: {token: %s.%s}}],
contexts: [{name: x, context: {cluster: c, user: u}}]}`, p.url, filepath.Join(p.dir, "ca.crt"), id, secret)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// servedCertificate returns the certificate that the node's API presents. It returns an error if
// the cluster's CA has not issued the certificate.
func (p *controlPlane) servedCertificate(port, node string) (*x509.Certificate, error) {
	conf := p.admin.Transport.(*http.Transport).TLSClientConfig.Clone()
	conf.ServerName = node
	conn, err := tls.Dial("tcp", "127.0.0.1:"+port, conf)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0], nil
}

// TestBootstrap checks that a host with only a bootstrap token becomes a node when its
// certificate request is approved. Its certificates must be those of the cluster's signers.
func TestBootstrap(t *testing.T) {
	plane.startControllers(t)
	a, port := newServingAgent(t, "n11", "--rotate-certificates", "--rotate-server-certificates")
	kubeconfig, token := filepath.Join(a.dir, "kubelet.conf"), filepath.Join(a.dir, "bootstrap.conf")
	plane.writeBootstrapConfig(t, token)
	a.flags = append(a.flags, "--kubeconfig", kubeconfig, "--bootstrap-kubeconfig", token)
	a.start()
	a.pod("web")
	a.untilRunning("web")
	a.untilPs("is waiting for approval; run \"kubectl certificate approve node-csr-", true)
	a.kill() // after a restart, podd must not send a second certificate request
	a.start()
	a.untilPs("is waiting for approval", true)
	if n := strings.Count(fmt.Sprint(plane.csrNames(t, "n11")), "node-csr-"); n != 1 {
		t.Errorf("got %d requests for client certificates, want 1", n)
	}
	if err := plane.approve("n11", certificates.KubeAPIServerClientKubeletSignerName, nil); err != nil {
		t.Fatal(err)
	}
	a.untilReady()
	current := filepath.Join(a.dir, "root", "pki", "kubelet-client-current.pem")
	link, err := os.Lstat(current)
	info, serr := os.Stat(current)
	if err != nil || serr != nil || link.Mode()&os.ModeSymlink == 0 || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: got link %v (error %v), file %v (error %v); want a symlink to a file with mode 0600", current, link, err, info, serr)
	}
	text, err := os.ReadFile(kubeconfig)
	if err != nil || !strings.Contains(string(text), "client-certificate: "+current) || strings.Contains(string(text), "token") {
		t.Errorf("kubeconfig: got error %v and content %s, want the path of the certificate and no token", err, text)
	}
	a.untilPs("is waiting for approval", true) // no controller approves the request of the serving certificate
	if err := plane.approve("n11", certificates.KubeletServingSignerName, nil); err != nil {
		t.Fatal(err)
	}
	a.eventually("the node presents the cluster's certificate", func() error { _, err := plane.servedCertificate(port, "n11"); return err })
	a.untilPs("is waiting for approval", false)
	a.untilRunning("web")
	a.kill()
	began := time.Now()
	a.start().untilRunning("web")
	a.eventually("podd uses the stored certificate", func() error {
		l, err := a.lease()
		if err == nil && l.Spec.RenewTime.Time.Before(began) {
			err = errors.New("podd has not renewed the lease since its restart")
		}
		return err
	})
	if n := plane.csrNames(t, "n11"); len(n) != 2 {
		t.Errorf("got the certificate requests %v, want 2", n)
	}
}

// csrNames returns the names of the certificate requests of a node.
func (p *controlPlane) csrNames(t *testing.T, node string) (names []string) {
	t.Helper()
	var all certificates.CertificateSigningRequestList
	if err := p.do(http.MethodGet, csrs, nil, &all); err != nil {
		t.Fatal(err)
	}
	for _, r := range all.Items {
		block, _ := pem.Decode(r.Spec.Request)
		if q, err := x509.ParseCertificateRequest(block.Bytes); err == nil && q.Subject.CommonName == "system:node:"+node {
			names = append(names, r.Name)
		}
	}
	return names
}

// TestCertificateRotation checks that certificates with a lifetime of a minute are renewed
// several times without an error. podd must continue its watches, and connections of clients to the
// node must stay open.
func TestCertificateRotation(t *testing.T) {
	t.Parallel()
	a, port := newServingAgent(t, "n12", "--rotate-certificates", "--rotate-server-certificates")
	ctx, cancel := context.WithCancel(t.Context())
	var signing sync.WaitGroup
	defer signing.Wait()
	defer cancel()
	signing.Go(func() {
		for ctx.Err() == nil {
			const lifetime = time.Minute
			err := errors.Join(plane.approve("n12", certificates.KubeAPIServerClientKubeletSignerName, plane.signer(lifetime, x509.ExtKeyUsageClientAuth)),
				plane.approve("n12", certificates.KubeletServingSignerName, plane.signer(lifetime, x509.ExtKeyUsageServerAuth)))
			if err != nil && ctx.Err() == nil {
				t.Logf("signing failed; retrying: %v", err)
			}
			time.Sleep(200 * time.Millisecond)
		}
	})
	began := time.Now()
	a.start().untilReady()
	current := filepath.Join(a.dir, "root", "pki", "kubelet-client-current.pem")
	var first *x509.Certificate
	a.eventually("the node presents the cluster's certificate", func() (err error) { first, err = plane.servedCertificate(port, "n12"); return err })
	conf := plane.admin.Transport.(*http.Transport).TLSClientConfig.Clone()
	conf.ServerName = "n12"
	conn, err := tls.Dial("tcp", "127.0.0.1:"+port, conf)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	responses := bufio.NewReader(conn)
	request := func() {
		t.Helper()
		if _, err := fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: n12\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadResponse(responses, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if _, err := io.ReadAll(r.Body); err != nil || r.StatusCode != http.StatusOK {
			t.Errorf("on the same connection: got %s, error %v; want 200", r.Status, err)
		}
	}
	request()
	seen := map[string]bool{}
	for len(seen) < 3 {
		a.eventually("another certificate is stored", func() error {
			request() // also keeps the connection from being idle
			<-time.After(time.Second)
			link, err := os.Readlink(current)
			if err == nil && seen[link] {
				err = fmt.Errorf("%s: got a link to %s, want one to another file", current, link)
			}
			if err == nil {
				seen[link] = true
			}
			return err
		})
	}
	a.eventually("another certificate is presented", func() error {
		c, err := plane.servedCertificate(port, "n12")
		if err == nil && c.Equal(first) {
			err = errors.New("got the same certificate, want another one")
		}
		return err
	})
	request()
	// Leases must still be renewed long after the first certificate has expired.
	a.eventually("a lease is renewed", func() error {
		l, err := a.lease()
		if err == nil && l.Spec.RenewTime.Time.Before(began.Add(65*time.Second)) {
			err = fmt.Errorf("got a lease renewed at %v, want one renewed after the first certificate has expired", l.Spec.RenewTime)
		}
		return err
	})
	a.untilReady()
	if n := plane.requestCounts(t, "n12", began); n["watch nodes"] < 2 {
		t.Errorf("got the requests %v, want at least 2 with the key \"watch nodes\"", n)
	}
	for _, problem := range []string{"cannot be reached", "401 Unauthorized", "certificate that is not trusted", "is waiting for approval"} {
		if n := a.countInLog(problem); n != 0 {
			t.Errorf("log: got %q %d times, want it never", problem, n)
		}
	}
}
