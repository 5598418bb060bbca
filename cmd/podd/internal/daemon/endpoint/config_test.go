package endpoint

import (
	"testing"

	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/cmd/podd/internal/config"
	"podd/runtime/runtimetest"
)

// TestConfigInEffect checks that /configz contains the socket of the runtime and the cgroup driver that
// the runtime reports, and the configured driver if the runtime does not respond.
func TestConfigInEffect(t *testing.T) {
	configured := &kubelet.KubeletConfiguration{CgroupDriver: "cgroupfs", MaxPods: 7}
	r := runtimetest.New(t, runtimetest.Options{CgroupDriver: "systemd"})
	h := &handlers{Options: Options{RedactedConfig: config.RedactedConfig{Kubelet: configured}, Runtime: r.Client}}
	check := func(step, driver string) {
		t.Helper()
		k := h.configInEffect(t.Context()).(*kubelet.KubeletConfiguration)
		if want := "unix://" + r.Client.Endpoint(); k.ContainerRuntimeEndpoint != want || k.CgroupDriver != driver || k.MaxPods != 7 {
			t.Errorf("%s: got endpoint %q, driver %q, maxPods %d; want %q, %q, 7", step, k.ContainerRuntimeEndpoint, k.CgroupDriver, k.MaxPods, want, driver)
		}
	}
	check("runtime responds", "systemd")
	r.Inject(runtimetest.Fault{Hangs: true})
	check("runtime does not respond", "cgroupfs")
	if configured.CgroupDriver != "cgroupfs" || configured.ContainerRuntimeEndpoint != "" {
		t.Errorf("got a modified configuration %+v", configured)
	}
}
