package config

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// withoutEffect contains the supported fields that change nothing in Config, with the reasons. For the fields
// that have only one valid value, TestRejectedValues of podd checks the other values.
var withoutEffect = map[string]string{
	"kind": "one valid value", "apiVersion": "one valid value",
	"localStorageCapacityIsolation": "one valid value", "configMapAndSecretChangeDetectionStrategy": "one valid value",
	"cpuManagerPolicy": "one valid value", "memoryManagerPolicy": "one valid value", "topologyManagerPolicy": "one valid value",
	"logging.options.text.infoBufferSize": "one valid value", "logging.options.json.infoBufferSize": "one valid value",
}

// A change is a change of a field.
type change struct {
	to   any            // the new value; nil for one that changedValue returns
	with map[string]any // values before and after the change by path, which may include the field itself
	// inCluster is set for a field that has an effect only with --kubeconfig, although podd supports it
	// without.
	inCluster bool
	host      *HostFacts // nil for testHost
	isError   bool       // the new value is an error on this host
}

// fieldChanges returns the changes of fields for which changedValue returns no valid value, or that need other
// fields.
func fieldChanges() map[string]change {
	oldHost := testHost
	oldHost.UsesCgroupV2, oldHost.SwapEnabled = false, true
	taints := []any{map[string]any{"key": "a", "effect": "NoSchedule"}}
	keyPair := map[string]any{"tlsCertFile": "/a", "tlsPrivateKeyFile": "/a"}
	soft := map[string]any{"evictionSoft": map[string]string{"memory.available": "300Mi"}, "evictionSoftGracePeriod": map[string]string{"memory.available": "30s"}}
	alphaLogging := map[string]any{"featureGates": map[string]bool{"LoggingAlphaOptions": true}}
	reserved := func(name string) map[string]any {
		return map[string]any{
			name + "Reserved": map[string]string{"cpu": "100m"}, name + "ReservedCgroup": "/a",
			"enforceNodeAllocatable": []string{"pods", name + "-reserved"},
		}
	}
	with := func(m map[string]any, path string, value any) map[string]any {
		m = maps.Clone(m)
		m[path] = value
		return m
	}
	return map[string]change{
		"staticPodPath": {to: "/m"}, "staticPodURL": {to: "http://x/m"},
		"staticPodURLHeader":       {to: map[string][]string{"A": {"b"}}},
		"containerRuntimeEndpoint": {to: "unix:///a.sock"}, "imageServiceEndpoint": {to: "unix:///a.sock"},
		"podLogsDir": {to: "/logs"}, "containerLogMaxSize": {to: "5Mi"}, "cgroupDriver": {to: "systemd"}, "cgroupRoot": {to: "/pods"},
		"cgroupsPerQOS":        {to: false, with: map[string]any{"enforceNodeAllocatable": []string{"none"}}},
		"cpuCFSQuotaPeriod":    {to: "50ms"},
		"userNamespaces":       {to: map[string]any{"idsPerPod": 131072}},
		"allowedUnsafeSysctls": {to: []string{"kernel.msg*"}}, "memorySwap.swapBehavior": {to: "LimitedSwap"},
		"failCgroupV1": {to: true, host: &oldHost, isError: true}, "failSwapOn": {to: true, host: &oldHost, isError: true},
		"maxParallelImagePulls": {to: 3}, "imageMaximumGCAge": {to: "1h"},
		"imagePullCredentialsVerificationPolicy": {to: "AlwaysVerify"},
		"preloadedImagesVerificationAllowlist":   {to: []string{"r.example/a"}, with: map[string]any{"imagePullCredentialsVerificationPolicy": "NeverVerifyAllowlistedImages"}},
		"clusterDNS":                             {to: []string{"10.0.0.10"}}, "clusterDomain": {to: "a.local"}, "resolvConf": {to: "/r"}, "podCIDR": {to: "10.0.0.0/24"},
		"healthzBindAddress": {to: "127.0.0.2"}, "readOnlyPort": {to: 10255}, "address": {to: "127.0.0.2"}, "port": {to: 10251},
		"tlsCertFile": {to: "/b", with: keyPair}, "tlsPrivateKeyFile": {to: "/b", with: keyPair}, "tlsMinVersion": {to: "VersionTLS13"},
		"tlsCipherSuites": {to: []string{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}}, "tlsCurvePreferences": {to: []int{29}},
		"authentication.x509.clientCAFile": {to: "/ca"}, "authorization.mode": {to: "AlwaysAllow"},
		"authentication.webhook.enabled": {inCluster: true},
		"logging.format":                 {to: "json"}, "logging.verbosity": {to: 4},
		"logging.vmodule":                  {to: []any{map[string]any{"filePattern": "a", "verbosity": 4}}},
		"logging.options.text.splitStream": {to: true, with: alphaLogging},
		"logging.options.json.splitStream": {to: true, with: with(alphaLogging, "logging.format", "json")},
		"kubeletCgroups":                   {to: "/a"}, "systemCgroups": {to: "/a", with: map[string]any{"cgroupRoot": "/"}},
		"shutdownGracePeriod":              {to: "30s"},
		"shutdownGracePeriodCriticalPods":  {to: "10s", with: map[string]any{"shutdownGracePeriod": "30s"}},
		"shutdownGracePeriodByPodPriority": {to: []any{map[string]any{"priority": 0, "shutdownGracePeriodSeconds": 10}}},
		"podPidsLimit":                     {to: 100}, "kubeReserved": {to: map[string]string{"cpu": "1"}}, "systemReserved": {to: map[string]string{"cpu": "1"}},
		"kubeReservedCgroup": {to: "/b", with: reserved("kube")}, "systemReservedCgroup": {to: "/b", with: reserved("system")},
		"enforceNodeAllocatable":       {to: []string{"none"}},
		"evictionHard":                 {to: map[string]string{"memory.available": "200Mi"}},
		"mergeDefaultEvictionSettings": {to: true, with: map[string]any{"evictionHard": map[string]string{"memory.available": "200Mi"}}},
		"evictionSoft":                 {to: map[string]string{"memory.available": "400Mi"}, with: soft},
		"evictionSoftGracePeriod":      {to: map[string]string{"memory.available": "1m"}, with: soft},
		"evictionMaxPodGracePeriod":    {to: 10, with: soft},
		"evictionMinimumReclaim":       {to: map[string]string{"memory.available": "1Mi"}},
		"memoryThrottlingFactor":       {to: 0.5}, "memoryReservationPolicy": {to: "TieredReservation"},
		"defaultPodSysctls": {to: map[string]string{"kernel.shm_rmid_forced": "1"}, with: map[string]any{"featureGates": map[string]bool{"DefaultPodSysctls": true}}},
		"tracing":           {to: map[string]any{"endpoint": "a:1"}}, "oomScoreAdj": {to: -500},
		"kernelMemcgNotification": {to: false}, // podd has another default than the kubelet

		"registerWithTaints": {to: taints}, "providerID": {to: "a"}, "contentType": {to: "application/json"},
	}
}

