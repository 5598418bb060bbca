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

// decide approves the requests of a node, or whoever is to become it, for a signer,
// and has each signed by f; nil leaves that to the cluster.
func (p *controlPlane) decide(node, signer string, f func(*certificates.CertificateSigningRequest) error) error {
	var all certificates.CertificateSigningRequestList
	if err := p.ask(http.MethodGet, csrs, nil, &all); err != nil {
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
		if err := p.ask(http.MethodPut, csrs+"/"+r.Name+"/approval", r, r); err != nil {
			return err
		}
		if f == nil {
			continue
		}
		if err := f(r); err != nil {
			return err
		}
		if err := p.ask(http.MethodPut, csrs+"/"+r.Name+"/status", r, nil); err != nil {
			return err
		}
	}
	return nil
}

// sign makes a certificate of the cluster's authority, good for a while.
func (p *controlPlane) sign(life time.Duration, usage x509.ExtKeyUsage) func(*certificates.CertificateSigningRequest) error {
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
			NotBefore: time.Now().Add(-time.Second), NotAfter: time.Now().Add(life),
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
		}, ca.Leaf, q.PublicKey, ca.PrivateKey)
		r.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		return err
	}
}

// bootstrapper writes a kubeconfig that has a bootstrap token.
func (p *controlPlane) bootstrapper(t *testing.T, file string) {
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
		if err := p.ask(http.MethodPost, path, object, nil); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.ask(http.MethodDelete, path+"/bootstrap-token-"+id, nil, nil) })
	}
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: x,
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}],
users: [{name: u, user: {token: %s.%s}}],
contexts: [{name: x, context: {cluster: c, user: u}}]}`, p.url, filepath.Join(p.dir, "ca.crt"), id, secret)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// shown is the certificate that the node's API shows, if the cluster's authority made
// it.
func (p *controlPlane) shown(port, node string) (*x509.Certificate, error) {
	conf := p.admin.Transport.(*http.Transport).TLSClientConfig.Clone()
	conf.ServerName = node
	conn, err := tls.Dial("tcp", "127.0.0.1:"+port, conf)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0], nil
}

// A machine that has a token alone becomes a node when somebody approves it, with
// certificates of the cluster's signer.
func TestBootstrap(t *testing.T) {
	plane.control(t)
	a, port := serving(t, "n11", "--rotate-certificates", "--rotate-server-certificates")
	kubeconfig, token := filepath.Join(a.dir, "kubelet.conf"), filepath.Join(a.dir, "bootstrap.conf")
	plane.bootstrapper(t, token)
	a.flags = append(a.flags, "--kubeconfig", kubeconfig, "--bootstrap-kubeconfig", token)
	a.start()
	a.pod("web")
	a.runs("web")
	a.tells("waits for approval: kubectl certificate approve node-csr-", true)
	a.kill() // and what was asked for is asked for no second time
	a.start()
	a.tells("waits for approval", true)
	if n := strings.Count(fmt.Sprint(plane.requests(t, "n11")), "node-csr-"); n != 1 {
		t.Errorf("%d requests", n)
	}
	if err := plane.decide("n11", certificates.KubeAPIServerClientKubeletSignerName, nil); err != nil {
		t.Fatal(err)
	}
	a.ready()
	current := filepath.Join(a.dir, "root", "pki", "kubelet-client-current.pem")
	link, err := os.Lstat(current)
	info, serr := os.Stat(current)
	if err != nil || serr != nil || link.Mode()&os.ModeSymlink == 0 || info.Mode().Perm() != 0o600 {
		t.Errorf("current: %v, %v, %v, %v", link, err, info, serr)
	}
	text, err := os.ReadFile(kubeconfig)
	if err != nil || !strings.Contains(string(text), "client-certificate: "+current) || strings.Contains(string(text), "token") {
		t.Errorf("kubeconfig: %v: %s", err, text)
	}
	a.tells("waits for approval", true) // the node's own, which nobody approves by himself
	if err := plane.decide("n11", certificates.KubeletServingSignerName, nil); err != nil {
		t.Fatal(err)
	}
	a.eventually("the node shows the cluster's certificate", func() error { _, err := plane.shown(port, "n11"); return err })
	a.tells("waits for approval", false)
	a.runs("web")
	a.kill()
	began := time.Now()
	a.start().runs("web")
	a.eventually("it goes on with what it has", func() error {
		l, err := a.lease()
		if err == nil && l.Spec.RenewTime.Time.Before(began) {
			err = errors.New("the lease is not renewed")
		}
		return err
	})
	if n := plane.requests(t, "n11"); len(n) != 2 {
		t.Errorf("asked for %v", n)
	}
}

// requests are the names of those of a node.
func (p *controlPlane) requests(t *testing.T, node string) (names []string) {
	t.Helper()
	var all certificates.CertificateSigningRequestList
	if err := p.ask(http.MethodGet, csrs, nil, &all); err != nil {
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

// Certificates that are good for half a minute are renewed over and over; nobody is
// told of trouble, watches go on, and connections to the node stay.
func TestRotation(t *testing.T) {
	a, port := serving(t, "n12", "--rotate-certificates", "--rotate-server-certificates")
	ctx, cancel := context.WithCancel(t.Context())
	var signing sync.WaitGroup
	defer signing.Wait()
	defer cancel()
	signing.Go(func() {
		for ctx.Err() == nil {
			const life = 40 * time.Second
			err := errors.Join(plane.decide("n12", certificates.KubeAPIServerClientKubeletSignerName, plane.sign(life, x509.ExtKeyUsageClientAuth)),
				plane.decide("n12", certificates.KubeletServingSignerName, plane.sign(life, x509.ExtKeyUsageServerAuth)))
			if err != nil && ctx.Err() == nil {
				t.Logf("signing, tried again: %v", err)
			}
			time.Sleep(200 * time.Millisecond)
		}
	})
	began := time.Now()
	a.start().ready()
	current := filepath.Join(a.dir, "root", "pki", "kubelet-client-current.pem")
	var first *x509.Certificate
	a.eventually("the node shows the cluster's certificate", func() (err error) { first, err = plane.shown(port, "n12"); return err })
	conf := plane.admin.Transport.(*http.Transport).TLSClientConfig.Clone()
	conf.ServerName = "n12"
	conn, err := tls.Dial("tcp", "127.0.0.1:"+port, conf)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	over := bufio.NewReader(conn)
	ask := func() {
		t.Helper()
		if _, err := fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: n12\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadResponse(over, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if _, err := io.ReadAll(r.Body); err != nil || r.StatusCode != http.StatusOK {
			t.Errorf("over the same connection: %s, %v", r.Status, err)
		}
	}
	ask()
	seen := map[string]bool{}
	for len(seen) < 3 {
		ask() // also lest it be idle
		a.eventually("another certificate is kept", func() error {
			link, err := os.Readlink(current)
			if err == nil && seen[link] {
				err = errors.New("it is still " + link)
			}
			if err == nil {
				seen[link] = true
			}
			return err
		})
	}
	a.eventually("another is shown", func() error {
		c, err := plane.shown(port, "n12")
		if err == nil && c.Equal(first) {
			err = errors.New("it is the same")
		}
		return err
	})
	ask()
	// Well after the first is over.
	a.eventually("a lease is renewed", func() error {
		l, err := a.lease()
		if err == nil && l.Spec.RenewTime.Time.Before(began.Add(45*time.Second)) {
			err = errors.New("not yet")
		}
		return err
	})
	a.ready()
	if n := plane.asked(t, "n12", began); n["watch nodes"] < 2 {
		t.Errorf("asked for %v", n)
	}
	for _, trouble := range []string{"cannot be reached", "401 Unauthorized", "certificate that is not trusted", "waits for approval"} {
		if n := a.said(trouble); n != 0 {
			t.Errorf("told of %q %d times", trouble, n)
		}
	}
}
