package config

import (
	"os"
	"reflect"
	"strings"
	"testing"

	kubelet "k8s.io/kubelet/config/v1beta1"
)

// TestNormalizeArgs checks the arguments that NormalizeArgs leaves for kong (kongArgs), the names of the
// flags that kong does not have (unsupported), and the errors.
func TestNormalizeArgs(t *testing.T) {
	noValue := map[string]bool{"strict": true, "max-pods": false, "registry-qps": false, "kube-api-qps": false, "pod-max-pids": false, "allowed-unsafe-sysctls": false}
	tests := []struct {
		args        string
		kongArgs    string
		unsupported string
		err         string
	}{
		{args: "--max_pods 3 --strict", kongArgs: "--max-pods=3 --strict"},
		{args: "--strict=false", kongArgs: "--strict=false"},
		{args: "--strict file.yaml", kongArgs: "--strict file.yaml"},
		{args: "--pod-max-pids -1 -", kongArgs: "--pod-max-pids=-1 -"},
		{args: "-v 3 -e A=--x", kongArgs: "-v 3 -e A=--x"},
		{args: "-v=3 -e=A=b -v= -=x", kongArgs: "-v3 -eA=b -v= -=x"},
		{args: "--strict -- --max_pods --nonsense", kongArgs: "--strict -- --max_pods --nonsense"},
		{args: "--event_qps=3 --vmodule /pki=4 x", kongArgs: "x", unsupported: "event-qps vmodule"},
		{args: "--vmodule=manager", err: "--vmodule: must have the form PATTERN=VERBOSITY[,PATTERN=VERBOSITY]"},
		{args: "--contention-profiling --max-pods=1", kongArgs: "--max-pods=1", unsupported: "contention-profiling"},
		{args: "--feature-gates=A=true --feature-gates B=false", unsupported: "feature-gates"},
		{args: "--oom-score-adj -999", unsupported: "oom-score-adj"},
		{args: "--max-pod 3", err: "unknown flag --max-pod; did you mean --max-pods?"},
		{args: "--eviction-hart=x", err: "unknown flag --eviction-hart; did you mean --eviction-hard?"},
		{args: "--network-plugin cni --logtostderr x", kongArgs: "x", unsupported: "network-plugin logtostderr"},
		{args: "--enable_cri=false --docker_root=/a --docker_root=/b", unsupported: "enable-cri docker-root"},
		{args: "--experimental_allowed_unsafe_sysctls a --max-pods=1", kongArgs: "--allowed-unsafe-sysctls=a --max-pods=1", unsupported: "experimental-allowed-unsafe-sysctls"},
		{args: "--experimental-kernel-memcg-notification x", kongArgs: "x", unsupported: "experimental-kernel-memcg-notification kernel-memcg-notification"},
		{args: "--container-runtime remote", unsupported: "container-runtime"},
		{args: "--container-runtime=docker", err: "--container-runtime: must be remote, because podd contains no container runtime; install containerd, CRI-O or, for Docker Engine, cri-dockerd, and set --container-runtime-endpoint"},
		{args: "--network-plugins=cni", err: "unknown flag --network-plugins"},
		{args: "--experimental-bootstrap-kubeconfig=x", err: "unknown flag --bootstrap-kubeconfig"},
		{args: "--experimental-qos-reserved", err: "--experimental-qos-reserved: a value is missing"},
		{args: "--containerized=maybe", err: "--containerized: must be true or false"},
		{args: "--zzzzzz", err: "unknown flag --zzzzzz"},
		{args: "--max-pods", err: "--max-pods: a value is missing"},
		{args: "--vmodule", err: "--vmodule: a value is missing"},
		{args: "--contention-profiling=maybe", err: "--contention-profiling: must be true or false"},
		{args: "--event-qps=many --zzzzzz=1", err: "--event-qps: must be an integer\nunknown flag --zzzzzz"},
		{args: "--eviction-hard memory.available=1Gi", err: "--eviction-hard: must have the form NAME<VALUE[,NAME<VALUE]"},
		{args: "--reserved-memory 0:memory=1Gi,hugepages-2Mi=1Gi;1:memory=1Gi", unsupported: "reserved-memory"},
		{args: "--reserved-memory 0", err: "--reserved-memory: must have the form NODE:NAME=QUANTITY[,NAME=QUANTITY][;NODE:…]"},
		{args: "--reserved-memory a:memory=1Gi", err: "--reserved-memory: must have the form NODE:NAME=QUANTITY[,NAME=QUANTITY][;NODE:…]"},
		{args: "--feature-gates A=sure", err: "--feature-gates: must contain A=true or A=false"},
		{args: "--registry-qps=5.0 --kube-api-qps 1e1 --registry_qps=5", kongArgs: "--registry-qps=5 --kube-api-qps=10 --registry-qps=5"},
		{args: "--registry-qps=2.5", err: "--registry-qps: must be an integer; earlier kubelets also accepted fractions; set 3"},
		{args: "--kube-api-qps=0.1", err: "--kube-api-qps: must be an integer; earlier kubelets also accepted fractions; set 1"},
		{args: "--event-qps=5.0", unsupported: "event-qps"},
		{args: "--event-qps=4.5", err: "--event-qps: must be an integer; earlier kubelets also accepted fractions; set 5"},
		{args: "--event-qps=1e99 --event-qps=-0.5 --event-qps=NaN", err: strings.Repeat("--event-qps: must be an integer\n", 2) + "--event-qps: must be an integer"},
		{args: "--event-burst=5.0", err: "--event-burst: must be an integer"},
		{args: "--cpu-cfs-quota-period=soon", err: "--cpu-cfs-quota-period: is not a duration; write something like 10s, 5m or 1h30m"},
	}
	for _, tt := range tests {
		kongArgs, unsupported, err := NormalizeArgs(strings.Fields(tt.args), func(name string) (bool, bool) {
			b, ok := noValue[name]
			return b, ok
		}, []string{"strict", "max-pods", "pod-max-pids"})
		var names []string
		for _, k := range unsupported {
			names = append(names, k.Name)
		}
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != tt.err {
			t.Errorf("NormalizeArgs(%q): got error %q, want %q", tt.args, text, tt.err)
		}
		if err != nil {
			continue
		}
		if got := strings.Join(kongArgs, " "); got != tt.kongArgs {
			t.Errorf("NormalizeArgs(%q): got kongArgs %q, want %q", tt.args, got, tt.kongArgs)
		}
		if got := strings.Join(names, " "); got != tt.unsupported {
			t.Errorf("NormalizeArgs(%q): got unsupported flags %q, want %q", tt.args, got, tt.unsupported)
		}
	}
}

