package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubelet "k8s.io/kubelet/config/v1beta1"
	kjson "sigs.k8s.io/json"
)

// TestLoad_Redacted checks that RedactedConfig contains the values of files and flags, defaults for the
// other fields, and no secrets.
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
	k := cfg.RedactedConfig.Kubelet
	if k.MaxPods != 7 || k.Port != 10251 || k.Address != "127.0.0.1" || *k.RegisterNode || *k.Authentication.Webhook.Enabled || k.SyncFrequency.Duration.Seconds() != 60 || *k.HealthzPort != 10248 || k.EvictionHard["nodefs.available"] != "10%" {
		t.Errorf("effective configuration: got %+v, want the values of the file, the flags and the defaults", k)
	}
	if got := k.ImagePullCredentialsVerificationPolicy; got != kubelet.NeverVerifyPreloadedImages {
		t.Errorf("imagePullCredentialsVerificationPolicy: got %q, want the default NeverVerifyPreloadedImages", got)
	}
	want := map[string]string{
		"config": file, "manifest-url": "https://<masked>@h/x", "manifest-url-header": maskedValue, "port": "10251",
		"tls-cipher-suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "pull-offline": "strict",
		"max-pods": "7", // the flag shows the value of its field in the file
	}
	flagz := cfg.RedactedConfig.Flags()
	for name, value := range want {
		if flagz[name] != value {
			t.Errorf("flag %s: got %q, want %q", name, flagz[name], value)
		}
	}
	all, err := json.Marshal([]any{k, flagz})
	if err != nil || strings.Contains(string(all), "s3cret") || strings.Count(string(all), "masked") < 3 {
		t.Errorf("got RedactedConfig %s, error %v; want at least 3 masked values and no secret", all, err)
	}
}

// TestLoad_Flagz checks that RedactedConfig.Flags, which podd serves at /flagz, contains all flags. A
// flag must have its value from the command line, else the value of its field in the file, else the
// default.
func TestLoad_Flagz(t *testing.T) {
	file := writeFile(t, t.TempDir(), "k.yaml", `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: /etc/manifests
podsPerCore: 3
evictionHard: {memory.available: 1Gi, nodefs.available: 5%}
systemReserved: {cpu: 100m, memory: 1Gi}
logging: {vmodule: [{filePattern: rotator, verbosity: 4}]}
`)
	flags, err := tryParse("--config="+file, "--feature-gates=NodeSwap=true", "--node-labels=a=b,c=d", "--register-with-taints=k=v:NoSchedule", "--runtime-request-timeout=90s")
	if err != nil {
		t.Fatal(err)
	}
	cfg, _, err := Load(flags, testHost)
	if err != nil {
		t.Fatal(err)
	}
	got := cfg.RedactedConfig.Flags()
	for name, want := range map[string]string{
		"pod-manifest-path": "/etc/manifests", "pods-per-core": "3", "eviction-hard": "memory.available<1Gi,nodefs.available<5%",
		"system-reserved": "cpu=100m,memory=1Gi", "vmodule": "rotator=4", "feature-gates": "NodeSwap=true", "node-labels": "a=b,c=d",
		"runtime-request-timeout": "1m30s", "sync-frequency": "1m0s", "max-pods": "110", "runonce": "false", "v": "0", "protect-kernel-defaults": "false",
		"root-dir": "/var/lib/podd", "run-dir": DefaultRunDir, "adopt": "false", "maximum-dead-containers": "-1", "kubeconfig": "", "cluster-dns": "",
		"register-with-taints": "", // the flag needs --kubeconfig
		"log-flush-frequency":  "5s", "log-text-info-buffer-size": "0", "port": "10250", "parallel-starts": "0",
	} {
		if got[name] != want {
			t.Errorf("flag %s: got %q, want %q", name, got[name], want)
		}
	}
	var missing []string
	for field := range flags.settings() {
		if _, ok := got[flagName(field)]; !ok {
			missing = append(missing, flagName(field))
		}
	}
	for _, f := range kubeletFlags {
		if _, ok := got[f.name]; !ok && f.field != "" {
			missing = append(missing, f.name)
		}
	}
	if len(missing) > 0 {
		t.Errorf("got Flags without %q, want all flags", missing)
	}
}

