package cri

import "testing"

// TestExplainCNI checks the explanations for the status texts of containerd 2.4. The message of the
// condition is the same for an invalid CNI configuration and for none.
func TestExplainCNI(t *testing.T) {
	const message = "Network plugin returns error: cni plugin not initialized"
	const missing = "cni config load failed: no network config found in /n: cni plugin not initialized: failed to load cni config"
	const config = `{"cni":{"confDir":"/n"}}`
	const install = "install a CNI configuration; without one, only pods on the host network start"
	for name, c := range map[string]struct{ lastStatus, config, cause, remedy string }{
		"no configuration":                     {missing, config, "no CNI configuration in /n", install},
		"no configuration, directory unknown":  {missing, "", "no CNI configuration in the CNI directory", install},
		"runtime without a status of the load": {"", config, "no CNI configuration in /n", install},
		"runtime without information":          {"", "", message, ""},
		"invalid configuration": {
			"cni config load failed: failed to load CNI config list file /n/10-x.conflist: error parsing configuration list: no plugins in list: invalid cni config: failed to load cni config", config,
			"invalid CNI configuration: failed to load CNI config list file /n/10-x.conflist: error parsing configuration list: no plugins in list", "correct the file",
		},
	} {
		cause, remedy := explainCNI(message, map[string]string{"lastCNILoadStatus": c.lastStatus, "config": c.config})
		if cause != c.cause || remedy != c.remedy {
			t.Errorf("%s: got cause %q, remedy %q; want %q, %q", name, cause, remedy, c.cause, c.remedy)
		}
	}
}
