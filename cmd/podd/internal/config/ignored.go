package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/manifest"
)

// supportedFields are the fields that podd supports.
var supportedFields = newSet(
	"kind", "apiVersion", "staticPodPath", "staticPodURL", "staticPodURLHeader",
	"fileCheckFrequency", "httpCheckFrequency", "syncFrequency",
	"containerRuntimeEndpoint", "imageServiceEndpoint", "runtimeRequestTimeout",
	"podLogsDir", "containerLogMaxSize", "containerLogMaxFiles", "containerLogMonitorInterval", "maxPods", "podsPerCore", "cpuCFSQuota", "cpuCFSQuotaPeriod", "singleProcessOOMKill", "oomScoreAdj", "nodeStatusMaxImages", "cgroupDriver", "cgroupRoot", "cgroupsPerQOS", "userNamespaces",
	"seccompDefault", "allowedUnsafeSysctls", "failCgroupV1", "failSwapOn", "memorySwap.swapBehavior",
	"crashLoopBackOff.maxContainerRestartPeriod", "runOnce",
	"serializeImagePulls", "maxParallelImagePulls", "registryPullQPS", "registryBurst",
	"imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "imageMinimumGCAge", "imageMaximumGCAge",
	"imagePullCredentialsVerificationPolicy", "preloadedImagesVerificationAllowlist",
	"clusterDNS", "clusterDomain", "resolvConf", "podCIDR",
	"healthzPort", "healthzBindAddress", "readOnlyPort", "address", "port", "enableServer",
	"tlsCertFile", "tlsPrivateKeyFile", "tlsMinVersion", "tlsCipherSuites", "tlsCurvePreferences",
	"authentication.x509.clientCAFile", "authentication.anonymous.enabled", "authorization.mode",
	"authentication.webhook.enabled", // warnAuthorization adds the warning for this field
	"enableDebuggingHandlers", "enableSystemLogHandler", "enableProfilingHandler", "enableContentionProfiling", "enableDebugFlagsHandler",
	"logging.format", "logging.verbosity",
	"shutdownGracePeriod", "shutdownGracePeriodCriticalPods", "shutdownGracePeriodByPodPriority",
	"podPidsLimit", "kubeReserved", "systemReserved", "kubeReservedCgroup", "systemReservedCgroup", "enforceNodeAllocatable",
	"evictionHard", "mergeDefaultEvictionSettings", "evictionPressureTransitionPeriod",
	"evictionSoft", "evictionSoftGracePeriod", "evictionMaxPodGracePeriod", "evictionMinimumReclaim",
	"memoryThrottlingFactor", "memoryReservationPolicy", "defaultPodSysctls",
	// checkUnsupported rejects all but one value of the following fields.
	"cpuManagerPolicy", "memoryManagerPolicy", "topologyManagerPolicy", "reservedSystemCPUs",
)

// clusterFields are the fields that have an effect only with --kubeconfig.
var clusterFields = newSet(
	"registerNode", "registerWithTaints", "providerID", "enableControllerAttachDetach",
	"nodeStatusUpdateFrequency", "nodeStatusReportFrequency", "nodeLeaseDurationSeconds",
	"kubeAPIQPS", "kubeAPIBurst", "eventRecordQPS", "eventBurst", "contentType", "rotateCertificates", "serverTLSBootstrap",
	"configMapAndSecretChangeDetectionStrategy",
	"authentication.webhook.cacheTTL", "authorization.webhook.cacheAuthorizedTTL", "authorization.webhook.cacheUnauthorizedTTL",
)

// An obsoleteGroup contains fields that have no effect in the kubelet of Kubernetes 1.37 either, and
// that have the same replacement.
type obsoleteGroup struct {
	replacement string // the last part of the warning
	fields      []string
}

var obsoleteFields = []obsoleteGroup{
	{"the network plugins configure hairpin mode", []string{"hairpinMode"}},
	{"kube-proxy creates the iptables rules", []string{"iptablesMasqueradeBit", "iptablesDropBit"}},
	{"the container runtime closes idle streams; set stream_idle_timeout in the configuration of containerd", []string{"streamingConnectionIdleTimeout"}},
}

// findObsolete returns the index of the group in obsoleteFields that contains a field, or -1.
func findObsolete(path string) int {
	return slices.IndexFunc(obsoleteFields, func(g obsoleteGroup) bool { return slices.Contains(g.fields, path) })
}

// equivalentValues maps a field that podd does not support to the value with which the kubelet
// behaves like podd. A field with this value causes no warning. nil means that no value causes a
// warning.
var equivalentValues = map[string]any{
	"registerNode":                 false,
	"kernelMemcgNotification":      true,
	"makeIPTablesUtilChains":       false,
	"enableControllerAttachDetach": false,
	"logging.flushFrequency":       nil, // podd does not buffer its log
}