// TestLoad_Configz checks that RedactedConfig.Kubelet, which podd serves at /configz, contains at least
// the fields that the kubelet serves there, and no unknown fields. It also checks which values differ
// from those of the kubelet.
func TestLoad_Configz(t *testing.T) {
	for _, kubeconfig := range []string{"", "/kubeconfig"} {
		cfg, _, err := Load(Flags{ClusterFlags: ClusterFlags{Kubeconfig: kubeconfig}}, testHost)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(cfg.RedactedConfig.Kubelet)
		if err != nil {
			t.Fatal(err)
		}
		got := &kubelet.KubeletConfiguration{}
		if unknown, err := kjson.UnmarshalStrict(text, got); err != nil || len(unknown) > 0 {
			t.Fatalf("decoding %s: got error %v, unknown fields %v; want none", text, err, unknown)
		}
		var differences []string
		visitFields(reflect.ValueOf(readConfigz(t)).Elem(), reflect.ValueOf(got).Elem(), "", func(path string, want, got reflect.Value) {
			if !reflect.DeepEqual(indirect(want), indirect(got)) && !(isZero(want) && isZero(got)) {
				differences = append(differences, path)
			}
		})
		want := []string{
			"serializeImagePulls", "maxParallelImagePulls", // by default, podd pulls images in parallel
			"evictionHard",               // the kubelet does not show its default
			"containerLogMaxWorkers",     // by default, podd rotates more logs in parallel
			"kernelMemcgNotification",    // podd enables the notifications of the kernel by default
			"failSwapOn", "failCgroupV1", // by default, podd also starts with swap and with cgroup v1
			"containerRuntimeEndpoint", // by default, podd tries several sockets
		}
		if kubeconfig == "" { // without a cluster, remote clients cannot authenticate
			want = append(want, "address", "authentication.webhook.enabled", "authorization.mode", "registerNode")
			want = append(want, "enableControllerAttachDetach", "makeIPTablesUtilChains") // podd does neither
		}
		slices.Sort(want)
		slices.Sort(differences)
		if diff := cmp.Diff(want, differences); diff != "" {
			t.Errorf("kubeconfig %q: fields whose values differ from those of the kubelet (-want +got):\n%s", kubeconfig, diff)
		}
	}
}

// TestLoad_ConfigzIgnored checks that RedactedConfig does not contain the values of fields that podd
// ignores.
func TestLoad_ConfigzIgnored(t *testing.T) {
	samples := sampleFields()
	for _, inCluster := range []bool{false, true} {
		load := func(flags Flags) string {
			if inCluster {
				flags.Kubeconfig = "/kubeconfig"
			}
			cfg, _, err := Load(flags, testHost)
			if err != nil {
				return "" // podd rejects the value
			}
			text, err := json.Marshal(cfg.RedactedConfig.Kubelet)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		want := load(Flags{})
		for _, f := range Fields() {
			isIgnored := f.Support == Ignored || f.Support == SupportedInCluster && !inCluster
			if !isIgnored || f.Path == "featureGates" {
				continue
			}
			got := load(Flags{FileFlags: writeField(t, f.Path, samples[f.Path])})
			if diff := cmp.Diff(want, got); diff != "" && got != "" {
				t.Errorf("%s: %v, in a cluster %t: /configz (-default +got):\n%s", f.Path, samples[f.Path], inCluster, diff)
			}
		}
	}
}

// TestLoad_ConfigzEffective checks that RedactedConfig contains the values in effect if these differ from
// the values of the configuration file.
func TestLoad_ConfigzEffective(t *testing.T) {
	file := writeFile(t, t.TempDir(), "k.yaml", `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: /etc/manifests
staticPodURL: http://other/
staticPodURLHeader: {X-Other: [s3cret]}
rotateCertificates: true
serverTLSBootstrap: true
enableContentionProfiling: true
enableProfilingHandler: false
cgroupsPerQOS: false
enforceNodeAllocatable: [none]
cgroupRoot: /pods
featureGates: {KubeletEnsureSecretPulledImages: false}
logging: {verbosity: 12}
`)
	cfg, _, err := Load(parse(t, "--config="+file, "--pod-manifest-path=/a/", "--pod-manifest-path=/b",
		"--manifest-url=https://u:s3cret@h/{node}.yaml?token=s3cret#s3cret", "--manifest-url=http://b/@x", "--manifest-url-header=X-Token:s3cret", "--port=0"), testHost)
	if err != nil {
		t.Fatal(err)
	}
	k, flags := cfg.RedactedConfig.Kubelet, cfg.RedactedConfig.Flags()
	got := map[string]any{
		"staticPodPath": k.StaticPodPath, "staticPodURL": k.StaticPodURL, "staticPodURLHeader": k.StaticPodURLHeader,
		"--pod-manifest-path": flags["pod-manifest-path"], "--manifest-url": flags["manifest-url"],
		"rotateCertificates": k.RotateCertificates, "serverTLSBootstrap": k.ServerTLSBootstrap,
		"enableContentionProfiling": k.EnableContentionProfiling, "cgroupRoot": k.CgroupRoot, "port": k.Port, "enableServer": *k.EnableServer,
		"imagePullCredentialsVerificationPolicy": k.ImagePullCredentialsVerificationPolicy, "logging.verbosity": int(k.Logging.Verbosity),
	}
	want := map[string]any{
		"staticPodPath": "/a", "staticPodURL": "https://<masked>@h/{node}.yaml?<masked>", "staticPodURLHeader": map[string][]string{"X-Token": {maskedValue}},
		"--pod-manifest-path": "/a,/b", "--manifest-url": "https://<masked>@h/{node}.yaml?<masked>,http://b/@x",
		"rotateCertificates": false, "serverTLSBootstrap": false,
		"enableContentionProfiling": false, "cgroupRoot": "", "port": int32(0), "enableServer": false,
		"imagePullCredentialsVerificationPolicy": kubelet.ImagePullCredentialsVerificationPolicy(""), "logging.verbosity": 10,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values in effect (-want +got):\n%s", diff)
	}
}