// changedValue returns a value that differs from the default value v of a field: the other boolean, the next
// number, or half of the duration. It returns nil for other types.
func changedValue(v reflect.Value) any {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v = reflect.New(v.Type().Elem())
		}
		v = v.Elem()
	}
	if d, ok := v.Interface().(metav1.Duration); ok {
		if d.Duration == 0 {
			return time.Minute.String()
		}
		return (d.Duration / 2).String()
	}
	switch v.Kind() {
	case reflect.Bool:
		return !v.Bool()
	case reflect.Int32, reflect.Int64:
		return v.Int() + 1
	}
	return nil
}

// TestSettings_Effect checks that each supported field has an effect: another value of the field changes the
// Config.
func TestSettings_Effect(t *testing.T) {
	changes, visited := fieldChanges(), map[string]bool{}
	defaults := reflect.ValueOf(newDefaults()).Elem()
	visitFields(defaults, defaults, "", func(path string, v, _ reflect.Value) {
		support := fieldSupport(path)
		if support != Supported && support != SupportedInCluster {
			return
		}
		visited[path] = true
		if withoutEffect[path] != "" {
			return
		}
		c := changes[path]
		if c.to == nil {
			c.to = changedValue(v)
		}
		if c.to == nil {
			t.Errorf("%s: got no other value; add one to fieldChanges", path)
			return
		}
		c.inCluster = c.inCluster || support == SupportedInCluster
		before, err := loadChange(t, c.with, c)
		if err != nil {
			t.Errorf("%s: got error %v before the change, want none", path, err)
			return
		}
		fields := maps.Clone(c.with)
		if fields == nil {
			fields = map[string]any{}
		}
		fields[path] = c.to
		after, err := loadChange(t, fields, c)
		switch {
		case (err != nil) != c.isError:
			t.Errorf("%s: %v: got error %v, want an error: %t", path, c.to, err, c.isError)
		case err == nil && reflect.DeepEqual(before, after):
			t.Errorf("%s: %v: got the same Config as without this value, want another", path, c.to)
		}
	})
	for path := range withoutEffect {
		if _, isChanged := changes[path]; isChanged || !visited[path] {
			t.Errorf("withoutEffect: got %s, want only supported fields that fieldChanges does not contain", path)
		}
	}
	for path := range changes {
		if !visited[path] {
			t.Errorf("fieldChanges: got %s, want only supported fields", path)
		}
	}
	if a, err := loadChange(t, nil, change{}); err != nil {
		t.Error(err)
	} else if b, _ := loadChange(t, nil, change{}); !reflect.DeepEqual(a, b) {
		t.Error("two calls of Load with the same fields: got different Configs, want the same, because the test compares them")
	}
}

// loadChange returns the Config for fields by path, without RedactedConfig.
func loadChange(t *testing.T, fields map[string]any, c change) (Config, error) {
	t.Helper()
	tree := map[string]any{"kind": kubeletConfigKind, "apiVersion": kubeletConfigAPIVersion}
	for path, value := range fields {
		object, keys := tree, strings.Split(path, ".")
		for _, key := range keys[:len(keys)-1] {
			inner, _ := object[key].(map[string]any)
			if inner == nil {
				inner = map[string]any{}
				object[key] = inner
			}
			object = inner
		}
		object[keys[len(keys)-1]] = value
	}
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	flags := Flags{FileFlags: FileFlags{Config: writeFile(t, t.TempDir(), "k.yaml", string(text))}}
	if c.inCluster {
		flags.Kubeconfig = "/kubeconfig"
	}
	host := testHost
	if c.host != nil {
		host = *c.host
	}
	cfg, _, err := Load(flags, host)
	cfg.RedactedConfig = RedactedConfig{}
	return cfg, err
}
