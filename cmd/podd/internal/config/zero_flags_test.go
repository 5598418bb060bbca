package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// zeroValues contains the values that TestLoad_ZeroFlags compares, from a Config and from /configz.
type zeroValues struct {
	MaxPods, PullBurst, APIBurst, EventBurst               int
	MinImageAge, Transition, TokenTTL, AllowedTTL, DenyTTL time.Duration
	Port                                                   bool // the kubelet API has a port
}

// TestLoad_ZeroFlags checks that 0 in a file means the default, and that a flag with the value 0 sets 0
// unless the help of the kubelet states otherwise. /configz must show the values in effect.
func TestLoad_ZeroFlags(t *testing.T) {
	file := writeFile(t, t.TempDir(), "k.yaml", `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
maxPods: 0
registryBurst: 0
kubeAPIBurst: 0
eventBurst: 0
imageMinimumGCAge: 0s
evictionPressureTransitionPeriod: 0s
authentication: {webhook: {cacheTTL: 0s}}
authorization: {webhook: {cacheAuthorizedTTL: 0s, cacheUnauthorizedTTL: 0s}}
port: 0
`)
	defaults := zeroValues{110, 10, 100, 100, 2 * time.Minute, 5 * time.Minute, 2 * time.Minute, 5 * time.Minute, 30 * time.Second, true}
	for name, test := range map[string]struct {
		args []string
		want zeroValues
	}{
		"file": {nil, defaults},
		"flags": {[]string{
			"--max-pods=0", "--registry-burst=0", "--registry-qps=0", "--minimum-image-ttl-duration=0s", "--eviction-pressure-transition-period=0s",
			"--authentication-token-webhook-cache-ttl=0s", "--authorization-webhook-cache-authorized-ttl=0s", "--authorization-webhook-cache-unauthorized-ttl=0s",
			"--port=0", "--kube-api-burst=0", "--event-burst=0",
		}, zeroValues{APIBurst: 100, EventBurst: 100}},
	} {
		cfg, warnings, err := Load(parse(t, append(test.args, "--kubeconfig=/k", "--config="+file)...), testHost)
		if err != nil || len(warnings) > 0 {
			t.Fatalf("%s: got warnings %v, error %v; want none", name, warnings, err)
		}
		got := zeroValues{
			cfg.MaxPods, cfg.PullBurst, cfg.Cluster.Burst, cfg.Cluster.EventBurst,
			cfg.ImageGC.MinAge, cfg.Eviction.TransitionPeriod, cfg.API.TokenTTL, cfg.API.AllowedTTL, cfg.API.DeniedTTL, cfg.API.Address != "",
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: config (-want +got):\n%s", name, diff)
		}
		k := cfg.RedactedConfig.Kubelet
		webhook := k.Authorization.Webhook
		shown := zeroValues{
			int(k.MaxPods), int(k.RegistryBurst), int(k.KubeAPIBurst), int(k.EventBurst),
			k.ImageMinimumGCAge.Duration, k.EvictionPressureTransitionPeriod.Duration, k.Authentication.Webhook.CacheTTL.Duration,
			webhook.CacheAuthorizedTTL.Duration, webhook.CacheUnauthorizedTTL.Duration, k.Port != 0,
		}
		if diff := cmp.Diff(test.want, shown); diff != "" {
			t.Errorf("%s: /configz (-want +got):\n%s", name, diff)
		}
	}
}
