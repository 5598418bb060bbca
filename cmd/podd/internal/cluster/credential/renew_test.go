package credential

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
)

// A signer is an API server that only supports CertificateSigningRequests. It signs approved requests
// with a lifetime of an hour.
type signer struct {
	t       *testing.T
	ca      *x509.Certificate
	key     *ecdsa.PrivateKey
	mu      sync.Mutex // guards all following fields
	stored  map[string]*certificates.CertificateSigningRequest
	created []string // names in the order of creation
	// decide is called with each new request, with mu held. It may be nil.
	decide  func(*certificates.CertificateSigningRequest)
	watches []*io.PipeWriter
	behind  time.Duration // the clock of the signer is behind the clock of this host by this duration
}

// newSigner returns a signer with a new CA and without requests.
func newSigner(t *testing.T) *signer {
	s := &signer{t: t, stored: map[string]*certificates.CertificateSigningRequest{}}
	s.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.ca = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, NotBefore: time.Now(), NotAfter: time.Now().Add(1000 * time.Hour)}
	return s
}

// approve signs a request. The caller must hold mu.
func (s *signer) approve(r *certificates.CertificateSigningRequest) { s.sign(r, nil, "") }

// sign signs a request. If key is not nil, the certificate contains key instead of the requested
// key. If name is not "", the certificate contains name instead of the requested name. The caller
// must hold mu.
func (s *signer) sign(r *certificates.CertificateSigningRequest, key any, name string) {
	block, _ := pem.Decode(r.Spec.Request)
	q, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || q.CheckSignature() != nil {
		s.t.Errorf("got an invalid PKCS #10 request (error %v), want one with a valid signature", err)
		return
	}
	if key == nil {
		key = q.PublicKey
	}
	if name != "" {
		q.Subject.CommonName = name
	}
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<60))
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: q.Subject, DNSNames: q.DNSNames, IPAddresses: q.IPAddresses,
		NotBefore: time.Now().Add(-s.behind), NotAfter: time.Now().Add(time.Hour - s.behind),
	}, s.ca, key, s.key)
	if err != nil {
		s.t.Error(err)
	}
	r.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// deny denies a request. The caller must hold mu.
func (s *signer) deny(r *certificates.CertificateSigningRequest) {
	r.Status.Conditions = append(r.Status.Conditions, certificates.CertificateSigningRequestCondition{Type: certificates.CertificateDenied, Status: v1.ConditionTrue, Message: "no"})
}

// change calls f with the newest request, and then ends all watches, so that podd reads the request
// again.
func (s *signer) change(f func(*certificates.CertificateSigningRequest)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.stored[s.created[len(s.created)-1]])
	for _, w := range s.watches {
		w.Close()
	}
	s.watches = nil
}

// setDecide sets the function that is called with each new request.
func (s *signer) setDecide(f func(*certificates.CertificateSigningRequest)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decide = f
}

// requestNames returns the names of all created requests, in the order of their creation.
func (s *signer) requestNames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.created)
}

// request returns a copy of the request with a name.
func (s *signer) request(name string) *certificates.CertificateSigningRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored[name].DeepCopy()
}

// RoundTrip implements http.RoundTripper.
func (s *signer) RoundTrip(q *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	if !strings.HasPrefix(q.URL.Path, path) {
		return clustertest.ErrorResponse(apierrors.NewBadRequest(q.URL.Path)), nil
	}
	resource := schema.GroupResource{Group: certificates.GroupName, Resource: "certificatesigningrequests"}
	name := strings.TrimPrefix(strings.TrimPrefix(q.URL.Path, path), "/")
	switch {
	case q.URL.Query().Get("watch") != "":
		r, w := io.Pipe()
		s.watches = append(s.watches, w)
		context.AfterFunc(q.Context(), func() { w.CloseWithError(context.Canceled) })
		return &http.Response{StatusCode: 200, Header: clustertest.JSONType, Body: r}, nil
	case q.Method == http.MethodPost:
		body, _ := io.ReadAll(q.Body)
		r := clustertest.MustDecode[certificates.CertificateSigningRequest](body)
		if s.stored[r.Name] != nil {
			return clustertest.ErrorResponse(apierrors.NewAlreadyExists(resource, r.Name)), nil
		}
		r.TypeMeta = metav1.TypeMeta{Kind: "CertificateSigningRequest", APIVersion: "certificates.k8s.io/v1"}
		s.stored[r.Name], s.created = r, append(s.created, r.Name)
		if s.decide != nil {
			s.decide(r)
		}
		return clustertest.Response(201, r), nil
	case s.stored[name] == nil:
		return clustertest.ErrorResponse(apierrors.NewNotFound(resource, name)), nil
	}
	return clustertest.Response(200, s.stored[name]), nil
}

