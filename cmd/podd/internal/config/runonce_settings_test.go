package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"podd/manifest"
)

// runOnceFields are the fields that have an effect with --runonce. podd ignores only some values of
// memoryReservationPolicy and enforceNodeAllocatable, and warns about these values. All other fields that
// podd supports must cause a warning.
var runOnceFields = newSet(
	"kind", "apiVersion", "runOnce",
	"staticPodPath", "staticPodURL", "staticPodURLHeader",
	"containerRuntimeEndpoint", "imageServiceEndpoint", "runtimeRequestTimeout",
	"maxPods", "podsPerCore", "podPidsLimit", "localStorageCapacityIsolation",
	"cpuCFSQuota", "cpuCFSQuotaPeriod", "cpuManagerPolicy", "memoryManagerPolicy", "topologyManagerPolicy",
	"memorySwap.swapBehavior", "memoryThrottlingFactor", "memoryReservationPolicy", "singleProcessOOMKill",
	"cgroupDriver", "cgroupRoot", "cgroupsPerQOS", "userNamespaces", "podCIDR",
	"seccompDefault", "allowedUnsafeSysctls", "defaultPodSysctls", "failCgroupV1", "failSwapOn",
	"kubeReserved", "systemReserved", "enforceNodeAllocatable",
	"evictionHard", "mergeDefaultEvictionSettings", // hard thresholds reduce the allocatable resources
	"crashLoopBackOff.maxContainerRestartPeriod",
	"serializeImagePulls", "maxParallelImagePulls", "registryPullQPS", "registryBurst",
	"imagePullCredentialsVerificationPolicy", "preloadedImagesVerificationAllowlist",
	"clusterDNS", "clusterDomain", "resolvConf",
	"podLogsDir", "containerLogMaxSize", "containerLogMaxFiles", "containerLogMaxWorkers", "containerLogMonitorInterval",
	"logging.format", "logging.verbosity", "logging.vmodule",
	"logging.options.text.infoBufferSize", "logging.options.json.infoBufferSize", // all values but 0 are rejected
)

// runOnceFlags are the flags without a field that have an effect with --runonce. All other flags must
// cause a warning or an error.
var runOnceFlags = newSet(
	"config", "config-dir", "root-dir",
	"pod-manifest-path", "manifest-url", "manifest-url-header", "manifest-url-header-file", "manifest-url-ca", "manifest-url-cert", "manifest-url-key", "strict",
	"hostname-override", "node-ip", "node-labels",
	"parallel-starts", "runtime-class", "minimum-container-ttl-duration", "maximum-dead-containers-per-container", "maximum-dead-containers",
	"pull-offline", "image-credential-provider-config", "image-credential-provider-bin-dir",
	"experimental-allocatable-ignore-eviction",
	"dynamic-config-dir", "dynamic-config-trial", // podd run rejects both together with --runonce
)

// TestSettings_RunOnceFields checks that each field that podd supports has an effect with --runonce
// (runOnceFields), or else causes a warning. TestSettings_Fields checks all other fields.
func TestSettings_RunOnceFields(t *testing.T) {
	supports := map[string]Support{}
	for _, f := range Fields() {
		supports[f.Path] = f.Support
	}
	defaults := reflect.ValueOf(newDefaults()).Elem()
	visitFields(defaults, defaults, "", func(path string, v, _ reflect.Value) {
		if supports[path] != Supported {
			return
		}
		value := zeroValue(v.Type())
		if !v.IsZero() {
			value = v.Interface()
		}
		flags := Flags{FileFlags: writeField(t, path, value), PodFlags: PodFlags{RunOnce: new(true)}}
		_, warnings, _ := Load(flags, testHost)
		isIgnored := slices.ContainsFunc(warnings, func(w Warning) bool {
			return strings.HasPrefix(w.Message, path+" (") && strings.HasSuffix(w.Message, ": ignored with --runonce")
		})
		if isIgnored == runOnceFields[path] {
			t.Errorf("%s: got warnings %v; want a warning that --runonce ignores the field: %t", path, warnings, !runOnceFields[path])
		}
	})
}

// TestSettings_RunOnceFlags checks that each flag without a field has an effect with --runonce
// (runOnceFlags), or else causes a warning or an error.
func TestSettings_RunOnceFlags(t *testing.T) {
	samples := map[string]string{"cloud-metadata": "ec2", "cloud-provider": "external", "register-with-taints": "a=b:NoSchedule"}
	for field := range new(Flags).settings() {
		name := flagName(field)
		if field.Tag.Get("field") != "" {
			continue
		}
		flags := Flags{PodFlags: PodFlags{RunOnce: new(true)}}
		setSample(reflect.ValueOf(&flags).Elem().FieldByIndex(field.Index), samples[name])
		_, warnings, err := Load(flags, testHost)
		var problems []manifest.Problem
		problems = append(problems, warnings...)
		if errs, ok := err.(Errors); ok {
			problems = append(problems, errs...)
		}
		isNamed := slices.ContainsFunc(problems, func(p manifest.Problem) bool {
			isVerdict := strings.Contains(p.Message, "--runonce") || strings.Contains(p.Message, "--kubeconfig") || strings.Contains(p.Message, "needs --lock-file")
			return isVerdict && strings.HasPrefix(p.Text(), "--"+name+":")
		})
		if isNamed == runOnceFlags[name] {
			t.Errorf("--%s: got warnings %v, error %v; want a warning or an error that --runonce ignores the flag: %t", name, warnings, err, !runOnceFlags[name])
		}
	}
}

// setSample sets the value of a flag to text, or to another value that is not zero if the value is not
// text or text is "".
func setSample(v reflect.Value, text string) {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if text == "" {
		text = "x"
	}
	switch {
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.Type() == reflect.TypeFor[[]string]():
		v.Set(reflect.ValueOf([]string{text}))
	case v.Type() == reflect.TypeFor[time.Duration]():
		v.SetInt(int64(time.Minute))
	default:
		v.SetInt(1)
	}
}
