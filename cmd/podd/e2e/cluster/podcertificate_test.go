//go:build e2e

package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const certificateRequestsPath = "/apis/certificates.k8s.io/v1/namespaces/default/podcertificaterequests"

// A podSigner issues pod certificates as an external signer does: it reads PodCertificateRequests
// from the API server and sets their status.
type podSigner struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newPodSigner(t *testing.T) *podSigner {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "signer"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	ca.Raw = der
	return &podSigner{key, ca}
}

// untilRequests waits until a pod has n pending requests to a signer, and returns them.
func untilRequests(t *testing.T, pod, signer string, n int) []certificates.PodCertificateRequest {
	t.Helper()
	var pending []certificates.PodCertificateRequest
	eventually(t, fmt.Sprintf("pod %s has %d pending requests to %s", pod, n, signer), func() error {
		pending = nil
		all := &certificates.PodCertificateRequestList{}
		if err := plane.do(http.MethodGet, certificateRequestsPath, nil, all); err != nil {
			return err
		}
		for _, r := range all.Items {
			if r.Spec.PodName == pod && r.Spec.SignerName == signer && len(r.Status.Conditions) == 0 {
				pending = append(pending, r)
			}
		}
		if len(pending) != n {
			return fmt.Errorf("got %d pending requests, want %d", len(pending), n)
		}
		return nil
	})
	return pending
}

// decide sets the status of a request, with a condition of the given type. The API server verifies
// that a certificate in status matches the request.
func decide(t *testing.T, r *certificates.PodCertificateRequest, condition, message string, status certificates.PodCertificateRequestStatus) {
	t.Helper()
	status.Conditions = []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue, Reason: "Test", Message: message, LastTransitionTime: metav1.Now()}}
	if err := plane.do(http.MethodPatch, certificateRequestsPath+"/"+r.Name+"/status", map[string]any{"status": status}, nil); err != nil {
		t.Fatal(err)
	}
}

// issue issues the certificate of a request, and returns its serial number.
func (s *podSigner) issue(t *testing.T, r *certificates.PodCertificateRequest) *big.Int {
	t.Helper()
	request, err := x509.ParseCertificateRequest(r.Spec.StubPKCS10Request)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Second)
	leaf := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: r.Spec.PodName}, NotBefore: now.Add(-time.Minute), NotAfter: now.Add(59 * time.Minute)}
	der, err := x509.CreateCertificate(rand.Reader, leaf, s.cert, request.PublicKey, s.key)
	if err != nil {
		t.Fatal(err)
	}
	chain := "leaf\n" + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})) + "CA\n" + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.cert.Raw}))
	decide(t, r, "Issued", "", certificates.PodCertificateRequestStatus{
		CertificateChain: chain, NotBefore: &metav1.Time{Time: leaf.NotBefore}, BeginRefreshAt: &metav1.Time{Time: leaf.NotBefore.Add(10 * time.Minute)}, NotAfter: &metav1.Time{Time: leaf.NotAfter},
	})
	return serial
}

// podCertificate returns a source of a projected volume that requests a certificate. The result has the
// paths and options in the parameter paths.
func podCertificate(signer, keyType string, paths v1.PodCertificateProjection) v1.VolumeProjection {
	paths.SignerName, paths.KeyType = signer, keyType
	return v1.VolumeProjection{PodCertificate: &paths}
}

// readPair reads a key and a certificate chain in a pod. It returns an error unless they belong
// together.
func (a *agent) readPair(pod, chain, key string) (*x509.Certificate, string, error) {
	chainText, err := a.verb("exec", pod, "--", "cat", chain)
	if err != nil {
		return nil, "", errors.New(chainText)
	}
	keyText, err := a.verb("exec", pod, "--", "cat", key)
	if err != nil {
		return nil, "", errors.New("reading the key failed")
	}
	pair, err := tls.X509KeyPair([]byte(chainText), []byte(keyText))
	if err != nil {
		return nil, "", err
	}
	return pair.Leaf, keyText, nil
}

