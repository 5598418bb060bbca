package cluster

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
	"testing"
	"testing/synctest"
	"time"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"podd/server"
)

// signer is an API server that has requests for certificates alone, and signs those
// that it has approved, with a life of an hour.
type signer struct {
	t    *testing.T
	ca   *x509.Certificate
	key  *ecdsa.PrivateKey
	mu   sync.Mutex // guards all following fields
	has  map[string]*certificates.CertificateSigningRequest
	made []string // names, as they came
	// decide is made of each that comes; nil leaves it.
	decide func(*certificates.CertificateSigningRequest)
	wait   []*io.PipeWriter
	behind time.Duration // its clock, of this machine's
}

func newSigner(t *testing.T) *signer {
	s := &signer{t: t, has: map[string]*certificates.CertificateSigningRequest{}}
	s.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.ca = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, NotBefore: time.Now(), NotAfter: time.Now().Add(1000 * time.Hour)}
	return s
}

// approve signs; the caller holds mu.
func (s *signer) approve(r *certificates.CertificateSigningRequest) { s.sign(r, nil, "") }

// sign does so for a key, and a name, that may be others than are asked for.
func (s *signer) sign(r *certificates.CertificateSigningRequest, key any, name string) {
	block, _ := pem.Decode(r.Spec.Request)
	q, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || q.CheckSignature() != nil {
		s.t.Errorf("a bad request: %v", err)
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

func (s *signer) deny(r *certificates.CertificateSigningRequest) {
	r.Status.Conditions = append(r.Status.Conditions, certificates.CertificateSigningRequestCondition{Type: certificates.CertificateDenied, Status: v1.ConditionTrue, Message: "no"})
}

// with does something to the newest request, and tells those who wait.
func (s *signer) with(f func(*certificates.CertificateSigningRequest)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.has[s.made[len(s.made)-1]])
	for _, w := range s.wait {
		w.Close()
	}
	s.wait = nil
}

func (s *signer) decides(f func(*certificates.CertificateSigningRequest)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decide = f
}

// names are of what was asked for, in its order.
func (s *signer) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.made)
}

func (s *signer) request(name string) *certificates.CertificateSigningRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.has[name].DeepCopy()
}

// RoundTrip implements http.RoundTripper.
func (s *signer) RoundTrip(q *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	if !strings.HasPrefix(q.URL.Path, path) {
		return refusal(apierrors.NewBadRequest(q.URL.Path)), nil
	}
	resource := schema.GroupResource{Group: certificates.GroupName, Resource: "certificatesigningrequests"}
	name := strings.TrimPrefix(strings.TrimPrefix(q.URL.Path, path), "/")
	switch {
	case q.URL.Query().Get("watch") != "":
		r, w := io.Pipe()
		s.wait = append(s.wait, w)
		context.AfterFunc(q.Context(), func() { w.CloseWithError(context.Canceled) })
		return &http.Response{StatusCode: 200, Header: jsonType, Body: r}, nil
	case q.Method == http.MethodPost:
		body, _ := io.ReadAll(q.Body)
		r := parsed[certificates.CertificateSigningRequest](body)
		if s.has[r.Name] != nil {
			return refusal(apierrors.NewAlreadyExists(resource, r.Name)), nil
		}
		r.TypeMeta = metav1.TypeMeta{Kind: "CertificateSigningRequest", APIVersion: "certificates.k8s.io/v1"}
		s.has[r.Name], s.made = r, append(s.made, r.Name)
		if s.decide != nil {
			s.decide(r)
		}
		return answer(201, r), nil
	case s.has[name] == nil:
		return refusal(apierrors.NewNotFound(resource, name)), nil
	}
	return answer(200, s.has[name]), nil
}

