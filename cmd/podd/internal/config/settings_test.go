package config

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

// TestSettings_Fields checks that podd supports each field of KubeletConfiguration, or else names the
// field in an error or warning, also if the file sets the default value or the zero value. Values with
// which the kubelet behaves like podd (isEquivalent) cause neither. These include the zero values of the
// fields that podd rejects, because the kubelet then does not do what podd cannot do.
func TestSettings_Fields(t *testing.T) {
	samples, supports := sampleFields(), map[string]Support{}
	for _, f := range Fields() {
		supports[f.Path] = f.Support
	}
	defaults := reflect.ValueOf(newDefaults()).Elem()
	visitFields(defaults, defaults, "", func(path string, v, _ reflect.Value) {
		values := []any{samples[path]}
		if supports[path] != Rejected {
			values = append(values, zeroValue(v.Type()))
		}
		if !v.IsZero() {
			values = append(values, v.Interface())
		}
		if path == "featureGates" {
			return // TestSettings_Gates checks this field
		}
		for _, value := range values {
			if value == nil && supports[path] != Supported {
				t.Errorf("%s: got no value to test; add one to sampleFields", path)
			}
			for _, inCluster := range []bool{false, true} {
				if supports[path] == Supported || inCluster && supports[path] == SupportedInCluster || value == nil {
					continue
				}
				if isEquivalent(path, reflect.ValueOf(value)) {
					continue
				}
				checkVerdict(t, path, loadField(t, path, value, inCluster))
			}
		}
	})
}

// zeroValue returns the value that a file sets if the field with a type is 0, false or empty. A field
// that is null in the file is not set.
func zeroValue(typ reflect.Type) any {
	switch typ.Kind() {
	case reflect.Pointer:
		return reflect.New(typ.Elem()).Interface()
	case reflect.Slice:
		return reflect.MakeSlice(typ, 0, 0).Interface()
	case reflect.Map:
		return reflect.MakeMap(typ).Interface()
	}
	return reflect.Zero(typ).Interface()
}

// sampleFields returns values other than the default for fields that podd does not support, or only with
// --kubeconfig.
func sampleFields() map[string]any {
	return map[string]any{
		"streamingConnectionIdleTimeout": "1m", "volumeStatsAggPeriod": "2m", "cpuManagerReconcilePeriod": "3s", "topologyManagerScope": "pod",
		"cpuManagerPolicyOptions": map[string]string{"full-pcpus-only": "true"}, "topologyManagerPolicyOptions": map[string]string{"a": "b"},
		"qosReserved": map[string]string{"memory": "50%"}, "hairpinMode": "none",
		"iptablesMasqueradeBit": 3, "iptablesDropBit": 4, "volumePluginDir": "/x", "reservedSystemCPUs": "0",
		"reservedMemory":         []any{map[string]any{"numaNode": 0, "limits": map[string]string{"memory": "1Gi"}}},
		"logging.flushFrequency": "9s", "showHiddenMetricsForVersion": hiddenMetricsVersion(),

		"registerNode": true, "registerWithTaints": []any{map[string]any{"key": "a", "effect": "NoSchedule"}}, "providerID": "x",
		"enableControllerAttachDetach": true, "makeIPTablesUtilChains": true, "rotateCertificates": true, "serverTLSBootstrap": true,
		"nodeStatusUpdateFrequency": "3s", "nodeStatusReportFrequency": "4s", "nodeLeaseDurationSeconds": 5,
		"kubeAPIQPS": 6, "kubeAPIBurst": 7, "eventRecordQPS": 8, "eventBurst": 9, "contentType": "application/json",
		"configMapAndSecretChangeDetectionStrategy": "Get", "authentication.webhook.cacheTTL": "5s",
		"authorization.webhook.cacheAuthorizedTTL": "6s", "authorization.webhook.cacheUnauthorizedTTL": "7s",
	}
}

// loadField calls Load with a file that sets the field at a path to value. It returns all warnings and
// the error as text.
func loadField(t *testing.T, path string, value any, inCluster bool) string {
	t.Helper()
	flags := Flags{FileFlags: writeField(t, path, value)}
	if inCluster {
		flags.Kubeconfig = "/kubeconfig"
	}
	_, warnings, err := Load(flags, testHost)
	return fmt.Sprintln(warnings, err)
}

// writeField writes a file that sets the field at a path to value. It returns the flag with the path of
// the file.
func writeField(t *testing.T, path string, value any) FileFlags {
	t.Helper()
	for _, key := range slices.Backward(strings.Split(path, ".")) {
		value = map[string]any{key: value}
	}
	tree := value.(map[string]any)
	tree["kind"], tree["apiVersion"] = kubeletConfigKind, kubeletConfigAPIVersion
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return FileFlags{Config: writeFile(t, t.TempDir(), "k.yaml", string(text))}
}