// TestPodCertificates checks that a pod gets keys and certificates of each key type from signers of
// the cluster, with the permissions of a node. After a restart, podd must replace them. The keys
// must only be in the volume, not in other files of podd or in responses.
func TestPodCertificates(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "o5").start()
	a.untilReady()
	createServiceAccount(t)
	signer, p := newPodSigner(t), boundPod(a.node, "o5-app")
	p.Spec.SecurityContext = &v1.PodSecurityContext{RunAsUser: new(int64(1000)), FSGroup: new(int64(2000))}
	keyTypes := []string{"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"}
	var sources []v1.VolumeProjection
	for _, keyType := range keyTypes {
		sources = append(sources, podCertificate("o5.example.com/mesh", keyType, v1.PodCertificateProjection{KeyPath: keyType + "/key.pem", CertificateChainPath: keyType + "/chain.pem"}))
	}
	sources = append(sources, podCertificate("o5.example.com/other", "ED25519", v1.PodCertificateProjection{CredentialBundlePath: "bundle.pem", MaxExpirationSeconds: new(int32(3600))}))
	addVolume(p, "own", v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: sources}})
	create(t, inDefault+"pods", p.Name, p)
	a.untilWaiting(p.Name, "ContainerCreating", "has not issued the certificate of PodCertificateRequest default/req-")
	var keys []string
	began := time.Now()
	for _, phase := range []string{"start", "restart"} {
		serials := map[string]bool{}
		for _, r := range append(untilRequests(t, p.Name, "o5.example.com/mesh", len(keyTypes)), untilRequests(t, p.Name, "o5.example.com/other", 1)...) {
			serials[signer.issue(t, &r).String()] = true
		}
		a.eventually(phase+": the pod has the issued certificates", func() error {
			read := append([]string{}, keys...)
			for i := range len(keyTypes) + 1 {
				chain, key := "/own/bundle.pem", "/own/bundle.pem"
				if i < len(keyTypes) {
					chain, key = "/own/"+keyTypes[i]+"/chain.pem", "/own/"+keyTypes[i]+"/key.pem"
				}
				leaf, text, err := a.readPair(p.Name, chain, key)
				if err != nil {
					return fmt.Errorf("%s: %w", chain, err)
				}
				if !serials[leaf.SerialNumber.String()] {
					return fmt.Errorf("%s: got the serial number %s, want one that was issued after the %s", chain, leaf.SerialNumber, phase)
				}
				read = append(read, text)
			}
			keys = read
			return nil
		})
		t.Logf("%s: all certificates are in the pod after %s", phase, time.Since(began).Round(time.Millisecond))
		if phase == "start" {
			a.untilOutput(p.Name, "1000 2000 640", "stat", "-L", "-c", "%u %g %a", "/own/bundle.pem")
			a.untilOutput(p.Name, "2", "grep", "-c", "BEGIN CERTIFICATE", "/own/bundle.pem")
			a.untilOutput(p.Name, "tmpfs", "sh", "-c", "grep ' /own ' /proc/mounts | cut -d' ' -f1")
			a.kill()
			a.start()
			began = time.Now()
		}
	}
	a.checkNotStored(keys)
}

// checkNotStored checks that no file of podd, except those in volumes, contains a key, and that no
// endpoint returns one.
func (a *agent) checkNotStored(keys []string) {
	a.t.Helper()
	texts := map[string]string{}
	for _, format := range []string{"json", "yaml"} {
		out, err := a.verb("get", "pods", "-o", format)
		if err != nil {
			a.t.Fatal(out)
		}
		texts["podd get -o "+format] = out
	}
	err := filepath.WalkDir(a.dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && e.Name() == "volumes":
			return fs.SkipDir
		case e.Type().IsRegular():
			text, err := os.ReadFile(path)
			texts[path] = string(text)
			return err
		}
		return nil
	})
	if err != nil {
		a.t.Fatal(err)
	}
	for where, text := range texts {
		for _, key := range keys {
			if strings.Contains(text, strings.Split(key, "\n")[1]) {
				a.t.Errorf("%s: got a private key in it, want none", where)
			}
		}
	}
	if len(texts) < 5 {
		a.t.Errorf("searching for private keys: got %d files and outputs, want 5 or more, such as the log and the journal", len(texts))
	}
}

// TestPodCertificates_Denied checks that a denied request is reported as the reason why the pod does
// not start, and as events.
func TestPodCertificates_Denied(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "o6").start()
	a.untilReady()
	createServiceAccount(t)
	p := boundPod(a.node, "o6-app")
	addVolume(p, "own", v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
		podCertificate("o6.example.com/mesh", "ED25519", v1.PodCertificateProjection{CredentialBundlePath: "bundle.pem"})}}})
	create(t, inDefault+"pods", p.Name, p)
	r := untilRequests(t, p.Name, "o6.example.com/mesh", 1)[0]
	decide(t, &r, "Denied", "use another key", certificates.PodCertificateRequestStatus{})
	denied := fmt.Sprintf(`PodCertificateRequest default/%s was denied, reason="Test", message="use another key"`, r.Name)
	a.untilWaiting(p.Name, "ContainerCreating", denied+"; delete the pod to request another certificate")
	a.eventually("the cluster has the events", func() error {
		all := &v1.EventList{}
		if err := plane.do(http.MethodGet, inDefault+"events", nil, all); err != nil {
			return err
		}
		found := map[string]string{}
		for _, e := range all.Items {
			if e.InvolvedObject.Name == p.Name {
				found[e.Reason] = e.Message
			}
		}
		if found["Denied"] != denied || !strings.Contains(found["FailedMount"], denied) {
			return fmt.Errorf("got events %q, want events Denied and FailedMount with the message %q", found, denied)
		}
		return nil
	})
}