// renewing is a node that asks s for certificates in a time of its own, which test is
// given the client and what users were told of.
func renewing(t *testing.T, test func(t *testing.T, o *Options, c *client, s *signer, say *problemReporter, told func() string)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var last string
		o := &Options{
			Kubeconfig: filepath.Join(dir, "kubeconfig"), CertDir: filepath.Join(dir, "pki"), Node: "n1", RotateCertificates: true,
			QPS: 50, Burst: 100, ContentType: "application/json", Log: slog.New(slog.DiscardHandler),
			OnProblem: func(_ context.Context, why string) { mu.Lock(); last = why; mu.Unlock() },
		}
		f := newSigner(t)
		c := &client{host: "https://api", close: func() {}}
		if err := c.open(&rest.Config{Host: "http://api", Transport: f, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, o); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		say := newProblemReporter(o)
		go say.run(ctx)
		test(t, o, c, f, say, func() string { synctest.Wait(); mu.Lock(); defer mu.Unlock(); return last })
		cancel()
		f.mu.Lock()
		for _, w := range f.wait {
			w.Close()
		}
		f.mu.Unlock()
	})
}

// A certificate is asked for once, by the same name after a start, waits for approval,
// is kept as a link to a dated file, and renewed in time.
func TestRenew(t *testing.T) {
	renewing(t, func(t *testing.T, o *Options, c *client, s *signer, say *problemReporter, told func() string) {
		run := func(i *identity) (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			r := &renewer{o: o, c: c, problems: say, purpose: clientPurpose, identity: i, template: o.clientTemplate, onRenewed: c.renew}
			all.Go(func() { r.run(ctx) })
			time.Sleep(pendingNotice + time.Second)
			return func() { cancel(); all.Wait() }
		}
		var attempts []time.Time // what was replaced was made then
		o.OnRenewal = func(serving bool, made time.Time, err error) {
			if serving || err != nil {
				t.Errorf("attempted: serving %t, %v", serving, err)
			}
			attempts = append(attempts, made)
		}
		i := &identity{}
		stop := run(i)
		if s.names() == nil {
			t.Fatal("nothing was asked for")
		}
		name := s.names()[0]
		if got, want := told(), "certificate signing request "+name+" waits for approval: kubectl certificate approve "+name; got != want {
			t.Errorf("told %q, want %q", got, want)
		}
		stop()
		stop = run(i)
		if len(s.names()) != 1 {
			t.Errorf("asked for %v", s.names())
		}
		r := s.request(name)
		if r.Spec.SignerName != "kubernetes.io/kube-apiserver-client-kubelet" || !slices.Equal(r.Spec.Usages, []certificates.KeyUsage{"digital signature", "client auth"}) {
			t.Errorf("asked %+v", r.Spec)
		}
		s.with(s.approve)
		time.Sleep(10 * time.Second)
		first := i.valid()
		if first == nil || first.Leaf.Subject.CommonName != "system:node:n1" || !slices.Equal(first.Leaf.Subject.Organization, []string{"system:nodes"}) || told() != "" {
			t.Fatalf("got %v, told %q", first, told())
		}
		link, err := os.Readlink(o.pairs(clientPurpose).current())
		info, serr := os.Stat(o.pairs(clientPurpose).current())
		if err != nil || serr != nil || !strings.HasPrefix(link, "kubelet-client-2") || info.Mode().Perm() != 0o600 {
			t.Errorf("current is %q, %v, %v", link, info, err)
		}
		if _, err := os.Stat(o.pairs(clientPurpose).pending()); err == nil {
			t.Error("the key that was asked for is still there")
		}
		s.decides(s.approve)
		time.Sleep(41 * time.Minute) // of 60: it is not yet time
		if len(s.names()) != 1 {
			t.Errorf("asked again after 41m")
		}
		time.Sleep(14 * time.Minute)
		second := i.valid()
		if len(s.names()) != 2 || second == nil || second.Leaf.Equal(first.Leaf) || c.renewed.Load() != 2 {
			t.Errorf("after 55m: asked %d times, renewed %d times", len(s.names()), c.renewed.Load())
		}
		stop()
		if len(attempts) != 2 || !attempts[0].IsZero() || !attempts[1].Equal(first.Leaf.NotBefore) {
			t.Errorf("attempted %v", attempts)
		}
		if kept, err := o.pairs(clientPurpose).load(); err != nil || !kept.Leaf.Equal(second.Leaf) {
			t.Errorf("kept %v, %v", kept, err)
		}
	})
}

