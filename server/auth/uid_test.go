package auth

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"net/http/httptest"
	"testing"
	"time"
)

// TestAuthenticator_CertificateUID checks that the UID of a user is in the subject of the client
// certificate, and that a certificate with an invalid UID authenticates no user.
func TestAuthenticator_CertificateUID(t *testing.T) {
	uid := asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2} // k8s.io/apimachinery/pkg/apis/asn1
	other := asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 1}
	from, until := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	ca := sign(t, nil, true, from, until)
	pool := newPool(ca)
	for _, tt := range []struct {
		name  string
		names []pkix.AttributeTypeAndValue
		want  string
		ok    bool
	}{
		{"no UID", nil, "", true},
		{"another attribute", []pkix.AttributeTypeAndValue{{Type: other, Value: "x"}}, "", true},
		{"UID", []pkix.AttributeTypeAndValue{{Type: other, Value: "x"}, {Type: uid, Value: "u-1"}}, "u-1", true},
		{"two UIDs", []pkix.AttributeTypeAndValue{{Type: uid, Value: "u-1"}, {Type: uid, Value: "u-1"}}, "", false},
		{"empty UID", []pkix.AttributeTypeAndValue{{Type: uid, Value: ""}}, "", false},
	} {
		leaf := signName(t, ca, pkix.Name{CommonName: "bob", Organization: []string{"dev"}, ExtraNames: tt.names}, false, from, until)
		a := &Authenticator{CAs: func() *x509.CertPool { return pool }, AllowsAnonymous: true}
		r := httptest.NewRequest("GET", "/pods", nil)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf.Certificate}}
		u, ok := a.authenticate(r)
		if ok != tt.ok || u.UID != tt.want || ok && u.String() != "bob (dev, system:authenticated)" {
			t.Errorf("%s: got user %v with UID %q, authenticated %t; want UID %q, authenticated %t", tt.name, u, u.UID, ok, tt.want, tt.ok)
		}
	}
}