// runSigner calls test in a synctest bubble, with a signer s and a client c of the signer. problem returns
// the message of the error in the last call of report, or "" if the last call reported a success.
func runSigner(t *testing.T, test func(t *testing.T, o *Manager, c *apiserver.Client, s *signer, report ReportFunc, problem func() string)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var last string
		o := &Manager{
			Config:   Config{Kubeconfig: filepath.Join(dir, "kubeconfig"), CertDir: filepath.Join(dir, "pki"), RotateCertificates: true},
			NodeName: "n1", Client: apiserver.Options{QPS: 50, Burst: 100, ContentType: "application/json"}, Log: slog.New(slog.DiscardHandler),
		}
		f := newSigner(t)
		c := clustertest.NewClient(t, f, o.Client)
		c.CloseConnections = func() {}
		report := func(ctx context.Context, err error) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case ctx.Err() != nil: // the attempt was cancelled
			case err == nil:
				last = ""
			default:
				last = err.Error()
			}
		}
		test(t, o, c, f, report, func() string { synctest.Wait(); mu.Lock(); defer mu.Unlock(); return last })
		f.mu.Lock()
		for _, w := range f.watches {
			w.Close()
		}
		f.mu.Unlock()
	})
}

// TestRenewer checks that podd requests a certificate once, even if podd restarts before the approval.
// podd must store the certificate in the layout of the kubelet, and renew the certificate in time.
func TestRenewer(t *testing.T) {
	runSigner(t, func(t *testing.T, o *Manager, c *apiserver.Client, s *signer, report ReportFunc, problem func() string) {
		// run starts a Renewer and waits until it reports a pending request.
		run := func(i *Identity) (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			r := &Renewer{manager: o, c: c, report: report, purpose: clientPurpose, identity: i, template: o.clientTemplate, onRenewed: c.CloseAfterRenewal}
			all.Go(func() { r.Run(ctx) })
			time.Sleep(pendingNoticeDelay + time.Second)
			return func() { cancel(); all.Wait() }
		}
		var renewals atomic.Int32 // number of renewals that closed the connections
		c.CloseConnections = func() { renewals.Add(1) }
		var replaced []time.Time // NotBefore of the replaced certificates
		o.OnRenewal = func(serving bool, issued time.Time, err error) {
			if serving || err != nil {
				t.Errorf("OnRenewal: got serving %t, error %v; want false and no error", serving, err)
			}
			replaced = append(replaced, issued)
		}
		i := &Identity{}
		stop := run(i)
		if s.requestNames() == nil {
			t.Fatal("got no certificate signing request, want one")
		}
		name := s.requestNames()[0]
		if got, want := problem(), "certificate signing request "+name+" is waiting for approval; run \"kubectl certificate approve "+name+"\""; got != want {
			t.Errorf("got problem %q, want %q", got, want)
		}
		stop()
		stop = run(i)
		if len(s.requestNames()) != 1 {
			t.Errorf("after a restart of the renewer: got requests %v, want one", s.requestNames())
		}
		r := s.request(name)
		if r.Spec.SignerName != "kubernetes.io/kube-apiserver-client-kubelet" || !slices.Equal(r.Spec.Usages, []certificates.KeyUsage{"digital signature", "client auth"}) {
			t.Errorf("got request %+v, want the signer kubernetes.io/kube-apiserver-client-kubelet and the usages of a client certificate", r.Spec)
		}
		s.change(s.approve)
		time.Sleep(10 * time.Second)
		first := i.ValidCertificate()
		if first == nil || first.Leaf.Subject.CommonName != "system:node:n1" || !slices.Equal(first.Leaf.Subject.Organization, []string{"system:nodes"}) || problem() != "" {
			t.Fatalf("after the approval: got certificate %v, problem %q; want a certificate of system:node:n1 and no problem", first, problem())
		}
		link, err := os.Readlink(o.certFiles(clientPurpose).currentPath())
		info, serr := os.Stat(o.certFiles(clientPurpose).currentPath())
		if err != nil || serr != nil || !strings.HasPrefix(link, "kubelet-client-2") || info.Mode().Perm() != 0o600 {
			t.Errorf("current certificate file: got link %q (error %v) to file %v (error %v); want a link to a dated file with mode 0600", link, err, info, serr)
		}
		if _, err := os.Stat(o.certFiles(clientPurpose).pendingKeyPath()); err == nil {
			t.Error("after the certificate was issued: got a file with the pending key, want none")
		}
		s.setDecide(s.approve)
		time.Sleep(41 * time.Minute) // the certificate is valid for 1h and is renewed after 70 to 90 % of it
		if len(s.requestNames()) != 1 {
			t.Errorf("41m after the certificate was issued: got requests %v, want one", s.requestNames())
		}
		time.Sleep(14 * time.Minute)
		second := i.ValidCertificate()
		if len(s.requestNames()) != 2 || second == nil || second.Leaf.Equal(first.Leaf) || renewals.Load() != 2 {
			t.Errorf("55m after the certificate was issued: got %d requests, %d renewals, certificate %v; want 2 requests, 2 renewals and another certificate", len(s.requestNames()), renewals.Load(), second)
		}
		stop()
		if len(replaced) != 2 || !replaced[0].IsZero() || !replaced[1].Equal(first.Leaf.NotBefore) {
			t.Errorf("OnRenewal: got issue times %v of the replaced certificates, want the zero time and %v", replaced, first.Leaf.NotBefore)
		}
		if stored, err := o.certFiles(clientPurpose).load(); err != nil || !stored.Leaf.Equal(second.Leaf) {
			t.Errorf("stored certificate: got %v, error %v; want the second certificate", stored, err)
		}
	})
}