// A request that the cluster forgot is made again, and nobody is told of that.
func TestRenewForgotten(t *testing.T) {
	renewing(t, func(t *testing.T, o *Options, c *client, s *signer, say *problemReporter, told func() string) {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			(&renewer{o: o, c: c, problems: say, purpose: clientPurpose, identity: &identity{}, template: o.clientTemplate, onRenewed: func() {}}).run(ctx)
		})
		time.Sleep(time.Hour)
		before := told()
		s.with(func(r *certificates.CertificateSigningRequest) { delete(s.has, r.Name) })
		time.Sleep(time.Minute)
		if n := s.names(); len(n) != 2 || n[0] != n[1] || told() != before {
			t.Errorf("asked for %v, told %q and %q", n, before, told())
		}
		cancel()
		all.Wait()
	})
}

// Who is refused asks anew, with another key, ever more seldom.
func TestRenewRefused(t *testing.T) {
	renewing(t, func(t *testing.T, o *Options, c *client, s *signer, say *problemReporter, told func() string) {
		s.decides(s.deny)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		i := &identity{}
		go (&renewer{o: o, c: c, problems: say, purpose: clientPurpose, identity: i, template: o.clientTemplate, onRenewed: func() {}}).run(ctx)
		time.Sleep(5 * time.Second)
		if got := told(); !strings.Contains(got, "was denied: no; podd asks anew later") {
			t.Errorf("told %q", got)
		}
		time.Sleep(2 * time.Minute)
		if n := len(slices.Compact(slices.Sorted(slices.Values(s.names())))); n != 4 {
			t.Errorf("%d requests in two minutes", n)
		}
		s.decides(s.approve)
		time.Sleep(5 * time.Minute)
		if i.valid() == nil || told() != "" {
			t.Errorf("told %q", told())
		}
	})
}

// What is no certificate for podd's key, or for nothing that was asked, does not keep
// podd from one that is, and is asked for ever more seldom.
func TestRenewSpoilt(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(*signer, *certificates.CertificateSigningRequest)
		told  string
	}{
		{"another's key", func(s *signer, r *certificates.CertificateSigningRequest) {
			key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			s.sign(r, key.Public(), r.Name)
		}, "got what is no certificate for podd's key"},
		{"no certificate", func(_ *signer, r *certificates.CertificateSigningRequest) { r.Status.Certificate = []byte("x") }, "got what is no certificate"},
		{"another's name", func(s *signer, r *certificates.CertificateSigningRequest) { s.sign(r, nil, "else") }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			renewing(t, func(t *testing.T, o *Options, c *client, s *signer, say *problemReporter, told func() string) {
				s.decides(func(r *certificates.CertificateSigningRequest) { tt.spoil(s, r) })
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				i := &identity{}
				go (&renewer{o: o, c: c, problems: say, purpose: clientPurpose, identity: i, template: o.clientTemplate, onRenewed: func() {}}).run(ctx)
				time.Sleep(5 * time.Second)
				if got := told(); !strings.Contains(got, tt.told) {
					t.Errorf("told %q", got)
				}
				time.Sleep(2 * time.Minute)
				if n := len(slices.Compact(slices.Sorted(slices.Values(s.names())))); n != 4 {
					t.Errorf("%d requests in two minutes", n)
				}
				s.decides(s.approve)
				time.Sleep(5 * time.Minute)
				if is := i.valid(); is == nil || is.Leaf.Subject.CommonName != "system:node:n1" || told() != "" {
					t.Errorf("told %q", told())
				}
			})
		})
	}
}

