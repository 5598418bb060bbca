package config

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podd/reconcile/eviction/pressure"
	"podd/reconcile/gc"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/reconcile/pull/verify"
)

// testHost contains the HostFacts for most tests.
var testHost = HostFacts{Program: "podd", Hostname: "Node-1", UsesCgroupV2: true, CanLimitSwap: true}

// defaultConfig returns the Config that Load returns on testHost without flags and files.
func defaultConfig() Config {
	return Config{
		Sources: Sources{FileCheckFrequency: 20 * time.Second, HTTPCheckFrequency: 20 * time.Second},
		Node:    Node{NodeName: "node-1", MaxPods: 110, MaxStatusImages: 50},
		Paths:   Paths{RootDir: "/var/lib/podd", RunDir: "/run/podd", PodLogsDir: "/var/log/pods"},
		Resources: Resources{
			Reserved: v1.ResourceList{}, EnforceReserved: true,
			Eviction: pressure.Policy{Thresholds: []pressure.Threshold{
				{Signal: pressure.MemoryAvailable, Limit: pressure.Limit{Amount: 100 << 20}},
				{Signal: pressure.NodefsAvailable, Limit: pressure.Limit{Share: 0.1}}, {Signal: pressure.NodefsInodesFree, Limit: pressure.Limit{Share: 0.05}},
				{Signal: pressure.ImagefsAvailable, Limit: pressure.Limit{Share: 0.15}}, {Signal: pressure.ImagefsInodesFree, Limit: pressure.Limit{Share: 0.05}},
				{Signal: pressure.AllocatableMemoryAvailable, Limit: pressure.Limit{Amount: 100 << 20}},
			}, TransitionPeriod: 5 * time.Minute},
			CPUQuotaPeriod: 100 * time.Millisecond, OOMScoreAdj: -999, MaxOpenFiles: 1000000,
		},
		Runtime: Runtime{
			RuntimeRequestTimeout: 2 * time.Minute, SyncFrequency: time.Minute, CgroupDriver: "cgroupfs", IDsPerPod: 65536, MaxRestartPeriod: 5 * time.Minute, MaxDeadPerContainer: 1, MaxDeadContainers: -1,
		},
		Images: Images{
			MaxParallelPulls: 5, PullQPS: 5, PullBurst: 10, OfflinePullPolicy: PullStrict,
			ImageGC:                gc.Policy{HighPercent: 85, LowPercent: 80, MinAge: 2 * time.Minute},
			CredentialVerification: &verify.Policy{Mode: kubelet.NeverVerifyPreloadedImages},
		},
		DNS: DNS{ResolvConf: "/etc/resolv.conf"},
		Server: Server{
			HealthzAddress: "127.0.0.1:10248",
			API: KubeletAPI{
				Address: "127.0.0.1:10250", MinTLS: tls.VersionTLS12,
				EnableDebugging: true, EnableSystemLogs: true, EnableProfiling: true, EnableDebugFlags: true,
			},
		},
		ContainerLogs: ContainerLogs{LogMaxSize: 10 << 20, LogMaxFiles: 5, LogWorkers: 256, LogCheckInterval: 10 * time.Second},
		Logging:       Logging{LogFormat: "text"},
	}
}

// ignoreRedacted ignores the field RedactedConfig, which TestLoad_Redacted checks.
var ignoreRedacted = cmpopts.IgnoreFields(Config{}, "RedactedConfig")

// writeFile creates a file in dir and returns its path.
func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// formatWarnings returns the warnings as podd prints them, but with paths relative to dir.
func formatWarnings(ws []Warning, dir string) []string {
	var out []string
	for _, w := range ws {
		out = append(out, strings.ReplaceAll(w.String(), dir+"/", ""))
	}
	return out
}

func TestLoad_Defaults(t *testing.T) {
	got, warnings, err := Load(Flags{}, testHost)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("Load without flags and files: got warnings %v, error %v; want none", warnings, err)
	}
	if diff := cmp.Diff(defaultConfig(), got, cmpopts.EquateEmpty(), ignoreRedacted); diff != "" {
		t.Errorf("config without flags and files (-want +got):\n%s", diff)
	}
}

