package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/manifest"
)

// servedFields are the fields that podd supports.
var servedFields = set(
	"kind", "apiVersion", "staticPodPath", "staticPodURL", "staticPodURLHeader",
	"fileCheckFrequency", "httpCheckFrequency", "syncFrequency",
	"containerRuntimeEndpoint", "imageServiceEndpoint", "runtimeRequestTimeout",
	"podLogsDir", "containerLogMaxSize", "containerLogMaxFiles", "containerLogMonitorInterval", "maxPods", "nodeStatusMaxImages", "cgroupDriver", "cgroupRoot",
	"seccompDefault", "allowedUnsafeSysctls", "failCgroupV1", "failSwapOn", "memorySwap.swapBehavior",
	"crashLoopBackOff.maxContainerRestartPeriod", "runOnce",
	"serializeImagePulls", "maxParallelImagePulls", "registryPullQPS", "registryBurst",
	"clusterDNS", "clusterDomain", "resolvConf",
	"healthzPort", "healthzBindAddress", "readOnlyPort", "address", "port", "enableServer",
	"tlsCertFile", "tlsPrivateKeyFile", "tlsMinVersion", "tlsCipherSuites",
	"authentication.x509.clientCAFile", "authentication.anonymous.enabled", "authorization.mode",
	"authentication.webhook.enabled", // warnAuthorization warns of it
	"enableDebuggingHandlers", "enableSystemLogHandler", "enableProfilingHandler", "enableDebugFlagsHandler",
	"logging.format", "logging.verbosity",
	"shutdownGracePeriod", "shutdownGracePeriodCriticalPods", "shutdownGracePeriodByPodPriority",
	"podPidsLimit", "kubeReserved", "systemReserved", "enforceNodeAllocatable",
	"evictionHard", "mergeDefaultEvictionSettings", "evictionPressureTransitionPeriod",
	// These have only one supported value, see checkUnsupported.
	"cpuManagerPolicy", "memoryManagerPolicy", "topologyManagerPolicy", "reservedSystemCPUs",
)

// clusterFields are the fields that podd supports in a cluster and ignores otherwise.
var clusterFields = set(
	"registerNode", "registerWithTaints", "providerID", "enableControllerAttachDetach",
	"nodeStatusUpdateFrequency", "nodeStatusReportFrequency", "nodeLeaseDurationSeconds",
	"kubeAPIQPS", "kubeAPIBurst", "eventRecordQPS", "eventBurst", "contentType", "rotateCertificates", "serverTLSBootstrap",
	"configMapAndSecretChangeDetectionStrategy",
	"authentication.webhook.cacheTTL", "authorization.webhook.cacheAuthorizedTTL", "authorization.webhook.cacheUnauthorizedTTL",
)

// matchingValues maps fields that podd does not support to the value that equals podd's
// behavior, for which there is no warning. nil means every value.
var matchingValues = map[string]any{
	"registerNode":                 false,
	"makeIPTablesUtilChains":       false,
	"enableControllerAttachDetach": false,
	"logging.flushFrequency":       nil, // nothing is buffered
}

// unserved returns a warning for each unknown feature gate, and one warning each that names
// the fields and flags that are ignored because podd does not support them, or because they
// need a cluster. inCluster reports whether the node is in a cluster.
func unserved(user *kubelet.KubeletConfiguration, m *merged, known []Known, inCluster bool) []manifest.Problem {
	var unsupported, needCluster []string
	var unknown []manifest.Problem
	record := func(path string, o origin) {
		names := &unsupported
		if clusterFields[path] {
			names = &needCluster
		}
		if o.flag != "" {
			path = o.flag
		} else if at := o.String(); at != "" {
			path += " (" + at + ")"
		}
		if !slices.Contains(*names, path) {
			*names = append(*names, path)
		}
	}
	leaves(reflect.ValueOf(user).Elem(), reflect.ValueOf(defaults()).Elem(), "", func(path string, v, def reflect.Value) {
		if !m.isSet(path) || servedFields[path] || inCluster && clusterFields[path] {
			return
		}
		if path == "featureGates" {
			unknown = recordGates(user.FeatureGates, m, record)
			return
		}
		o := m.origin(path)
		if want, ok := matchingValues[path]; ok && (want == nil || equals(v, want)) {
			return
		}
		if o.flag == "" && (isZero(v) || reflect.DeepEqual(indirect(v), indirect(def))) {
			return
		}
		record(path, o)
	})
	for _, k := range known {
		if k.field == "" && !k.empty {
			record("", origin{flag: "--" + k.Name})
		}
	}
	unknown = append(unknown, warnIgnored(unsupported, "ignored, because podd does not support it yet")...)
	return append(unknown, warnIgnored(needCluster, "ignored without --kubeconfig")...)
}

// recordGates calls record for every feature gate of the kubelet that has no effect in podd,
// and returns a warning for each unknown one.
func recordGates(gates map[string]bool, m *merged, record func(string, origin)) (unknown []manifest.Problem) {
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		path := joinKey("featureGates", name)
		if name == gateRestartRules || name == gateGracefulShutdown || name == gateShutdownByPriority || name == "KubeletCrashLoopBackOffMax" && gates[name] { // podd always supports its limit
			continue
		}
		o := m.origin(path)
		if !isGate[name] {
			unknown = append(unknown, unknownGate(name, o))
			continue
		}
		if o.flag != "" {
			path, o = o.flag+"="+name, origin{}
		}
		record(path, o)
	}
	return unknown
}

// warnIgnored returns one warning for several fields and flags, or none if there are none.
func warnIgnored(names []string, reason string) []manifest.Problem {
	if len(names) == 0 {
		return nil
	}
	return []manifest.Problem{{Severity: manifest.Warning, Message: strings.Join(names, ", ") + ": " + reason}}
}

// leaves calls visit for the fields of two structs of the same type, and recursively for
// those of nested structs instead of the structs themselves.
func leaves(v, def reflect.Value, at string, visit func(path string, v, def reflect.Value)) {
	for f := range eachField(v.Type()) {
		path := join(at, f.name)
		value, other := v.FieldByIndex(f.index), def.FieldByIndex(f.index)
		if f.typ.Kind() == reflect.Struct && hasFields(f.typ) {
			leaves(value, other, path, visit)
			continue
		}
		visit(path, value, other)
	}
}

// indirect returns the value behind a pointer, or nil.
func indirect(v reflect.Value) any {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	return v.Interface()
}

// isZero reports whether v is zero or empty.
func isZero(v reflect.Value) bool {
	if z, ok := v.Addr().Interface().(interface{ IsZero() bool }); ok {
		return z.IsZero()
	}
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	}
	return v.IsZero()
}

// equals reports whether v, or the value behind it, equals want.
func equals(v reflect.Value, want any) bool { return indirect(v) == want }

// set returns a set of names.
func set(names ...string) map[string]bool {
	s := make(map[string]bool, len(names))
	for _, n := range names {
		s[n] = true
	}
	return s
}