// Where this machine's clock is ahead by a life, podd asks ever more seldom, until it
// is set.
func TestRenewClock(t *testing.T) {
	renewing(t, func(t *testing.T, o *Options, c *client, s *signer, say *problemReporter, told func() string) {
		s.behind = 2 * time.Hour
		s.decides(s.approve)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		i := &identity{}
		go (&renewer{o: o, c: c, problems: say, purpose: clientPurpose, identity: i, template: o.clientTemplate, onRenewed: func() {}}).run(ctx)
		time.Sleep(time.Hour)
		if n := len(s.names()); n < 5 || n > 12 {
			t.Errorf("%d requests in an hour", n)
		}
		if got := told(); !strings.Contains(got, "by this machine's clock") {
			t.Errorf("told %q", got)
		}
		s.with(func(*certificates.CertificateSigningRequest) { s.behind = 0 })
		time.Sleep(maxDenied + time.Minute)
		if i.valid() == nil || told() != "" {
			t.Errorf("told %q", told())
		}
	})
}

// What the node's API shows is of the node's addresses, whichever they are now, and
// that which was kept counts from the start.
func TestRenewServing(t *testing.T) {
	renewing(t, func(t *testing.T, o *Options, api *client, s *signer, say *problemReporter, told func() string) {
		node := func(addresses ...v1.NodeAddress) *server.View {
			n := machine()
			n.Status.Addresses = addresses
			return &server.View{Revision: 1, NodeObject: n}
		}
		name, ip := v1.NodeAddress{Type: v1.NodeHostName, Address: "n1"}, v1.NodeAddress{Type: v1.NodeInternalIP, Address: "10.0.0.9"}
		state := server.NewLatest(&server.View{Revision: 1})
		c := New(*o)
		c.state = state
		good := c.Serving()
		var nodes watchable[snapshot[*v1.Node]]
		run := func() (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			r := &renewer{o: &c.o, c: api, problems: say, purpose: servingPurpose, identity: c.serving, template: c.servingTemplate(&nodes), onRenewed: func() {}}
			all.Go(func() { r.run(ctx) })
			return func() { cancel(); all.Wait() }
		}
		stop := run()
		s.decides(s.approve)
		time.Sleep(10 * time.Second)
		if good() != nil || len(s.names()) != 0 {
			t.Errorf("before the machine is known: %v", s.names())
		}
		show := func(v *server.View) *tls.Certificate {
			t.Helper()
			v.Revision = state.View().Revision + 1
			state.Publish(v)
			time.Sleep(30 * time.Second)
			if good() == nil {
				t.Fatalf("none, told %q", told())
			}
			return good()
		}
		one := show(node(name, ip))
		if r := s.request(s.names()[0]).Spec; r.SignerName != "kubernetes.io/kubelet-serving" || !slices.Equal(r.Usages, []certificates.KeyUsage{"digital signature", "server auth"}) {
			t.Errorf("asked %+v", r)
		}
		if !slices.Equal(one.Leaf.DNSNames, []string{"n1"}) || len(one.Leaf.IPAddresses) != 1 || !one.Leaf.IPAddresses[0].Equal(net.ParseIP("10.0.0.9")) {
			t.Errorf("of %v %v", one.Leaf.DNSNames, one.Leaf.IPAddresses)
		}
		if two := show(node(name)); two != one {
			t.Error("asked again for less")
		}
		ip.Address = "fd00::1"
		if three := show(node(name, ip)); three == one || len(three.Leaf.IPAddresses) != 1 {
			t.Errorf("of %v", three.Leaf.IPAddresses)
		}
		if kept := New(*o).Serving()(); kept == nil || !kept.Leaf.Equal(good().Leaf) {
			t.Errorf("kept %v", kept)
		}
		// A cloud controller says otherwise.
		stop()
		c.o.ExternalCloud = true
		defer run()()
		nodes.set(snapshot[*v1.Node]{items: map[types.NamespacedName]*v1.Node{{Name: "n1"}: {Status: node(name, v1.NodeAddress{Type: v1.NodeExternalDNS, Address: "n1.example"}).NodeObject.Status}}})
		time.Sleep(30 * time.Second)
		if !slices.Equal(good().Leaf.DNSNames, []string{"n1", "n1.example"}) {
			t.Errorf("of %v", good().Leaf.DNSNames)
		}
	})
}