// readKubeletFlags returns the names of all flags of the kubelet, from testdata/kubelet-flags.txt.
func readKubeletFlags(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/kubelet-flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// servedFlags returns the set of the flags that podd run serves: the flags in Flags, and the flags of all
// verbs (--help and --version).
func servedFlags() map[string]bool {
	served := map[string]bool{"help": true, "version": true}
	for f := range new(Flags).settings() {
		served[flagName(f)] = true
	}
	return served
}

// TestKubeletFlags checks that every flag of the kubelet is either in Flags or in kubeletFlags. A former
// flag must be neither in Flags nor a flag of the current kubelet.
func TestKubeletFlags(t *testing.T) {
	served := servedFlags()
	ofKubelet := map[string]bool{}
	for _, name := range readKubeletFlags(t) {
		ofKubelet[name] = true
		if _, isUnserved := findKubeletFlag(name); isUnserved == served[name] {
			t.Errorf("--%s: in kubeletFlags: %v, in Flags: %v; want it in exactly one of them", name, isUnserved, served[name])
		}
	}
	for _, f := range kubeletFlags {
		if !ofKubelet[f.name] {
			t.Errorf("--%s is in kubeletFlags, but is not a flag of the kubelet", f.name)
		}
	}
	for _, f := range readFormerFlags(t) {
		if ofKubelet[f.name] || served[f.name] {
			t.Errorf("--%s is a former flag, but also a flag of the kubelet or of podd", f.name)
		}
	}
}

// TestTables checks that every field in the tables of this package exists. It also checks that the value
// of a flag in kubeletFlags can be set in the field of the flag.
func TestTables(t *testing.T) {
	fields := map[string]reflect.Type{}
	k := reflect.ValueOf(&kubelet.KubeletConfiguration{}).Elem()
	visitFields(k, k, "", func(path string, v, _ reflect.Value) { fields[path] = v.Type() })
	for path := range supportedFields {
		if fields[path] == nil {
			t.Errorf("supportedFields contains %q, which is not a field of KubeletConfiguration", path)
		}
	}
	for path := range clusterFields {
		if fields[path] == nil {
			t.Errorf("clusterFields contains %q, which is not a field of KubeletConfiguration", path)
		}
	}
	for path := range disabledByZero {
		if fields[path] == nil {
			t.Errorf("disabledByZero contains %q, which is not a field of KubeletConfiguration", path)
		}
	}
	for f := range new(Flags).settings() {
		if path, ok := f.Tag.Lookup("field"); ok && !supportedFields[path] && !clusterFields[path] {
			t.Errorf("Flags.%s sets %q, which is neither in supportedFields nor in clusterFields", f.Name, path)
		}
	}
	sample := map[valueFormat]string{textFormat: "x", booleanFormat: "true", numberFormat: "1", durationFormat: "1s", listFormat: "a,b", pairsFormat: "a=b", thresholdsFormat: "a<b", featureGatesFormat: "A=true", vmoduleFormat: "manager=4"}
	for _, f := range kubeletFlags {
		if f.field == "" {
			continue
		}
		text := sample[f.format]
		if strings.HasSuffix(f.name, "-info-buffer-size") {
			text = "1Ki"
		}
		k, err := f.parse(text)
		if err != nil {
			t.Errorf("--%s=%s: parsing the value: %v", f.name, text, err)
			continue
		}
		if _, problems := (&Flags{Unsupported: []UnsupportedFlag{k}}).checkedLayer(); len(problems) > 0 {
			t.Errorf("--%s=%s: setting the value in %s: %v", f.name, text, f.field, problems)
		}
	}
}

// TestNormalizeArgs_Secret checks that errors do not contain the values of flags, which may be secret.
func TestNormalizeArgs_Secret(t *testing.T) {
	_, _, err := tryArgs("--containerized=hunter2", "--feature-gates=hunter2", "--event-qps=hunter2")
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got error %v, want an error that does not contain the value", err)
	}
}

// tryArgs calls NormalizeArgs as if kong had no flags.
func tryArgs(args ...string) ([]string, []UnsupportedFlag, error) {
	return NormalizeArgs(args, func(string) (bool, bool) { return false, false }, nil)
}

// FuzzNormalizeArgs checks that the values of all flags that NormalizeArgs accepts can be decoded as a
// KubeletConfiguration.
func FuzzNormalizeArgs(f *testing.F) {
	f.Add("--max_pods 3 --event-qps=1 -- x")
	f.Add("--feature-gates A=true --feature-gates=B=false --eviction-hard a<b,c<d")
	f.Fuzz(func(t *testing.T, line string) {
		kongArgs, unsupported, err := tryArgs(strings.Fields(line)...)
		if err != nil {
			return
		}
		flags := Flags{Unsupported: unsupported}
		m := newMergedTree()
		l, _ := flags.checkedLayer()
		m.apply(l)
		if _, err := m.decode(); err != nil {
			t.Errorf("NormalizeArgs(%q): got kongArgs %q, unsupported flags %v, and error %v of decoding these flags; want no error", line, kongArgs, unsupported, err)
		}
	})
}
