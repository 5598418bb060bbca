package metrics

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChecks(t *testing.T) {
	c := NewChecks()
	c.Checked("syncloop", nil)
	c.Checked("runtime", nil)
	c.Checked("runtime", errors.New("no answer for 40s"))
	const want = `# HELP kubernetes_healthcheck What came of a check of health the last time: 1 when all was well, else 0.
# TYPE kubernetes_healthcheck gauge
kubernetes_healthcheck{name="runtime",type="healthz"} 0
kubernetes_healthcheck{name="syncloop",type="healthz"} 1
# HELP kubernetes_healthchecks_total Checks of health, by what came of them.
# TYPE kubernetes_healthchecks_total counter
kubernetes_healthchecks_total{name="runtime",status="error",type="healthz"} 1
kubernetes_healthchecks_total{name="runtime",status="success",type="healthz"} 1
kubernetes_healthchecks_total{name="syncloop",status="success",type="healthz"} 1
`
	if diff := cmp.Diff(want, scrape(c.Handler(), "/metrics/slis")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