// TestRenewer_RequestDeleted checks that podd creates a pending request again if the cluster has deleted
// the request. The reported problem must not change.
func TestRenewer_RequestDeleted(t *testing.T) {
	runSigner(t, func(t *testing.T, o *Manager, c *apiserver.Client, s *signer, report ReportFunc, problem func() string) {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			(&Renewer{manager: o, c: c, report: report, purpose: clientPurpose, identity: &Identity{}, template: o.clientTemplate, onRenewed: func() {}}).Run(ctx)
		})
		time.Sleep(time.Hour)
		before := problem()
		s.change(func(r *certificates.CertificateSigningRequest) { delete(s.stored, r.Name) })
		time.Sleep(time.Minute)
		if n := s.requestNames(); len(n) != 2 || n[0] != n[1] || problem() != before {
			t.Errorf("got requests %v, problem before the deletion %q, problem after the deletion %q; want two requests with the same name, and the same problem before and after", n, before, problem())
		}
		cancel()
		all.Wait()
	})
}

// TestRenewer_Denied checks that podd creates requests with new keys after a denial, with growing
// intervals between the requests.
func TestRenewer_Denied(t *testing.T) {
	runSigner(t, func(t *testing.T, o *Manager, c *apiserver.Client, s *signer, report ReportFunc, problem func() string) {
		s.setDecide(s.deny)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		i := &Identity{}
		go (&Renewer{manager: o, c: c, report: report, purpose: clientPurpose, identity: i, template: o.clientTemplate, onRenewed: func() {}}).Run(ctx)
		time.Sleep(5 * time.Second)
		if got := problem(); !strings.Contains(got, "was denied: no") {
			t.Errorf("after the first denial: got problem %q, want one that contains the message \"no\" of the denial", got)
		}
		time.Sleep(2 * time.Minute)
		if n := len(slices.Compact(slices.Sorted(slices.Values(s.requestNames())))); n != 4 {
			t.Errorf("got %d different requests in two minutes, want 4", n)
		}
		s.setDecide(s.approve)
		time.Sleep(5 * time.Minute)
		if i.ValidCertificate() == nil || problem() != "" {
			t.Errorf("after the approval: got certificate %v, problem %q; want a certificate and no problem", i.ValidCertificate(), problem())
		}
	})
}

