package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/manifest"
)

// served are the fields that determine the Config.
var served = set(
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
	"authentication.webhook.enabled", // authorization reports it
	"enableDebuggingHandlers", "enableSystemLogHandler", "enableProfilingHandler", "enableDebugFlagsHandler",
	"logging.format", "logging.verbosity",
	"shutdownGracePeriod", "shutdownGracePeriodCriticalPods", "shutdownGracePeriodByPodPriority",
	"podPidsLimit", "kubeReserved", "systemReserved", "enforceNodeAllocatable",
	"evictionHard", "mergeDefaultEvictionSettings", "evictionPressureTransitionPeriod",
	// rejected unless they request nothing, see refusals
	"cpuManagerPolicy", "memoryManagerPolicy", "topologyManagerPolicy", "reservedSystemCPUs",
)

// ofCluster are the fields of Config.Cluster, which have no effect without a cluster.
var ofCluster = set(
	"registerNode", "registerWithTaints", "providerID", "enableControllerAttachDetach",
	"nodeStatusUpdateFrequency", "nodeStatusReportFrequency", "nodeLeaseDurationSeconds",
	"kubeAPIQPS", "kubeAPIBurst", "eventRecordQPS", "eventBurst", "contentType", "rotateCertificates", "serverTLSBootstrap",
	"configMapAndSecretChangeDetectionStrategy",
	"authentication.webhook.cacheTTL", "authorization.webhook.cacheAuthorizedTTL", "authorization.webhook.cacheUnauthorizedTTL",
)

// agrees maps fields that are not served to the value that equals podd's behavior; nil:
// every value does.
var agrees = map[string]any{
	"registerNode":                 false,
	"makeIPTablesUtilChains":       false,
	"enableControllerAttachDetach": false,
	"logging.flushFrequency":       nil, // nothing is buffered
}

// unserved returns a warning that names the fields of Kubernetes 1.34 that were set and
// have no effect, and a warning for each unknown feature gate. joined is set if the node
// is in a cluster.
func unserved(user *kubelet.KubeletConfiguration, m *merged, known []Known, joined bool) []manifest.Problem {
	var names, alone []string
	var unknown []manifest.Problem
	note := func(path string, o origin) {
		names := &names
		if ofCluster[path] {
			names = &alone
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
		if !m.set(path) || served[path] || joined && ofCluster[path] {
			return
		}
		if path == "featureGates" {
			unknown = noteGates(user.FeatureGates, m, note)
			return
		}
		o := m.origin(path)
		if want, ok := agrees[path]; ok && (want == nil || same(v, want)) {
			return
		}
		if o.flag == "" && (zero(v) || reflect.DeepEqual(indirect(v), indirect(def))) {
			return
		}
		note(path, o)
	})
	for _, k := range known {
		if k.field == "" && !k.empty {
			note("", origin{flag: "--" + k.Name})
		}
	}
	unknown = append(unknown, oneWarning(names, "known, but not served by podd yet, and")...)
	return append(unknown, oneWarning(alone, "for the node of a cluster, and without --kubeconfig")...)
}

// noteGates calls note for every feature gate that podd does not serve, and returns a
// warning for each unknown one.
func noteGates(gates map[string]bool, m *merged, note func(string, origin)) (unknown []manifest.Problem) {
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		path := join("featureGates", name)
		if name == restartRules || name == gracefulShutdown || name == shutdownByPriority || name == "KubeletCrashLoopBackOffMax" && gates[name] { // its limit is served in any case
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
		note(path, o)
	}
	return unknown
}

func oneWarning(names []string, why string) []manifest.Problem {
	if len(names) == 0 {
		return nil
	}
	verb := "has"
	if len(names) > 1 {
		verb = "have"
	}
	return []manifest.Problem{{
		Severity: manifest.Warning,
		Message:  fmt.Sprintf("%s: %s %s no effect", strings.Join(names, ", "), why, verb),
	}}
}

// leaves visits the fields of two structs of the same type in parallel, down to those
// that are not structs.
func leaves(v, def reflect.Value, at string, visit func(path string, v, def reflect.Value)) {
	for f := range eachField(v.Type()) {
		path := join(at, f.name)
		value, other := v.FieldByIndex(f.index), def.FieldByIndex(f.index)
		if f.typ.Kind() == reflect.Struct && nested(f.typ) {
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

// zero reports whether v is empty. Quantities are compared by value.
func zero(v reflect.Value) bool {
	if z, ok := v.Addr().Interface().(interface{ IsZero() bool }); ok {
		return z.IsZero()
	}
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	}
	return v.IsZero()
}

func same(v reflect.Value, want any) bool { return indirect(v) == want }

func set(names ...string) map[string]bool {
	s := make(map[string]bool, len(names))
	for _, n := range names {
		s[n] = true
	}
	return s
}