// TestLoad_Kubeadm checks the Config and warnings for the flags and the configuration file that kubeadm
// writes when a node joins a cluster. podd runs without --kubeconfig.
func TestLoad_Kubeadm(t *testing.T) {
	env, err := os.ReadFile("testdata/kubeadm-flags.env")
	if err != nil {
		t.Fatal(err)
	}
	_, args, _ := strings.Cut(strings.TrimSpace(string(env)), "=")
	flags := parse(t, append(strings.Fields(strings.Trim(args, `"`)), "--config=testdata/kubelet-config.yaml")...)
	got, warnings, err := Load(flags, testHost)
	if err != nil {
		t.Fatal(err)
	}
	want := defaultConfig()
	want.NodeName, want.NodeNameSetByUser = "cp-0", true
	want.ManifestPaths = []string{"/etc/kubernetes/manifests"}
	want.RuntimeEndpoint = "unix:///run/containerd/containerd.sock"
	want.SandboxImage = "registry.k8s.io/pause:3.10.1"
	want.CgroupDriver, want.ConfiguredCgroupDriver = "systemd", "systemd"
	want.ClusterDNS = []string{"10.96.0.10"}
	want.ClusterDomain = "cluster.local"
	want.API.ClientCAFile, want.API.Address = "/etc/kubernetes/pki/ca.crt", "0.0.0.0:10250"
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), ignoreRedacted); diff != "" {
		t.Errorf("config of kubeadm's files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"warning: webhook authentication and authorization have no effect without --kubeconfig: " +
			"only root and clients that --authorization-policy-file authorizes can use the kubelet API",
		"warning: streamingConnectionIdleTimeout (testdata/kubelet-config.yaml:46): ignored, because " + obsoletePrefix +
			"the container runtime closes idle streams; set stream_idle_timeout in the configuration of containerd",
		"warning: cpuManagerReconcilePeriod (testdata/kubelet-config.yaml:20): ignored, because " + policyNoneReason,
		"warning: volumeStatsAggPeriod (testdata/kubelet-config.yaml:48): ignored, because podd measures volumes when statistics are requested; use the scrape interval of the client",
		"warning: logging.flushFrequency (testdata/kubelet-config.yaml:31): ignored, because podd writes each message of its log at once; remove it",
		"warning: rotateCertificates (testdata/kubelet-config.yaml:41), authentication.webhook.cacheTTL (testdata/kubelet-config.yaml:6), " +
			"authorization.webhook.cacheAuthorizedTTL (testdata/kubelet-config.yaml:13), authorization.webhook.cacheUnauthorizedTTL (testdata/kubelet-config.yaml:14), " +
			"nodeStatusUpdateFrequency (testdata/kubelet-config.yaml:40), nodeStatusReportFrequency (testdata/kubelet-config.yaml:39): ignored without --kubeconfig",
	}, formatWarnings(warnings, "/")); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// TestLoad_SecretHeader checks that the Config contains the value of a header. The value must not be in
// warnings or errors, and not in the printed, logged or marshaled header. Nor must an error contain
// the password or query of an invalid URL.
func TestLoad_SecretHeader(t *testing.T) {
	for _, args := range [][]string{
		{"--manifest-url-header=Authorization:hunter2"},
		{"--manifest-url-header=Bad Name:hunter2"},
		{"--manifest-url-header=hunter2"},
		{"--manifest-url-header=A:hunter2\x01"},
		{"--manifest-url=http://u:hunter2@ [/"},
		{"--manifest-url=ftp://u:hunter2@x/?t=hunter2"},
	} {
		cfg, warnings, err := Load(parse(t, args...), testHost)
		asJSON, jsonErr := json.Marshal(cfg.URLHeader)
		if jsonErr != nil {
			t.Fatal(jsonErr)
		}
		var log strings.Builder
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "header", cfg.URLHeader)
		all := fmt.Sprintln(warnings, err, log.String(), string(asJSON)) + fmt.Sprintf("%v %+v %#v", cfg.URLHeader, cfg.URLHeader, cfg.URLHeader)
		if strings.Contains(all, "hunter2") {
			t.Errorf("%q: got the secret hunter2 in the warnings, the error or the formatted header: %s", args, all)
		}
		if err == nil && cfg.URLHeader["Authorization"][0] != "hunter2" {
			t.Errorf("%q: got headers %#v, want the value hunter2 in Authorization", args, map[string][]string(cfg.URLHeader))
		}
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "huge", strings.Repeat("#", maxFileBytes+1))
	writeFile(t, dir, "full", strings.Repeat("#", maxFileBytes))
	for name, want := range map[string]string{
		"fifo": "not a regular file",
		".":    "is a directory; for a directory of manifests, use --pod-manifest-path",
		"huge": "larger than 1048576 bytes",
		"none": "no such file",
		"full": "",
	} {
		_, err := readFile(filepath.Join(dir, name))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: got error %v, want none", name, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got error %v, want one that contains %q", name, err, want)
		}
	}
}

// TestNormalizeNodeName checks the node names for hostnames. want is "" if the hostname is invalid.
func TestNormalizeNodeName(t *testing.T) {
	for host, want := range map[string]string{
		"Node-1": "node-1", " a.b \n": "a.b", "": "", "a_b": "", "-a": "", "a/../b": "",
	} {
		got, err := NormalizeNodeName(host)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("NormalizeNodeName(%q): got %q, error %v; want %q (\"\" means an error)", host, got, err, want)
		}
	}
}

// FuzzParseLayer checks that parseLayer returns a layer or problems for any file. A returned layer must
// be decodable, and the later checks must not panic.
func FuzzParseLayer(f *testing.F) {
	seed, err := os.ReadFile("testdata/kubelet-config.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" +
		"a: &a [1]\n<<: {b: *a}\nmaxPods: 1e3\nclusterDNS: [~, {}]\nlogging: {vmodule: [{verbosity: -1}]}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, problems := parseLayer(Document{Path: "f.yaml", Data: data})
		if l == nil {
			if len(problems) == 0 {
				t.Error("got neither a layer nor a problem")
			}
			return
		}
		m := newMergedTree()
		m.apply(l)
		user, err := m.decode()
		if err != nil {
			t.Fatalf("decoding a layer that parseLayer has accepted: %v", err)
		}
		warnIgnoredSettings(user, m, &Flags{})
		(&checker{kubelet: user, merged: m}).check()
	})
}
