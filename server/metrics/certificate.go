package metrics

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// certificateCounts are of the certificates that the node has from its cluster.
type certificateCounts struct {
	lived                     prometheus.Histogram
	clientErrors, serveErrors prometheus.Counter
}

const (
	day  = 24 * time.Hour
	year = 360 * day // as a kubelet's
)

func newCertificateCounts() certificateCounts {
	var buckets []float64
	for _, d := range []time.Duration{time.Minute, time.Hour, 4 * time.Hour, day, 7 * day, 30 * day, 90 * day, year / 2, year, 4 * year} {
		buckets = append(buckets, d.Seconds())
	}
	return certificateCounts{
		lived:        histogram("kubelet_certificate_manager_server_rotation_seconds", "How old the certificate of the kubelet's port was when the cluster gave the next one.", buckets),
		clientErrors: prometheus.NewCounter(prometheus.CounterOpts{Name: "kubelet_certificate_manager_client_expiration_renew_errors", Help: "Attempts to renew the certificate by which the cluster knows the node that came to nothing."}),
		serveErrors:  prometheus.NewCounter(prometheus.CounterOpts{Name: "kubelet_server_expiration_renew_errors", Help: "Attempts to renew the certificate of the kubelet's port that came to nothing."}),
	}
}

func (c certificateCounts) all(until func() (time.Time, error)) []prometheus.Collector {
	ttl := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kubelet_certificate_manager_client_ttl_seconds",
		Help: "How long the certificate by which the cluster knows the node is good for; +Inf where it is known by something else.",
	}, func() float64 { return left(until, time.Now()) })
	return []prometheus.Collector{c.lived, c.clientErrors, c.serveErrors, ttl}
}

// Renewed tells that the cluster was asked for the next certificate: of the kubelet's
// port, or of the node, in place of one that was made then; zero: of none.
func (c certificateCounts) Renewed(serving bool, made time.Time, now time.Time, err error) {
	switch {
	case err != nil && serving:
		c.serveErrors.Inc()
	case err != nil:
		c.clientErrors.Inc()
	case serving && !made.IsZero():
		c.lived.Observe(now.Sub(made).Seconds())
	}
}

// left is how long a certificate is good for; +Inf for none.
func left(until func() (time.Time, error), now time.Time) float64 {
	if until == nil {
		return math.Inf(1)
	}
	at, err := until()
	if err != nil {
		return math.Inf(1)
	}
	return at.Sub(now).Seconds()
}
