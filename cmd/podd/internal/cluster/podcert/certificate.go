package podcert

import (
	"errors"
	"fmt"
	"time"

	certificates "k8s.io/api/certificates/v1"

	"podd/manifest/trustbundle"
)

// A Certificate is an issued certificate.
type Certificate struct {
	Chain []byte // the certificate and the intermediate certificates, as PEM
	// NotBefore, RefreshAt and NotAfter are times of the signer's clock. At RefreshAt, the next
	// certificate should be requested.
	NotBefore, RefreshAt, NotAfter time.Time
	ReceivedAt                     time.Time // with a monotonic clock reading
}

// A RefusedError is the error of a request that the signer has denied, or that has failed. It is
// final.
type RefusedError struct {
	Condition, Reason, Message string // Condition is "Denied" or "Failed"
}

// Error implements error. The message does not name the request.
func (e *RefusedError) Error() string {
	verb := "failed"
	if e.Condition == certificates.PodCertificateRequestConditionTypeDenied {
		verb = "was denied"
	}
	return fmt.Sprintf("%s, reason=%q, message=%q", verb, e.Reason, e.Message)
}

// Evaluate returns the certificate in the status of a request. Both results are nil while the request
// is pending. The error is a *RefusedError if there will be no certificate. now is the time at which
// podd has received the status. jitter is added to RefreshAt.
func Evaluate(r *certificates.PodCertificateRequest, now time.Time, jitter time.Duration) (*Certificate, error) {
	for _, c := range r.Status.Conditions {
		switch c.Type {
		case certificates.PodCertificateRequestConditionTypeDenied, certificates.PodCertificateRequestConditionTypeFailed:
			return nil, &RefusedError{c.Type, c.Reason, c.Message}
		case certificates.PodCertificateRequestConditionTypeIssued:
			return read(&r.Status, now, jitter)
		}
	}
	return nil, nil
}

// read returns the certificate in the status of an issued request.
func read(s *certificates.PodCertificateRequestStatus, now time.Time, jitter time.Duration) (*Certificate, error) {
	chain := trustbundle.Normalize(s.CertificateChain)
	if len(chain) == 0 || s.NotBefore == nil || s.BeginRefreshAt == nil || s.NotAfter == nil {
		return nil, errors.New("the status of the issued request has no certificateChain, notBefore, beginRefreshAt or notAfter")
	}
	return &Certificate{chain, s.NotBefore.Time, s.BeginRefreshAt.Add(jitter), s.NotAfter.Time, now}, nil
}

// minLifetime is the minimum time between two requests for one certificate.
const minLifetime = time.Minute

// RefreshIn returns the time until the next certificate should be requested; it may be negative. If
// the clock of this host showed a time outside of the certificate's validity when the certificate
// was received, RefreshIn uses only the monotonic clock. Otherwise podd would request certificates
// too early or too late.
func (c *Certificate) RefreshIn(now time.Time) time.Duration {
	age := now.Sub(c.ReceivedAt)
	byAge := max(c.RefreshAt.Sub(c.NotBefore), minLifetime) - age
	if c.ReceivedAt.Before(c.NotBefore.Add(-maxClockSkew)) || c.ReceivedAt.After(c.RefreshAt) || age < minLifetime {
		return byAge
	}
	return min(byAge, c.RefreshAt.Sub(now))
}

// maxClockSkew is the difference that the API server allows between its clock and NotBefore.
const maxClockSkew = 5 * time.Minute