// TestRenewer_InvalidCertificate checks that podd does not use a certificate with another key or name
// and creates another request. The intervals between the requests grow until a certificate is valid.
func TestRenewer_InvalidCertificate(t *testing.T) {
	for _, tt := range []struct {
		name string
		sign func(*signer, *certificates.CertificateSigningRequest)
		want string // part of the problem
	}{
		{"other key", func(s *signer, r *certificates.CertificateSigningRequest) {
			key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			s.sign(r, key.Public(), r.Name)
		}, "returned no valid certificate for podd's key"},
		{"not a certificate", func(_ *signer, r *certificates.CertificateSigningRequest) { r.Status.Certificate = []byte("x") }, "returned no valid certificate"},
		{"other name", func(s *signer, r *certificates.CertificateSigningRequest) { s.sign(r, nil, "else") }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runSigner(t, func(t *testing.T, o *Manager, c *apiserver.Client, s *signer, report ReportFunc, problem func() string) {
				s.setDecide(func(r *certificates.CertificateSigningRequest) { tt.sign(s, r) })
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				i := &Identity{}
				go (&Renewer{manager: o, c: c, report: report, purpose: clientPurpose, identity: i, template: o.clientTemplate, onRenewed: func() {}}).Run(ctx)
				time.Sleep(5 * time.Second)
				if got := problem(); !strings.Contains(got, tt.want) {
					t.Errorf("got problem %q, want one that contains %q", got, tt.want)
				}
				time.Sleep(2 * time.Minute)
				if n := len(slices.Compact(slices.Sorted(slices.Values(s.requestNames())))); n != 4 {
					t.Errorf("got %d different requests in two minutes, want 4", n)
				}
				s.setDecide(s.approve)
				time.Sleep(5 * time.Minute)
				if got := i.ValidCertificate(); got == nil || got.Leaf.Subject.CommonName != "system:node:n1" {
					t.Errorf("after the approval: got certificate %+v, want one for system:node:n1", got)
				}
				if got := problem(); got != "" {
					t.Errorf("after the approval: got problem %q, want none", got)
				}
			})
		})
	}
}

// TestRenewer_Clock checks a clock of this host that is ahead of the clock of the signer. According to the
// clock of this host, each certificate has already expired when podd gets the certificate. The intervals
// between requests must grow.
func TestRenewer_Clock(t *testing.T) {
	runSigner(t, func(t *testing.T, o *Manager, c *apiserver.Client, s *signer, report ReportFunc, problem func() string) {
		s.behind = 2 * time.Hour
		s.setDecide(s.approve)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		i := &Identity{}
		go (&Renewer{manager: o, c: c, report: report, purpose: clientPurpose, identity: i, template: o.clientTemplate, onRenewed: func() {}}).Run(ctx)
		time.Sleep(time.Hour)
		if n := len(s.requestNames()); n < 5 || n > 12 {
			t.Errorf("got %d requests in an hour, want 5 to 12", n)
		}
		if got := problem(); !strings.Contains(got, "according to the clock of this host") {
			t.Errorf("got problem %q, want one that contains \"according to the clock of this host\"", got)
		}
		s.change(func(*certificates.CertificateSigningRequest) { s.behind = 0 })
		time.Sleep(maxRejectionWait + time.Minute)
		if i.ValidCertificate() == nil || problem() != "" {
			t.Errorf("after the clocks are equal: got certificate %v, problem %q; want a certificate and no problem", i.ValidCertificate(), problem())
		}
	})
}