// warnIgnoredSettings returns the warnings for settings that have no effect. It returns one warning
// for each unknown feature gate, and the warnings of warnFormerFlags. All other fields and flags with
// the same reason are in one warning. userConfig is the merged configuration without defaults, and
// inCluster reports whether podd runs as a node of a cluster.
func warnIgnoredSettings(userConfig *kubelet.KubeletConfiguration, m *mergedTree, unserved []UnsupportedFlag, inCluster bool) []manifest.Problem {
	var unsupported, needCluster, fixedGates, logLevels []string
	obsolete := make([][]string, len(obsoleteFields)) // names by group
	var warnings []manifest.Problem
	record := func(path string, o origin) {
		names := &unsupported
		switch {
		case clusterFields[path]:
			names = &needCluster
		case findObsolete(path) >= 0:
			names = &obsolete[findObsolete(path)]
		case path == "logging.vmodule" || o.flag == "--vmodule":
			names = &logLevels
		}
		addName(names, path, o)
	}
	visitFields(reflect.ValueOf(userConfig).Elem(), reflect.ValueOf(newDefaults()).Elem(), "", func(path string, v, def reflect.Value) {
		if !m.isSet(path) || supportedFields[path] || inCluster && clusterFields[path] {
			return
		}
		if path == "featureGates" {
			unknown, disabled, enabled := ignoredGates(userConfig.FeatureGates, m)
			warnings = append(warnings, unknown...)
			fixedGates, unsupported = append(fixedGates, disabled...), append(unsupported, enabled...)
			return
		}
		o := m.origin(path)
		if want, ok := equivalentValues[path]; ok && (want == nil || equalsValue(v, want)) {
			return
		}
		if o.flag == "" && (isZero(v) || reflect.DeepEqual(indirect(v), indirect(def))) {
			return
		}
		record(path, o)
	})
	for _, flag := range unserved {
		if flag.field == "" && !flag.isEmpty && !flag.isFormer() {
			record("", origin{flag: "--" + flag.Name})
		}
	}
	warnings = append(warnings, warnFormerFlags(unserved, inCluster)...)
	warnings = append(warnings, newIgnoredWarning(unsupported, "ignored, because podd does not support it yet")...)
	for i, names := range obsolete {
		warnings = append(warnings, newIgnoredWarning(names, "ignored, because it is obsolete and has no effect in the kubelet either; "+obsoleteFields[i].replacement)...)
	}
	warnings = append(warnings, newIgnoredWarning(fixedGates, "ignored, because podd cannot disable it")...)
	warnings = append(warnings, newIgnoredWarning(logLevels, "ignored, because the log level of --v applies to all of podd")...)
	return append(warnings, newIgnoredWarning(needCluster, "ignored without --kubeconfig")...)
}

// ignoredGates returns the feature gates that have no effect in podd. unknown contains a warning
// for each gate that the kubelet does not have. disabled contains the gates that the user disables
// and podd cannot disable. enabled contains the gates that the user enables and podd does not
// support.
func ignoredGates(gates map[string]bool, m *mergedTree) (unknown []manifest.Problem, disabled, enabled []string) {
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		path := joinKey("featureGates", name)
		o := m.origin(path)
		if _, ok := switchableGates[name]; ok {
			continue
		}
		if !isFeatureGate[name] {
			unknown = append(unknown, newUnknownGateWarning(name, o))
			continue
		}
		if o.flag != "" {
			path, o = o.flag+"="+name, origin{}
		}
		switch {
		case gates[name] && !isAlwaysEnabled[name]:
			addName(&enabled, path, o)
		case !gates[name] && (isAlwaysEnabled[name] || name == gateAllBeta):
			addName(&disabled, path, o)
		}
	}
	return unknown, disabled, enabled
}

// addName adds a field or flag to names, with its position, unless names contains it.
func addName(names *[]string, path string, o origin) {
	if o.flag != "" {
		path = o.flag
	} else if position := o.String(); position != "" {
		path += " (" + position + ")"
	}
	if !slices.Contains(*names, path) {
		*names = append(*names, path)
	}
}

// newIgnoredWarning returns one warning that names all ignored fields and flags, or nil if
// names is empty.
func newIgnoredWarning(names []string, reason string) []manifest.Problem {
	if len(names) == 0 {
		return nil
	}
	return []manifest.Problem{{Severity: manifest.Warning, Message: strings.Join(names, ", ") + ": " + reason}}
}

// visitFields calls visit for each field of two structs of the same type, v and def. For a field
// that is a struct, it calls visit for the fields of that struct instead. fieldPath is the field
// path of v.
func visitFields(v, def reflect.Value, fieldPath string, visit func(path string, v, def reflect.Value)) {
	for f := range eachField(v.Type()) {
		path := joinField(fieldPath, f.name)
		value, other := v.FieldByIndex(f.index), def.FieldByIndex(f.index)
		if f.typ.Kind() == reflect.Struct && hasFields(f.typ) {
			visitFields(value, other, path, visit)
			continue
		}
		visit(path, value, other)
	}
}

// indirect returns the value of v, or the value that v points to. It returns nil for a nil
// pointer.
func indirect(v reflect.Value) any {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	return v.Interface()
}

// isZero reports whether v is the zero value, an empty map or an empty slice.
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

// equalsValue reports whether v, or the value that v points to, equals want.
func equalsValue(v reflect.Value, want any) bool { return indirect(v) == want }

// newSet returns the set of names.
func newSet(names ...string) map[string]bool {
	s := make(map[string]bool, len(names))
	for _, n := range names {
		s[n] = true
	}
	return s
}
