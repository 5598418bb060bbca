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
	"enableDebuggingHandlers", "enableSystemLogHandler", "enableSystemLogQuery", "enableProfilingHandler", "enableContentionProfiling", "enableDebugFlagsHandler",
	"logging.format", "logging.verbosity", "logging.vmodule", "logging.options.text.splitStream", "logging.options.json.splitStream",
	"logging.options.text.infoBufferSize", "logging.options.json.infoBufferSize", // all values but 0 are rejected
	"containerLogMaxWorkers", "kernelMemcgNotification", "protectKernelDefaults", "localStorageCapacityIsolation",
	"maxOpenFiles", "kubeletCgroups", "systemCgroups",
	"shutdownGracePeriod", "shutdownGracePeriodCriticalPods", "shutdownGracePeriodByPodPriority",
	"podPidsLimit", "kubeReserved", "systemReserved", "kubeReservedCgroup", "systemReservedCgroup", "enforceNodeAllocatable",
	"evictionHard", "mergeDefaultEvictionSettings", "evictionPressureTransitionPeriod",
	"evictionSoft", "evictionSoftGracePeriod", "evictionMaxPodGracePeriod", "evictionMinimumReclaim",
	"memoryThrottlingFactor", "memoryReservationPolicy", "defaultPodSysctls", "tracing",
	// checkUnsupported rejects all but one value of the following fields.
	"cpuManagerPolicy", "memoryManagerPolicy", "topologyManagerPolicy",
)

// rejectedFields contains the reasons why podd rejects every value of a field, except the empty value,
// with which the kubelet behaves like podd.
var rejectedFields = map[string]string{
	"reservedSystemCPUs":      "podd does not keep CPUs free of pods; reserve an amount with systemReserved",
	"cpuManagerPolicyOptions": "podd does not assign CPUs to containers; remove this field",
	"qosReserved":             "podd reserves no memory for QoS classes; use memoryReservationPolicy",
}

// clusterFields are the fields that have an effect only with --kubeconfig.
var clusterFields = newSet(
	"registerNode", "registerWithTaints", "providerID", "enableControllerAttachDetach", "makeIPTablesUtilChains",
	"nodeStatusUpdateFrequency", "nodeStatusReportFrequency", "nodeLeaseDurationSeconds",
	"kubeAPIQPS", "kubeAPIBurst", "eventRecordQPS", "eventBurst", "contentType", "rotateCertificates", "serverTLSBootstrap",
	"configMapAndSecretChangeDetectionStrategy",
	"authentication.webhook.cacheTTL", "authorization.webhook.cacheAuthorizedTTL", "authorization.webhook.cacheUnauthorizedTTL",
)

// An ignoredGroup contains fields and flags without an effect that have the same replacement.
type ignoredGroup struct {
	reason string // the last part of the warning; it names the replacement
	fields []string
	flags  []string // flags without a field, with their leading dashes
}

// obsoletePrefix is the beginning of the reason for settings that have no effect in the kubelet of
// Kubernetes 1.37 either.
const obsoletePrefix = "it is obsolete and has no effect in the kubelet either; "

// policyNoneReason is the reason for settings that only refine the policies of resource managers.
const policyNoneReason = "it has no effect with the policy none in the kubelet either; remove it"

var ignoredSettings = []ignoredGroup{
	{reason: obsoletePrefix + "the network plugins configure hairpin mode", fields: []string{"hairpinMode"}},
	{reason: obsoletePrefix + "kube-proxy creates the iptables rules", fields: []string{"iptablesMasqueradeBit", "iptablesDropBit"}},
	{reason: obsoletePrefix + "the container runtime closes idle streams; set stream_idle_timeout in the configuration of containerd", fields: []string{"streamingConnectionIdleTimeout"}},
	{reason: policyNoneReason, fields: []string{"cpuManagerReconcilePeriod", "topologyManagerScope", "topologyManagerPolicyOptions", "reservedMemory"}},
	{reason: "FlexVolumes are deprecated and podd does not run their drivers; use CSI drivers", fields: []string{"volumePluginDir"}},
	{reason: "podd measures volumes when statistics are requested; use the scrape interval of the client", fields: []string{"volumeStatsAggPeriod"}},
	{reason: "podd measures containers when statistics are requested; use the scrape interval of the client", flags: []string{"--housekeeping-interval"}},
	{reason: "podd writes each message of its log at once; remove it", fields: []string{"logging.flushFrequency"}},
	{reason: "podd hides no metrics; remove it", fields: []string{"showHiddenMetricsForVersion"}},
	{reason: "it is deprecated in the kubelet, and podd runs the mount helpers of the host; install them, for example mount.nfs", flags: []string{"--experimental-mounter-path"}},
}