// TestRenewer_Serving checks that the serving certificate contains the addresses of the Node, and that
// podd uses a stored certificate immediately after its start.
func TestRenewer_Serving(t *testing.T) {
	runSigner(t, func(t *testing.T, o *Manager, api *apiserver.Client, s *signer, report ReportFunc, problem func() string) {
		name, ip := v1.NodeAddress{Type: v1.NodeHostName, Address: "n1"}, v1.NodeAddress{Type: v1.NodeInternalIP, Address: "10.0.0.9"}
		var addresses atomic.Pointer[[]v1.NodeAddress] // nil before the addresses of the Node are available
		i := o.LoadServingIdentity()
		serving := i.ValidCertificate
		ctx, cancel := context.WithCancel(t.Context())
		var renewer sync.WaitGroup
		defer renewer.Wait()
		defer cancel()
		renewer.Go(func() {
			o.NewServingRenewer(api, i, func() []v1.NodeAddress {
				if a := addresses.Load(); a != nil {
					return *a
				}
				return nil
			}, report).Run(ctx)
		})
		s.setDecide(s.approve)
		time.Sleep(10 * time.Second)
		if serving() != nil || len(s.requestNames()) != 0 {
			t.Errorf("before the addresses of the Node are available: got certificate %v, requests %v; want no certificate, no requests", serving(), s.requestNames())
		}
		publish := func(next ...v1.NodeAddress) *tls.Certificate {
			t.Helper()
			addresses.Store(&next)
			time.Sleep(30 * time.Second)
			if serving() == nil {
				t.Fatalf("got no serving certificate and problem %q, want a certificate", problem())
			}
			return serving()
		}
		one := publish(name, ip)
		if r := s.request(s.requestNames()[0]).Spec; r.SignerName != "kubernetes.io/kubelet-serving" || !slices.Equal(r.Usages, []certificates.KeyUsage{"digital signature", "server auth"}) {
			t.Errorf("got request %+v, want the signer kubernetes.io/kubelet-serving and the usages of a serving certificate", r)
		}
		if !slices.Equal(one.Leaf.DNSNames, []string{"n1"}) || len(one.Leaf.IPAddresses) != 1 || !one.Leaf.IPAddresses[0].Equal(net.ParseIP("10.0.0.9")) {
			t.Errorf("first certificate: got DNS names %v, addresses %v; want n1 and 10.0.0.9", one.Leaf.DNSNames, one.Leaf.IPAddresses)
		}
		if two := publish(name); two != one {
			t.Error("after the Node has lost its IP address: got a new certificate, want the first")
		}
		ip.Address = "fd00::1"
		if three := publish(name, ip); three == one || len(three.Leaf.IPAddresses) != 1 {
			t.Errorf("after the Node got fd00::1 instead of 10.0.0.9: got certificate with addresses %v, want a new certificate with one address", three.Leaf.IPAddresses)
		}
		if stored := o.LoadServingIdentity().ValidCertificate(); stored == nil || !stored.Leaf.Equal(serving().Leaf) {
			t.Errorf("after a restart: got certificate %v, want the stored certificate", stored)
		}
		publish(name, v1.NodeAddress{Type: v1.NodeExternalDNS, Address: "n1.example"})
		if !slices.Equal(serving().Leaf.DNSNames, []string{"n1", "n1.example"}) {
			t.Errorf("after the Node got an external DNS name: got DNS names %v, want n1 and n1.example", serving().Leaf.DNSNames)
		}
	})
}

