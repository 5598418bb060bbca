package config

import (
	"testing"
	"time"
)

// TestLoad_StatusFrequency checks that nodeStatusUpdateFrequency in the file of --config is also the
// default of nodeStatusReportFrequency, but not in a drop-in or on the command line, as in the kubelet.
// /configz must show the interval in effect.
func TestLoad_StatusFrequency(t *testing.T) {
	const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	for name, test := range map[string]struct {
		file, dropIn   string
		args           []string
		update, report time.Duration
	}{
		"default":                    {"", "", nil, 10 * time.Second, 5 * time.Minute},
		"file":                       {"nodeStatusUpdateFrequency: 20s\n", "", nil, 20 * time.Second, 20 * time.Second},
		"file with the default":      {"nodeStatusUpdateFrequency: 0s\n", "", nil, 10 * time.Second, 5 * time.Minute},
		"file with both":             {"nodeStatusUpdateFrequency: 20s\nnodeStatusReportFrequency: 1m\n", "", nil, 20 * time.Second, time.Minute},
		"file with both, one 0":      {"nodeStatusUpdateFrequency: 20s\nnodeStatusReportFrequency: 0s\n", "", nil, 20 * time.Second, 20 * time.Second},
		"flag":                       {"", "", []string{"--node-status-update-frequency=4s"}, 4 * time.Second, 5 * time.Minute},
		"flag over the file":         {"nodeStatusUpdateFrequency: 20s\n", "", []string{"--node-status-update-frequency=4s"}, 4 * time.Second, 20 * time.Second},
		"drop-in":                    {"", "nodeStatusUpdateFrequency: 20s\n", nil, 20 * time.Second, 5 * time.Minute},
		"drop-in over the file":      {"nodeStatusUpdateFrequency: 20s\n", "nodeStatusUpdateFrequency: 30s\n", nil, 30 * time.Second, 20 * time.Second},
		"drop-in with the other one": {"nodeStatusUpdateFrequency: 20s\n", "nodeStatusReportFrequency: 1m\n", nil, 20 * time.Second, time.Minute},
	} {
		dir := t.TempDir()
		writeFile(t, dir, "d/1.conf", head+test.dropIn)
		args := append(test.args, "--config="+writeFile(t, dir, "k.yaml", head+test.file), "--config-dir="+dir+"/d")
		cfg, _, err := Load(parse(t, append(args, "--kubeconfig=/k")...), testHost)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c := cfg.Cluster; c.StatusUpdateFrequency != test.update || c.StatusReportFrequency != test.report {
			t.Errorf("%s: got update every %s and report every %s, want %s and %s", name, c.StatusUpdateFrequency, c.StatusReportFrequency, test.update, test.report)
		}
		if k := cfg.RedactedConfig.Kubelet; k.NodeStatusUpdateFrequency.Duration != test.update || k.NodeStatusReportFrequency.Duration != test.report {
			t.Errorf("%s: /configz: got update every %s and report every %s, want %s and %s", name, k.NodeStatusUpdateFrequency.Duration, k.NodeStatusReportFrequency.Duration, test.update, test.report)
		}
	}
}