// checkVerdict checks a text with warnings and errors. The text must name the setting and the reason why
// the setting has no effect. "podd does not support it yet" is not a reason.
func checkVerdict(t *testing.T, setting, problems string) {
	t.Helper()
	if !strings.Contains(problems, setting) || strings.Contains(problems, "not support it yet") {
		t.Errorf("%s: got warnings and errors %q, want one that names the setting and the reason why it has no effect", setting, strings.TrimSpace(problems))
	}
}

// TestSettings_Flags checks that podd supports each flag of the kubelet, or else names the flag in an
// error or warning. It does not check flags that set a field, because TestSettings_Fields checks the
// fields.
func TestSettings_Flags(t *testing.T) {
	served := servedFlags()
	for _, name := range readKubeletFlags(t) {
		if served[name] {
			continue
		}
		f, ok := findKubeletFlag(name)
		switch {
		case !ok:
			t.Errorf("--%s is a flag of the kubelet, but is neither in Flags nor in kubeletFlags", name)
		case f.field == "":
			_, unserved, err := tryArgs("--"+name, "x")
			if err != nil {
				t.Fatal(err)
			}
			_, warnings, err := Load(Flags{Unsupported: unserved}, testHost)
			checkVerdict(t, "--"+name, fmt.Sprintln(warnings, err))
		case !hasField(f.field):
			t.Errorf("--%s sets the field %s, which KubeletConfiguration does not have", name, f.field)
		}
	}
}

// hasField reports whether KubeletConfiguration has the field at a path.
func hasField(path string) bool {
	return slices.ContainsFunc(Fields(), func(f Field) bool { return f.Path == path })
}

// TestSettings_Gates checks that podd supports each value of each feature gate, or else names the
// feature gate in an error or warning.
func TestSettings_Gates(t *testing.T) {
	for _, name := range gateNames {
		for _, value := range []bool{true, false} {
			problems := loadField(t, "featureGates", map[string]bool{name: value}, true)
			_, isSwitchable := switchableGates[name]
			group := findGateGroup(name)
			served := isSwitchable || isAlwaysEnabled[name] && value || name == gateAllAlpha && !value || group != nil && group.lacksFeature && !value
			switch isNamed := strings.Contains(problems, name); {
			case !served:
				checkVerdict(t, name, problems)
			case isNamed:
				t.Errorf("%s=%t: got warnings and errors %q, want none that names the gate", name, value, problems)
			}
		}
	}
}

// TestGateTables checks that each feature gate in the tables exists, and that it is in one table only.
// testdata/gates-elsewhere.txt lists the gates that are in no table, because they have no effect in the
// kubelet. The test fails for a gate of a new kubelet until the gate is added to a table or this file.
func TestGateTables(t *testing.T) {
	elsewhere, err := os.ReadFile("testdata/gates-elsewhere.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, name := range gateNames {
		if findGateGroup(name) == &gatesElsewhere {
			got = append(got, name)
		}
	}
	if diff := cmp.Diff(strings.Fields(string(elsewhere)), got); diff != "" {
		t.Errorf("feature gates that are in no table (-gates-elsewhere.txt +got):\n%s", diff)
	}
	tables := map[string]int{}
	for name := range switchableGates {
		tables[name]++
	}
	for name := range isAlwaysEnabled {
		tables[name]++
	}
	for _, g := range gateGroups {
		for _, name := range g.gates {
			tables[name]++
		}
	}
	for name, n := range tables {
		if n != 1 || !isFeatureGate[name] {
			t.Errorf("feature gate %s: got %d tables, exists in the kubelet %t; want 1 table, true", name, n, isFeatureGate[name])
		}
	}
}

// TestRecordedDefaults checks that newDefaults returns the same defaults as the kubelet, which are
// recorded in testdata/configz.json.
func TestRecordedDefaults(t *testing.T) {
	recorded := readConfigz(t)
	defaults := newDefaults()
	defaults.Kind, defaults.APIVersion = kubeletConfigKind, kubeletConfigAPIVersion
	want, got := reflect.ValueOf(recorded).Elem(), reflect.ValueOf(defaults).Elem()
	visitFields(want, got, "", func(path string, want, got reflect.Value) {
		if path == "containerRuntimeEndpoint" || path == "serializeImagePulls" { // by default, podd tries several sockets and pulls images in parallel
			return
		}
		if !reflect.DeepEqual(indirect(want), indirect(got)) && !(isZero(want) && isZero(got)) {
			t.Errorf("%s: got default %v, want the default %v of the kubelet", path, indirect(got), indirect(want))
		}
	})
}

// readConfigz returns the configuration that a kubelet without flags and files serves at /configz. It is
// recorded in testdata/configz.json.
func readConfigz(t *testing.T) *kubelet.KubeletConfiguration {
	t.Helper()
	text, err := os.ReadFile("testdata/configz.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Config *kubelet.KubeletConfiguration `json:"kubeletconfig"`
	}
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	return recorded.Config
}
