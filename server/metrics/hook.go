package metrics

import "github.com/prometheus/client_golang/prometheus"

// hookCounts contains the metrics about lifecycle hooks.
type hookCounts struct{ plainHooks prometheus.Counter }

func newHookCounts() hookCounts {
	return hookCounts{newCounter("kubelet_lifecycle_handler_http_fallbacks_total", "Lifecycle hooks with the scheme HTTPS that were called over HTTP, because the server does not support HTTPS.")}
}

// RecordPlainHook records that a lifecycle hook with the scheme HTTPS was called over HTTP.
func (c hookCounts) RecordPlainHook() { c.plainHooks.Inc() }
