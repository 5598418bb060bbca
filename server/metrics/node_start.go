package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// nodeStartCounts contains the metrics about the start of the node. Each is 0 until it is known. Like
// those of a kubelet, they remain 0 if the Node existed before podd started.
type nodeStartCounts struct {
	preKubelet, preRegistration, registration, postRegistration, totalNodeStart prometheus.Gauge
	*nodeStart
}

// A nodeStart contains the times at which the node completed the steps of its start. A time is zero
// until the step is completed.
type nodeStart struct {
	bootedAt, startedAt time.Time // when the host and podd started; bootedAt is zero if it is unknown

	mu                                 sync.Mutex // guards all following fields
	attemptedAt, registeredAt, readyAt time.Time
}

func newNodeStartCounts(bootedAt, startedAt time.Time) nodeStartCounts {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "kubelet_node_startup_" + name, Help: help + " 0 unless this podd process has created the Node."})
	}
	return nodeStartCounts{
		preKubelet:       gauge("pre_kubelet_duration_seconds", "Time in seconds from the boot of the host until podd started."),
		preRegistration:  gauge("pre_registration_duration_seconds", "Time in seconds from the start of podd until the first attempt to create the Node."),
		registration:     gauge("registration_duration_seconds", "Time in seconds from the first attempt to create the Node until the Node was created."),
		postRegistration: gauge("post_registration_duration_seconds", "Time in seconds from the creation of the Node until it was ready."),
		totalNodeStart:   gauge("duration_seconds", "Time in seconds from the boot of the host until the Node was ready."),
		nodeStart:        &nodeStart{bootedAt: bootedAt, startedAt: startedAt},
	}
}

func (c nodeStartCounts) collectors() []prometheus.Collector {
	return []prometheus.Collector{c.preKubelet, c.preRegistration, c.registration, c.postRegistration, c.totalNodeStart}
}

// RecordRegistrationAttempt records an attempt to create the Node. Only the first call has an effect.
func (c nodeStartCounts) RecordRegistrationAttempt(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.attemptedAt.IsZero() {
		c.attemptedAt = at
	}
}

// RecordRegistration records that podd has created the Node. Only the first call after
// RecordRegistrationAttempt has an effect.
func (c nodeStartCounts) RecordRegistration(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.attemptedAt.IsZero() || !c.registeredAt.IsZero() {
		return
	}
	c.registeredAt = at
	if !c.bootedAt.IsZero() {
		c.preKubelet.Set(c.startedAt.Sub(c.bootedAt).Seconds())
	}
	c.preRegistration.Set(c.attemptedAt.Sub(c.startedAt).Seconds())
	c.registration.Set(at.Sub(c.attemptedAt).Seconds())
}

// RecordNodeReady records that the Node is ready in the API server. Only the first call after
// RecordRegistration has an effect.
func (c nodeStartCounts) RecordNodeReady(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.registeredAt.IsZero() || !c.readyAt.IsZero() {
		return
	}
	c.readyAt = at
	c.postRegistration.Set(at.Sub(c.registeredAt).Seconds())
	if !c.bootedAt.IsZero() {
		c.totalNodeStart.Set(at.Sub(c.bootedAt).Seconds())
	}
}
