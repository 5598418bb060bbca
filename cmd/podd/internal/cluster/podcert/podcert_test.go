package podcert_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	certificates "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/cmd/podd/internal/cluster/podcert"
	"podd/manifest/manifesttest"
)

// TestNewKey checks the algorithm of each key type and the signature of the request, which proves the
// possession of the private key. JSON and the verbs of fmt must not show the private key.
func TestNewKey(t *testing.T) {
	for keyType, want := range map[string]string{
		"RSA3072": "*rsa.PublicKey 3072", "RSA4096": "*rsa.PublicKey 4096", "ECDSAP256": "*ecdsa.PublicKey P-256",
		"ECDSAP384": "*ecdsa.PublicKey P-384", "ECDSAP521": "*ecdsa.PublicKey P-521", "ED25519": "ed25519.PublicKey",
	} {
		key, err := podcert.NewKey(keyType)
		if err != nil {
			t.Fatal(err)
		}
		request, err := x509.ParseCertificateRequest(key.Request)
		if err != nil || request.CheckSignature() != nil || len(request.Subject.Names)+len(request.Extensions) > 0 {
			t.Fatalf("%s: got request %+v, error %v; want a request without names and extensions, with a valid signature", keyType, request, err)
		}
		block, rest := pem.Decode(key.PEM())
		if block == nil || block.Type != "PRIVATE KEY" || len(rest) > 0 {
			t.Fatalf("%s: got a PEM block of type PRIVATE KEY: %t, %d bytes after this block; want a block, 0 bytes", keyType, block != nil, len(rest))
		}
		private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if !private.(crypto.Signer).Public().(interface{ Equal(crypto.PublicKey) bool }).Equal(request.PublicKey) {
			t.Errorf("%s: got another public key in the request, want that of the private key", keyType)
		}
		if got := describe(request.PublicKey); got != want {
			t.Errorf("%s: got public key %q, want %q", keyType, got, want)
		}
		text, _ := json.Marshal(key)
		for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			text = append(text, fmt.Sprintf(format+format, key, *key)...)
		}
		if secret := strings.Split(string(key.PEM()), "\n")[1]; strings.Contains(string(text), secret) || strings.Contains(string(text), fmt.Sprintf("%x", key.PEM()[:20])) {
			t.Errorf("%s: got the private key in JSON or in the output of a fmt verb, want it hidden", keyType)
		}
	}
	if _, err := podcert.NewKey("RSA1024"); err == nil || !strings.Contains(err.Error(), `"RSA1024"`) {
		t.Errorf("NewKey(\"RSA1024\"): got error %v, want one that contains the type", err)
	}
}

// describe returns the type and size of a public key.
func describe(key crypto.PublicKey) string {
	text := fmt.Sprintf("%T", key)
	switch key := key.(type) {
	case *rsa.PublicKey:
		text += fmt.Sprint(" ", key.N.BitLen())
	case *ecdsa.PublicKey:
		text += " " + key.Params().Name
	}
	return text
}

var begin = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// status returns a status with a true condition, or with no condition if condition is "".
func status(condition, chain string) certificates.PodCertificateRequestStatus {
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: begin.Add(d)} }
	s := certificates.PodCertificateRequestStatus{CertificateChain: chain, NotBefore: at(0), BeginRefreshAt: at(time.Hour), NotAfter: at(2 * time.Hour)}
	if condition != "" {
		s.Conditions = []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue, Reason: "Because", Message: "of the key"}}
	}
	return s
}

func TestEvaluate(t *testing.T) {
	leaf, ca := manifesttest.SelfSigned(t, &x509.Certificate{}), manifesttest.CACertificate(t, "ca")
	noTime := status("Issued", leaf)
	noTime.BeginRefreshAt = nil
	for name, test := range map[string]struct {
		status certificates.PodCertificateRequestStatus
		want   string // the expected chain or error
	}{
		"pending":          {status("", ""), ""},
		"other condition":  {status("Seen", leaf), ""},
		"issued":           {status("Issued", "leaf\n"+leaf+"CA\n"+ca), leaf + ca},
		"denied":           {status("Denied", ""), `was denied, reason="Because", message="of the key"`},
		"failed":           {status("Failed", ""), `failed, reason="Because", message="of the key"`},
		"issued, no chain": {status("Issued", "none"), "the status of the issued request has no certificateChain, notBefore, beginRefreshAt or notAfter"},
		"issued, no time":  {noTime, "the status of the issued request has no certificateChain, notBefore, beginRefreshAt or notAfter"},
	} {
		c, err := podcert.Evaluate(&certificates.PodCertificateRequest{Status: test.status}, begin, time.Minute)
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case c != nil:
			got = string(c.Chain)
			if want := begin.Add(time.Hour + time.Minute); !c.RefreshAt.Equal(want) {
				t.Errorf("%s: got RefreshAt %s, want %s", name, c.RefreshAt, want)
			}
		}
		_, isFinal := errors.AsType[*podcert.RefusedError](err)
		if wantFinal := name == "denied" || name == "failed"; got != test.want || isFinal != wantFinal {
			t.Errorf("%s: got chain or error %q, RefusedError %t; want %q, RefusedError %t", name, got, isFinal, test.want, wantFinal)
		}
	}
}

func TestCertificate_RefreshIn(t *testing.T) {
	for _, test := range []struct {
		name          string
		received, now time.Duration // since begin
		lifetime      time.Duration // from begin to RefreshAt
		want          time.Duration
	}{
		{"at the start", 0, 0, time.Hour, time.Hour},
		{"later", 0, 50 * time.Minute, time.Hour, 10 * time.Minute},
		{"backdated certificate", 4 * time.Minute, 10 * time.Minute, time.Hour, 50 * time.Minute},
		{"host was suspended", 0, 3 * time.Hour, time.Hour, -2 * time.Hour},
		{"clock of the host is days ahead", 72 * time.Hour, 72*time.Hour + 10*time.Minute, time.Hour, 50 * time.Minute},
		{"clock of the host is days behind", -72 * time.Hour, -72*time.Hour + 10*time.Minute, time.Hour, 50 * time.Minute},
		{"invalid lifetime", 0, 0, -time.Hour, time.Minute},
	} {
		c := &podcert.Certificate{NotBefore: begin, RefreshAt: begin.Add(test.lifetime), NotAfter: begin.Add(2 * time.Hour), ReceivedAt: begin.Add(test.received)}
		if got := c.RefreshIn(begin.Add(test.now)); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

func TestState_Name(t *testing.T) {
	c := &podcert.Certificate{RefreshAt: begin.Add(time.Hour), NotAfter: begin.Add(2 * time.Hour)}
	for _, test := range []struct {
		state podcert.State
		after time.Duration
		want  string
	}{
		{podcert.State{}, 0, "not_yet_issued"},
		{podcert.State{Certificate: c}, 70 * time.Minute, "fresh"},
		{podcert.State{Certificate: c}, 71 * time.Minute, "overdue_for_refresh"},
		{podcert.State{Certificate: c}, 121 * time.Minute, "expired"},
		{podcert.State{Certificate: c, Refused: &podcert.RefusedError{Condition: "Denied"}}, 0, "denied"},
		{podcert.State{Refused: &podcert.RefusedError{Condition: "Failed"}}, 0, "failed"},
	} {
		if got := test.state.Name(begin.Add(test.after)); got != test.want {
			t.Errorf("state %+v after %s: got %s, want %s", test.state, test.after, got, test.want)
		}
	}
}