// Without an identity podd asks for one and writes the kubeconfig; with one it does not.
func TestBootstraps(t *testing.T) {
	dir := t.TempDir()
	o := &Options{Kubeconfig: filepath.Join(dir, "k"), CertDir: filepath.Join(dir, "pki"), Node: "n1", Log: slog.New(slog.DiscardHandler)}
	pair := func(life time.Duration) (cert, key []byte) {
		private, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: o.subject(), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(life)}
		der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := pemOf(private)
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), text
	}
	if o.needsBootstrap() {
		t.Error("without the flag")
	}
	o.BootstrapKubeconfig = filepath.Join(dir, "b")
	for _, c := range []struct {
		text string // "" for no file
		want bool
	}{
		{"", true}, {"{}", true}, {kubeconfig[:90], true},
		{strings.Replace(kubeconfig, ", certificate-authority: ca.crt", "", 1), false},
	} {
		os.Remove(o.Kubeconfig)
		if c.text != "" {
			os.WriteFile(o.Kubeconfig, []byte(c.text), 0o600)
		}
		if got := o.needsBootstrap(); got != c.want {
			t.Errorf("%.40q: %t", c.text, got)
		}
	}
	file, err := clientcmd.Load([]byte(strings.Replace(kubeconfig, ", certificate-authority: ca.crt", "", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := o.writeKubeconfig(file); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(o.Kubeconfig); bytes.Contains(text, []byte("token")) || !bytes.Contains(text, []byte("client-key: "+o.pairs(clientPurpose).current())) {
		t.Errorf("wrote %s", text)
	}
	for _, life := range []time.Duration{time.Hour, -time.Minute} {
		if _, err := o.pairs(clientPurpose).store(pair(life)); err != nil {
			t.Fatal(err)
		}
		if got := o.needsBootstrap(); got != (life < 0) {
			t.Errorf("with a certificate for %s: %t", life, got)
		}
	}
	// What is kept is over. A directory cannot be read, as a disk that fails.
	current := o.pairs(clientPurpose).current()
	for note, make := range map[string]func() error{
		"gone": func() error { return nil }, "broken": func() error { return os.WriteFile(current, []byte("x"), 0o600) },
		"unreadable": func() error { return os.Mkdir(current, 0o700) },
	} {
		if err := errors.Join(os.RemoveAll(current), make()); err != nil {
			t.Fatal(err)
		}
		if got := o.needsBootstrap(); got != (note != "unreadable") {
			t.Errorf("with a certificate that is %s: %t", note, got)
		}
	}
	was, _ := os.ReadFile(o.Kubeconfig)
	if err := errors.Join(os.Remove(o.Kubeconfig), os.Mkdir(o.Kubeconfig, 0o700)); err != nil {
		t.Fatal(err)
	}
	if o.needsBootstrap() {
		t.Error("with a kubeconfig that is unreadable")
	}
	if err := errors.Join(os.Remove(o.Kubeconfig), os.WriteFile(o.Kubeconfig, was, 0o600), os.RemoveAll(current)); err != nil {
		t.Fatal(err)
	}
	if _, err := o.pairs(clientPurpose).store(pair(time.Hour)); err != nil {
		t.Fatal(err)
	}
	// Nothing that is no pair replaces one that is.
	cert, _ := pair(time.Hour)
	_, key := pair(time.Hour)
	before, _ := os.ReadFile(o.pairs(clientPurpose).current())
	if _, err := o.pairs(clientPurpose).store(cert, key); err == nil {
		t.Error("kept another's key")
	}
	if after, _ := os.ReadFile(o.pairs(clientPurpose).current()); !bytes.Equal(before, after) {
		t.Error("the pair is another")
	}
}

func TestRenewAt(t *testing.T) {
	seen := map[time.Time]bool{}
	for n := range 100 {
		leaf := &x509.Certificate{NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1000, 0), Signature: fmt.Append(nil, n*7919)}
		at := renewAt(leaf)
		if at.Before(time.Unix(700, 0)) || at.After(time.Unix(900, 0)) || !at.Equal(renewAt(leaf)) {
			t.Errorf("at %s", at)
		}
		seen[at] = true
	}
	if len(seen) < 50 {
		t.Errorf("%d times for 100 certificates", len(seen))
	}
}

// With renewal podd is known by what was made later, the kubeconfig's certificate or
// the one that is kept; by a kubeconfig's token in any case.
func TestIdentity(t *testing.T) {
	dir := t.TempDir()
	o := &Options{CertDir: filepath.Join(dir, "pki"), Node: "n1", RotateCertificates: true, Log: slog.New(slog.DiscardHandler)}
	ca := newSigner(t)
	lasting := func(name string, from time.Time, life time.Duration) *rest.Config {
		private, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: from.Add(life)}
		der, err := x509.CreateCertificate(rand.Reader, template, ca.ca, private.Public(), ca.key)
		if err != nil {
			t.Fatal(err)
		}
		key, _ := pemOf(private)
		return &rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), KeyData: key}}
	}
	config := func(name string, from time.Time) *rest.Config { return lasting(name, from, 24*time.Hour) }
	const name = "system:node:n1"
	now := time.Now().Truncate(time.Second)
	for _, c := range []struct {
		what   string
		config *rest.Config
		from   time.Time // of the certificate that counts
		given  bool
	}{
		{"nothing is kept", config(name, now), now, true},
		{"the kubeconfig is newer", config(name, now.Add(time.Minute)), now.Add(time.Minute), true},
		{"the kubeconfig is older", config(name, now), now.Add(time.Minute), false},
	} {
		i, err := o.identity(c.config)
		if err != nil || !i.now.Load().Leaf.NotBefore.Equal(c.from) || i.given.Load() != c.given {
			t.Errorf("%s: %v, given %t, %v", c.what, i.now.Load().Leaf.NotBefore, i.given.Load(), err)
		}
	}
	short := lasting(name, now.Add(-2*time.Hour), time.Hour)
	if _, err := o.pairs(clientPurpose).store(short.CertData, short.KeyData); err != nil {
		t.Fatal(err)
	}
	if i, err := o.identity(config(name, now.Add(-3*time.Hour))); err != nil || i.valid() == nil || !i.given.Load() {
		t.Errorf("what is kept is later, and over: %v", err)
	}
	o.Node = "n2" // what is kept is of another
	if i, err := o.identity(config("system:node:n2", now.Add(-time.Minute))); err != nil || !i.given.Load() {
		t.Errorf("of another name: %v", err)
	}
	if err := os.WriteFile(o.pairs(clientPurpose).current(), []byte("no pair"), 0o600); err != nil {
		t.Fatal(err)
	}
	if i, err := o.identity(config("system:node:n2", now)); err != nil || !i.given.Load() {
		t.Errorf("what is kept is spoilt: %v", err)
	}
	if i, err := o.identity(&rest.Config{BearerToken: "t"}); i != nil || err != nil {
		t.Errorf("a token: %v, %v", i, err)
	}
	o.RotateCertificates = false
	if i, err := o.identity(config(name, now)); i != nil || err != nil {
		t.Errorf("without renewal: %v, %v", i, err)
	}
}
