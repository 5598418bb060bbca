package daemon

import (
	"log/slog"
	"net"
	"testing"
	"testing/synctest"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/tracing/tracingtest"
)

// TestNewTracing_Service checks the name of the service in spans: that of a kubelet if podd acts as one.
func TestNewTracing_Service(t *testing.T) {
	for actsAsKubelet, want := range map[bool]string{false: "podd", true: "kubelet"} {
		synctest.Test(t, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			c := tracingtest.Serve(t, ln)
			cfg := &config.Config{Tracing: &config.Tracing{Endpoint: ln.Addr().String(), SampleRatio: 1}}
			cfg.ActsAsKubelet = actsAsKubelet
			p, err := newTracing(processState{cfg: cfg, log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			_, span := p.Tracer().Start(t.Context(), "s")
			span.End()
			p.Close()
			if spans := c.Spans(); len(spans) != 1 || spans[0].Resource["service.name"] != want {
				t.Errorf("ActsAsKubelet is %t: got spans %v, want one with service.name %s", actsAsKubelet, spans, want)
			}
		})
	}
}
