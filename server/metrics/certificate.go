package metrics

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// certificateCounts are the metrics about the certificates that the cluster issues
// to the node.
type certificateCounts struct {
	rotationAge                 prometheus.Histogram
	clientErrors, servingErrors prometheus.Counter
}

const (
	day  = 24 * time.Hour
	year = 360 * day // the kubelet's buckets are based on a year of 360 days
)

func newCertificateCounts() certificateCounts {
	var buckets []float64
	for _, d := range []time.Duration{time.Minute, time.Hour, 4 * time.Hour, day, 7 * day, 30 * day, 90 * day, year / 2, year, 4 * year} {
		buckets = append(buckets, d.Seconds())
	}
	return certificateCounts{
		rotationAge:   newHistogram("kubelet_certificate_manager_server_rotation_seconds", "Age in seconds of the serving certificate when it was rotated.", buckets),
		clientErrors:  prometheus.NewCounter(prometheus.CounterOpts{Name: "kubelet_certificate_manager_client_expiration_renew_errors", Help: "Failed attempts to renew the node's client certificate."}),
		servingErrors: prometheus.NewCounter(prometheus.CounterOpts{Name: "kubelet_server_expiration_renew_errors", Help: "Failed attempts to renew the serving certificate."}),
	}
}

func (c certificateCounts) collectors(expiry func() (time.Time, error)) []prometheus.Collector {
	ttl := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kubelet_certificate_manager_client_ttl_seconds",
		Help: "Remaining validity in seconds of the node's client certificate; +Inf if the node uses another credential.",
	}, func() float64 { return remainingSeconds(expiry, time.Now()) })
	return []prometheus.Collector{c.rotationAge, c.clientErrors, c.servingErrors, ttl}
}

// A PodCertificateState is a state of pod certificates of one signer, such as "fresh".
type PodCertificateState struct{ Signer, State string }

// RecordCertificateRequest records the result of a certificate request. If isServing is set, the
// certificate is the serving certificate of the kubelet's port. Otherwise it is the node's client
// certificate. created is the time at which the replaced certificate was created, or zero if no
// certificate was replaced.
func (c certificateCounts) RecordCertificateRequest(isServing bool, created, now time.Time, err error) {
	switch {
	case err != nil && isServing:
		c.servingErrors.Inc()
	case err != nil:
		c.clientErrors.Inc()
	case isServing && !created.IsZero():
		c.rotationAge.Observe(now.Sub(created).Seconds())
	}
}

// remainingSeconds returns the remaining validity of a certificate in seconds. It returns +Inf if
// the function expiry is nil or returns an error, because there is no certificate in these cases.
func remainingSeconds(expiry func() (time.Time, error), now time.Time) float64 {
	if expiry == nil {
		return math.Inf(1)
	}
	expiryTime, err := expiry()
	if err != nil {
		return math.Inf(1)
	}
	return expiryTime.Sub(now).Seconds()
}