// TestNeedsBootstrap checks when podd must request a client certificate with the bootstrap kubeconfig.
// It also checks the kubeconfig that podd writes, and that podd does not store a certificate with a
// wrong key.
func TestNeedsBootstrap(t *testing.T) {
	dir := t.TempDir()
	o := &Manager{Config: Config{Kubeconfig: filepath.Join(dir, "k"), CertDir: filepath.Join(dir, "pki")}, NodeName: "n1", Log: slog.New(slog.DiscardHandler)}
	// pair returns a certificate that was issued an hour ago and expires after lifetime, and its key.
	pair := func(lifetime time.Duration) (cert, key []byte) {
		private, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: o.certSubject(), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime)}
		der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := encodeKey(private)
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), text
	}
	if o.needsBootstrap() {
		t.Error("needsBootstrap without --bootstrap-kubeconfig: got true, want false")
	}
	o.BootstrapKubeconfig = filepath.Join(dir, "b")
	for _, c := range []struct {
		text string // "": no file
		want bool
	}{
		{"", true}, {"{}", true}, {clustertest.Kubeconfig[:90], true},
		{strings.Replace(clustertest.Kubeconfig, ", certificate-authority: ca.crt", "", 1), false},
	} {
		os.Remove(o.Kubeconfig)
		if c.text != "" {
			os.WriteFile(o.Kubeconfig, []byte(c.text), 0o600)
		}
		if got := o.needsBootstrap(); got != c.want {
			t.Errorf("needsBootstrap with the kubeconfig %.40q: got %t, want %t", c.text, got, c.want)
		}
	}
	file, err := clientcmd.Load([]byte(strings.Replace(clustertest.Kubeconfig, ", certificate-authority: ca.crt", "", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := o.writeKubeconfig(file); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(o.Kubeconfig); bytes.Contains(text, []byte("token")) || !bytes.Contains(text, []byte("client-key: "+o.certFiles(clientPurpose).currentPath())) {
		t.Errorf("written kubeconfig: got %s, want the path of the stored certificate and no token", text)
	}
	for _, lifetime := range []time.Duration{time.Hour, -time.Minute} {
		if _, err := o.certFiles(clientPurpose).store(pair(lifetime)); err != nil {
			t.Fatal(err)
		}
		if got := o.needsBootstrap(); got != (lifetime < 0) {
			t.Errorf("needsBootstrap with a stored certificate that expires after %s: got %t, want %t", lifetime, got, lifetime < 0)
		}
	}
	// The kubeconfig now contains the path of an expired certificate, which the next cases replace. A
	// directory at the path stands for a file that exists but cannot be read.
	current := o.certFiles(clientPurpose).currentPath()
	for name, replace := range map[string]func() error{
		"missing": func() error { return nil }, "broken": func() error { return os.WriteFile(current, []byte("x"), 0o600) },
		"unreadable": func() error { return os.Mkdir(current, 0o700) },
	} {
		if err := errors.Join(os.RemoveAll(current), replace()); err != nil {
			t.Fatal(err)
		}
		if got := o.needsBootstrap(); got != (name != "unreadable") {
			t.Errorf("needsBootstrap with a certificate file that is %s: got %t, want %t", name, got, name != "unreadable")
		}
	}
	before, _ := os.ReadFile(o.Kubeconfig)
	if err := errors.Join(os.Remove(o.Kubeconfig), os.Mkdir(o.Kubeconfig, 0o700)); err != nil {
		t.Fatal(err)
	}
	if o.needsBootstrap() {
		t.Error("needsBootstrap with an unreadable kubeconfig: got true, want false")
	}
	if err := errors.Join(os.Remove(o.Kubeconfig), os.WriteFile(o.Kubeconfig, before, 0o600), os.RemoveAll(current)); err != nil {
		t.Fatal(err)
	}
	if _, err := o.certFiles(clientPurpose).store(pair(time.Hour)); err != nil {
		t.Fatal(err)
	}
	// A certificate with a wrong key must not replace the stored certificate.
	cert, _ := pair(time.Hour)
	_, key := pair(time.Hour)
	storedBefore, _ := os.ReadFile(o.certFiles(clientPurpose).currentPath())
	if _, err := o.certFiles(clientPurpose).store(cert, key); err == nil {
		t.Error("storing a certificate with the key of another certificate: got no error, want one")
	}
	if after, _ := os.ReadFile(o.certFiles(clientPurpose).currentPath()); !bytes.Equal(storedBefore, after) {
		t.Error("after the error: got another stored certificate, want the previous one")
	}
}

func TestRenewalTime(t *testing.T) {
	times := map[time.Time]bool{}
	for n := range 100 {
		leaf := &x509.Certificate{NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1000, 0), Signature: fmt.Append(nil, n*7919)}
		at := renewalTime(leaf)
		if at.Before(time.Unix(700, 0)) || at.After(time.Unix(900, 0)) || !at.Equal(renewalTime(leaf)) {
			t.Errorf("renewalTime of a certificate with a lifetime of 1000 s: first call: got %s, second call: got %s; want the same time in both calls, between 700 s and 900 s after the epoch", at, renewalTime(leaf))
		}
		times[at] = true
	}
	if len(times) < 50 {
		t.Errorf("renewalTime: got %d different times for 100 certificates, want at least 50", len(times))
	}
}

// TestChooseIdentity checks that podd uses the certificate in the kubeconfig or the stored certificate,
// whichever was issued later. chooseIdentity must return nil if the kubeconfig contains a token.
func TestChooseIdentity(t *testing.T) {
	dir := t.TempDir()
	o := &Manager{Config: Config{CertDir: filepath.Join(dir, "pki"), RotateCertificates: true}, NodeName: "n1", Log: slog.New(slog.DiscardHandler)}
	ca := newSigner(t)
	configFor := func(name string, from time.Time, lifetime time.Duration) *rest.Config {
		private, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: from.Add(lifetime)}
		der, err := x509.CreateCertificate(rand.Reader, template, ca.ca, private.Public(), ca.key)
		if err != nil {
			t.Fatal(err)
		}
		key, _ := encodeKey(private)
		return &rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), KeyData: key}}
	}
	config := func(name string, from time.Time) *rest.Config { return configFor(name, from, 24*time.Hour) }
	const name = "system:node:n1"
	now := time.Now().Truncate(time.Second)
	// chooseIdentity stores a newer certificate of the kubeconfig. The cases depend on the stored
	// certificate of the previous case.
	for _, c := range []struct {
		name     string
		config   *rest.Config
		from     time.Time // NotBefore of the certificate to use
		external bool      // whether podd must use the certificate of the kubeconfig
	}{
		{"no stored certificate", config(name, now), now, true},
		{"kubeconfig newer than the stored certificate", config(name, now.Add(time.Minute)), now.Add(time.Minute), true},
		{"kubeconfig older than the stored certificate", config(name, now), now.Add(time.Minute), false},
	} {
		i, err := o.chooseIdentity(c.config)
		if err != nil || !i.current.Load().Leaf.NotBefore.Equal(c.from) || i.isExternal.Load() != c.external {
			t.Errorf("%s: got certificate with NotBefore %v, external %t, error %v; want NotBefore %v, external %t, no error", c.name, i.current.Load().Leaf.NotBefore, i.isExternal.Load(), err, c.from, c.external)
		}
	}
	expired := configFor(name, now.Add(-2*time.Hour), time.Hour)
	if _, err := o.certFiles(clientPurpose).store(expired.CertData, expired.KeyData); err != nil {
		t.Fatal(err)
	}
	if i, err := o.chooseIdentity(config(name, now.Add(-3*time.Hour))); err != nil || i.ValidCertificate() == nil || !i.isExternal.Load() {
		t.Errorf("newer but expired stored certificate: got identity %v, error %v; want the certificate of the kubeconfig", i, err)
	}
	o.NodeName = "n2" // the stored certificate has the name n1
	if i, err := o.chooseIdentity(config("system:node:n2", now.Add(-time.Minute))); err != nil || !i.isExternal.Load() {
		t.Errorf("stored certificate of another node: got identity %v, error %v; want the certificate of the kubeconfig", i, err)
	}
	if err := os.WriteFile(o.certFiles(clientPurpose).currentPath(), []byte("invalid"), 0o600); err != nil {
		t.Fatal(err)
	}
	if i, err := o.chooseIdentity(config("system:node:n2", now)); err != nil || !i.isExternal.Load() {
		t.Errorf("invalid stored certificate: got identity %v, error %v; want the certificate of the kubeconfig", i, err)
	}
	if i, err := o.chooseIdentity(&rest.Config{BearerToken: "t"}); i != nil || err != nil {
		t.Errorf("kubeconfig with a token: got identity %v, error %v; want no identity, no error", i, err)
	}
	o.RotateCertificates = false
	if i, err := o.chooseIdentity(config(name, now)); i != nil || err != nil {
		t.Errorf("without RotateCertificates: got identity %v, error %v; want no identity, no error", i, err)
	}
}
