package config

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

// TestLoad_Redacted checks that the redacted configuration contains the defaults and no
// secrets.
func TestLoad_Redacted(t *testing.T) {
	dir := t.TempDir()
	file := writeFile(t, dir, "k.yaml", `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
maxPods: 7
staticPodURL: https://u:s3cret@h/x
syncFrequency: 0s
staticPodURLHeader: {Authorization: [Bearer s3cret]}
`)
	flags, err := tryParse("--config="+file, "--manifest-url=https://u:s3cret@h/x", "--manifest-url-header=X-Token:s3cret", "--port=10251", "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")
	if err != nil {
		t.Fatal(err)
	}
	cfg, _, err := Load(flags, testHost)
	if err != nil {
		t.Fatal(err)
	}
	var k kubelet.KubeletConfiguration
	if err := json.Unmarshal(cfg.RedactedConfig.Kubelet, &k); err != nil {
		t.Fatal(err)
	}
	if k.MaxPods != 7 || k.Port != 10251 || k.Address != "127.0.0.1" || *k.RegisterNode || *k.Authentication.Webhook.Enabled || k.SyncFrequency.Duration.Seconds() != 60 || *k.HealthzPort != 10248 || k.EvictionHard["nodefs.available"] != "10%" {
		t.Errorf("effective configuration: got %s, want the values of the file, the flags and the defaults", cfg.RedactedConfig.Kubelet)
	}
	if got := k.ImagePullCredentialsVerificationPolicy; got != kubelet.NeverVerifyPreloadedImages {
		t.Errorf("imagePullCredentialsVerificationPolicy: got %q, want the default", got)
	}
	want := map[string]string{
		"config": file, "manifest-url": maskedValue, "manifest-url-header": maskedValue, "port": "10251",
		"tls-cipher-suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "pull-offline": "strict",
	}
	if diff := cmp.Diff(want, cfg.RedactedConfig.Flags); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}
	all, err := json.Marshal(cfg.RedactedConfig)
	if err != nil || strings.Contains(string(all), "s3cret") || strings.Count(string(all), "masked") < 3 {
		t.Errorf("got %s, %v; want masked secrets", all, err)
	}
}