// findIgnored returns the index of the group in ignoredSettings that contains a field, or a flag
// without a field. It returns -1 if there is none.
func findIgnored(path, flag string) int {
	return slices.IndexFunc(ignoredSettings, func(g ignoredGroup) bool {
		return slices.Contains(g.fields, path) || path == "" && slices.Contains(g.flags, flag)
	})
}

// daemonFields are the fields that have no effect with --runonce. podd then serves no endpoints, follows
// no changes, removes no images, and evicts no pods to free memory or disk space. It changes neither its
// own process nor the host. The hard eviction thresholds are missing, because they also reduce the
// allocatable resources.
var daemonFields = newSet(
	"fileCheckFrequency", "httpCheckFrequency", "syncFrequency", "nodeStatusMaxImages",
	"imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "imageMinimumGCAge", "imageMaximumGCAge",
	"healthzPort", "healthzBindAddress", "readOnlyPort", "address", "port", "enableServer",
	"tlsCertFile", "tlsPrivateKeyFile", "tlsMinVersion", "tlsCipherSuites", "tlsCurvePreferences",
	"authentication.x509.clientCAFile", "authentication.anonymous.enabled", "authentication.webhook.enabled", "authorization.mode",
	"enableDebuggingHandlers", "enableSystemLogHandler", "enableSystemLogQuery", "enableProfilingHandler", "enableContentionProfiling", "enableDebugFlagsHandler",
	"logging.options.text.splitStream", "logging.options.json.splitStream", "tracing",
	"oomScoreAdj", "maxOpenFiles", "kubeletCgroups", "systemCgroups", "protectKernelDefaults",
	"kubeReservedCgroup", "systemReservedCgroup",
	"shutdownGracePeriod", "shutdownGracePeriodCriticalPods", "shutdownGracePeriodByPodPriority",
	"evictionSoft", "evictionSoftGracePeriod", "evictionMaxPodGracePeriod", "evictionMinimumReclaim",
	"evictionPressureTransitionPeriod", "kernelMemcgNotification",
)

// daemonFlags are the flags without a field that have no effect with --runonce, without dashes in front.
// Other flags for the daemon are errors with --runonce.
var daemonFlags = newSet("run-dir", "api-manifest-dir", "runtime-cgroups", "pod-infra-container-image",
	"token-auth-file", "authorization-policy-file", "cadvisor-port", "event-log", "adopt")

// disabledByZero are the fields whose zero value, such as false, disables in the kubelet what podd does
// not do without --kubeconfig.
var disabledByZero = newSet("registerNode", "makeIPTablesUtilChains", "enableControllerAttachDetach",
	"rotateCertificates", "serverTLSBootstrap", "providerID", "registerWithTaints")

// isIgnored reports whether the field at a path has no effect. featureGates is not a single setting, so
// isIgnored returns false for it.
func isIgnored(path string, runOnce, inCluster bool) bool {
	switch fieldSupport(path) {
	case Supported:
		return runOnce && daemonFields[path]
	case SupportedInCluster:
		return !inCluster
	case Rejected:
		return false
	}
	return path != "featureGates"
}

