package config

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

// defaultTracingEndpoint is the default of Tracing.Endpoint, as in OpenTelemetry, unless the environment
// contains a URL.
const defaultTracingEndpoint = "localhost:4317"

// tracingVariables are OpenTelemetry's environment variables with the URL of a collector of traces. The
// first one with a valid URL is used.
var tracingVariables = [...]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"}

// millionSamples is the value of samplingRatePerMillion that records every trace.
const millionSamples = 1_000_000

// Tracing configures the spans that podd sends to an OpenTelemetry collector.
type Tracing struct {
	// Endpoint is the address of the collector as a target of gRPC.
	Endpoint string
	// SampleRatio is the part of the traces that begin in podd and are recorded, from 0 to 1.
	SampleRatio float64
}

// tracingSchemes are the schemes of a tracing endpoint that gRPC and the kubelet support.
var tracingSchemes = []string{"dns", "unix", "unix-abstract"}

// checkTracing checks the field tracing with the rules of the kubelet.
func (c *checker) checkTracing() {
	t := c.kubelet.Tracing
	if t == nil {
		return
	}
	if rate := t.SamplingRatePerMillion; rate != nil && (*rate < 0 || *rate > millionSamples) {
		c.errorf("tracing.samplingRatePerMillion", "%d is out of range; must be between 0 and %d", *rate, millionSamples)
	}
	if t.Endpoint == nil || *t.Endpoint == "" {
		for i, name := range tracingVariables {
			if rawURL := c.host.TracingURLs[i]; rawURL != "" && tracingTarget(rawURL) == "" {
				c.warnf("tracing", "the environment variable %s is ignored, because it must be a URL such as http://%s, without TLS", name, defaultTracingEndpoint)
			}
		}
		return
	}
	target := *t.Endpoint
	if !strings.Contains(target, "//") {
		target = "dns://" + target
	}
	if u, err := url.Parse(target); err != nil || !slices.Contains(tracingSchemes, u.Scheme) {
		c.errorf("tracing.endpoint", "invalid endpoint %q; must be an address such as %s or unix:///path, without http://", *t.Endpoint, defaultTracingEndpoint)
	}
}

// tracingTarget returns the target of gRPC for the URL of a collector in the environment, or "" if the
// URL is not valid. https is not valid, because podd, as the kubelet, sends traces without TLS.
func tracingTarget(rawURL string) string {
	u, err := url.Parse(rawURL)
	switch {
	case err != nil:
	case u.Scheme == "unix":
		return rawURL
	case u.Scheme == "http":
		return u.Host
	}
	return ""
}

// resolveTracing sets the configuration of traces. With --runonce, podd sends no traces.
func (r *resolver) resolveTracing(c *Config) {
	t := r.kubelet.Tracing
	if t == nil || r.kubelet.RunOnce {
		return
	}
	c.Tracing = &Tracing{
		Endpoint:    cmp.Or(tracingTarget(r.host.TracingURLs[0]), tracingTarget(r.host.TracingURLs[1]), defaultTracingEndpoint),
		SampleRatio: float64(derefInt32(t.SamplingRatePerMillion)) / millionSamples,
	}
	if t.Endpoint != nil && *t.Endpoint != "" {
		c.Tracing.Endpoint = *t.Endpoint
	}
}