// isEquivalent reports whether the kubelet behaves like podd if the field at a path has the value v. Such
// a value causes no warning, because podd does what the user has configured.
func isEquivalent(path string, v reflect.Value) bool {
	v = reflect.Indirect(v)
	isEmpty := (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() == 0
	return disabledByZero[path] && (isEmpty || v.IsZero())
}

// ignoredNames contains the names of settings that have no effect, by the reason why podd ignores
// them.
type ignoredNames struct {
	unsupported, needCluster, runOnce []string
	groups                            [][]string          // as ignoredSettings
	gates                             map[string][]string // by gateGroup.reason
}

// record adds a field, or a flag without a field.
func (n *ignoredNames) record(path string, o origin) {
	names := &n.unsupported
	switch group := findIgnored(path, o.flag); {
	case clusterFields[path]:
		names = &n.needCluster
	case daemonFields[path]:
		names = &n.runOnce
	case group >= 0:
		names = &n.groups[group]
	}
	addName(names, path, o)
}

// recordGates adds the feature gates that have no effect.
func (n *ignoredNames) recordGates(gates map[string]bool, m *mergedTree) {
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		path := joinKey("featureGates", name)
		o := m.origin(path)
		if o.flag != "" {
			path, o = o.flag+"="+name, origin{}
		}
		if g := findGateGroup(name); isFeatureGate[name] && g != nil && !g.lacksFeature {
			names := n.gates[g.reason]
			addName(&names, path, o)
			n.gates[g.reason] = names
		}
	}
}

// warnings returns one warning for each reason.
func (n *ignoredNames) warnings() []manifest.Problem {
	warnings := newIgnoredWarning(n.unsupported, "ignored, because podd does not support it yet")
	for i, names := range n.groups {
		warnings = append(warnings, newIgnoredWarning(names, "ignored, because "+ignoredSettings[i].reason)...)
	}
	for _, reason := range slices.Sorted(maps.Keys(n.gates)) {
		warnings = append(warnings, newIgnoredWarning(n.gates[reason], "ignored, because "+reason)...)
	}
	warnings = append(warnings, newIgnoredWarning(n.runOnce, "ignored with --runonce")...)
	return append(warnings, newIgnoredWarning(n.needCluster, "ignored without --kubeconfig")...)
}

// warnIgnoredSettings returns the warnings for settings that have no effect, and the warnings of
// warnFormerFlags. All fields and flags with the same reason are in one warning. A value that equals
// the default is ignored, too, and therefore causes the same warning. userConfig is the merged
// configuration without defaults.
func warnIgnoredSettings(userConfig *kubelet.KubeletConfiguration, m *mergedTree, f *Flags) []manifest.Problem {
	names := &ignoredNames{groups: make([][]string, len(ignoredSettings)), gates: map[string][]string{}}
	inCluster := f.Kubeconfig != ""
	visitFields(reflect.ValueOf(userConfig).Elem(), reflect.ValueOf(userConfig).Elem(), "", func(path string, v, _ reflect.Value) {
		switch {
		case path == "featureGates":
			names.recordGates(userConfig.FeatureGates, m)
		case m.isSet(path) && !m.isDerived(path) && isIgnored(path, userConfig.RunOnce, inCluster) && !isEquivalent(path, v):
			names.record(path, m.origin(path))
		}
	})
	for field, v := range f.settings() {
		if name := flagName(field); userConfig.RunOnce && daemonFlags[name] && !v.IsZero() {
			addName(&names.runOnce, "", origin{flag: "--" + name})
		}
	}
	for _, flag := range f.Unsupported {
		if flag.field == "" && !flag.isEmpty && !flag.isFormer() {
			names.record("", origin{flag: "--" + flag.Name})
		}
	}
	return append(warnFormerFlags(f.Unsupported, inCluster), names.warnings()...)
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
		value, defaultValue := v.FieldByIndex(f.index), def.FieldByIndex(f.index)
		if f.typ.Kind() == reflect.Struct && hasFields(f.typ) {
			visitFields(value, defaultValue, path, visit)
			continue
		}
		visit(path, value, defaultValue)
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

// newSet returns the set of names.
func newSet(names ...string) map[string]bool {
	s := make(map[string]bool, len(names))
	for _, n := range names {
		s[n] = true
	}
	return s
}
