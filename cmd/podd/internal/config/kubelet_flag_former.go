package config

import (
	"slices"

	"podd/manifest"
)

// renamedFlags maps former flags of the kubelet to the flags that now have the same effect. podd
// applies the value of a former flag to the current flag.
var renamedFlags = map[string]string{
	"experimental-allowed-unsafe-sysctls":    "allowed-unsafe-sysctls",
	"experimental-bootstrap-kubeconfig":      "bootstrap-kubeconfig",
	"experimental-cgroups-per-qos":           "cgroups-per-qos",
	"experimental-fail-swap-on":              "fail-swap-on",
	"experimental-kernel-memcg-notification": "kernel-memcg-notification",
	"experimental-qos-reserved":              "qos-reserved",
	"resource-container":                     "kubelet-cgroups",
	"system-container":                       "system-cgroups",
}

// containerRuntime is the only flag in formerFlags that can have an invalid value.
const containerRuntime = "container-runtime"

// registerSchedulable is the only flag in formerFlags that has an effect. With the value false, podd
// creates an unschedulable Node.
const registerSchedulable = "register-schedulable"

// A formerFlagGroup contains flags of earlier kubelets with the same replacement. podd accepts these
// flags, so that it starts with the unit file of such a kubelet, and ignores them.
type formerFlagGroup struct {
	// replacement is the last part of the warning about a flag of the group. It names a flag, a
	// field or a program that replaces the flag, or states why none is necessary.
	replacement string
	flags       []string // names of the flags that take a value
	boolFlags   []string // names of the flags with a boolean value
}

// formerFlags contains the flags that a kubelet since Kubernetes 1.3 had, that the kubelet of
// Kubernetes 1.37 does not have, and that are not in renamedFlags. The flags of Windows are missing.
var formerFlags = []formerFlagGroup{{
	replacement: "podd uses the container runtime of --container-runtime-endpoint",
	flags: []string{
		containerRuntime, "dockershim-socket", "experimental-dockershim-root-directory",
		"containerd", "containerd-namespace", "docker", "docker-endpoint", "docker-env-metadata-whitelist", "docker-exec-handler", "docker-root",
		"docker-tls-ca", "docker-tls-cert", "docker-tls-key",
		"rkt-api-endpoint", "rkt-path", "rkt-stage1-image",
	},
	boolFlags: []string{"docker-only", "docker-tls", "enable-cri", "experimental-cri", "experimental-dockershim"},
}, {
	replacement: "the container runtime configures the network",
	flags:       []string{"cni-bin-dir", "cni-cache-dir", "cni-conf-dir", "network-plugin", "network-plugin-dir", "network-plugin-mtu", "non-masquerade-cidr"},
	boolFlags:   []string{"configure-cbr0", "experimental-flannel-overlay", "reconcile-cidr"},
}, {
	replacement: "the container runtime limits the time without progress of an image pull",
	flags:       []string{"image-pull-progress-deadline"},
}, {
	replacement: "use the pod field shareProcessNamespace",
	boolFlags:   []string{"docker-disable-shared-pid"},
}, {
	replacement: "podd always forwards the streams of exec, attach and port-forward",
	boolFlags:   []string{"redirect-container-streaming"},
}, {
	replacement: "kube-proxy creates the iptables rules",
	flags:       []string{"iptables-drop-bit", "iptables-masquerade-bit"},
}, {
	replacement: "the cloud controller manager has this configuration; use --cloud-provider=external",
	flags:       []string{"cloud-config", "cloud-provider-gce-lb-src-cidrs"},
}, {
	replacement: "use --image-credential-provider-config",
	flags:       []string{"azure-container-registry-config", "google-json-key"},
}, {
	replacement: "podd connects to the API server in the file of --kubeconfig",
	flags:       []string{"api-servers", "auth-path"},
	boolFlags:   []string{"require-kubeconfig"},
}, {
	replacement: "use --register-with-taints",
	boolFlags:   []string{registerSchedulable},
}, {
	replacement: "pods find the API server through the Service kubernetes in the namespace default",
	flags:       []string{"master-service-namespace"},
}, {
	replacement: "use --config and --config-dir",
	flags:       []string{"init-config-dir"},
}, {
	replacement: "use static pods (--pod-manifest-path)",
	flags:       []string{"bootstrap-checkpoint-path"},
}, {
	replacement: "podd restricts neither privileged containers nor host namespaces; use the Pod Security admission of the API server",
	flags:       []string{"host-ipc-sources", "host-network-sources", "host-pid-sources"},
	boolFlags:   []string{"allow-privileged"},
}, {
	replacement: "seccomp profiles are in the directory seccomp of --root-dir",
	flags:       []string{"seccomp-profile-root"},
}, {
	replacement: "podd always unmounts the volumes of terminated pods",
	boolFlags:   []string{"keep-terminated-pod-volumes"},
}, {
	replacement: "CSI drivers check the node before they mount volumes",
	boolFlags:   []string{"experimental-check-node-capabilities-before-mount"},
}, {
	replacement: "podd mounts volumes in its own mount namespace; run podd in the mount namespace of the host",
	boolFlags:   []string{"containerized"},
}, {
	replacement: "use a device plugin",
	flags:       []string{"experimental-nvidia-gpus"},
}, {
	replacement: "use --eviction-hard with nodefs.available",
	flags:       []string{"low-diskspace-threshold-mb"},
}, {
	replacement: "use --eviction-pressure-transition-period",
	flags:       []string{"outofdisk-transition-frequency"},
}, {
	replacement: "the service manager, such as systemd, restarts podd and the container runtime",
	boolFlags:   []string{"babysit-daemons"},
}, {
	replacement: "a metrics adapter in the cluster serves custom metrics",
	boolFlags:   []string{"enable-custom-metrics"},
}, {
	replacement: "the kubelet API serves the statistics at /stats/summary and /metrics/cadvisor",
	boolFlags:   []string{"enable-cadvisor-json-endpoints"},
}, {
	replacement: "podd always logs to stderr; use StandardError= in the unit file",
	flags:       []string{"log-backtrace-at", "log-dir", "log-file", "log-file-max-size", "stderrthreshold"},
	boolFlags:   []string{"add-dir-header", "alsologtostderr", "logtostderr", "one-output", "skip-headers", "skip-log-headers"},
}, {
	replacement: "podd does not log secrets",
	boolFlags:   []string{"experimental-logging-sanitization"},
}, {
	replacement: "a monitoring system stores the metrics of the kubelet API, /metrics/cadvisor",
	flags: []string{
		"application-metrics-count-limit", "event-storage-age-limit", "event-storage-event-limit",
		"storage-driver-buffer-duration", "storage-driver-db", "storage-driver-host", "storage-driver-password", "storage-driver-table", "storage-driver-user",
	},
	boolFlags: []string{"storage-driver-secure"},
}, {
	replacement: "podd measures containers when statistics are requested; use the scrape interval of the client",
	flags:       []string{"global-housekeeping-interval"},
	boolFlags:   []string{"enable-load-reader", "log-cadvisor-usage"},
}, {
	replacement: "podd reads the IDs and containers of the host from its kernel and from the container runtime",
	flags:       []string{"boot-id-file", "container-hints", "machine-id-file"},
}, {
	replacement: "podd injects no errors for tests",
	flags:       []string{"chaos-chance"},
	boolFlags:   []string{"really-crash-for-testing"},
}}

// format returns the format of a flag's value. ok is false if the group does not contain the flag.
func (g formerFlagGroup) format(name string) (format valueFormat, ok bool) {
	switch {
	case name == containerRuntime:
		format = runtimeFormat
	case slices.Contains(g.boolFlags, name):
		return booleanFormat, true
	}
	return format, slices.Contains(g.flags, name)
}

// findFormerFlag returns the flag with the name in formerFlags. name has no leading dashes. ok is
// false if there is no such flag.
func findFormerFlag(name string) (flag kubeletFlag, ok bool) {
	for _, g := range formerFlags {
		if format, ok := g.format(name); ok {
			return kubeletFlag{name: name, format: format}, true
		}
	}
	return kubeletFlag{}, false
}

// isFormer reports whether f is in formerFlags or renamedFlags.
func (f UnsupportedFlag) isFormer() bool {
	_, ok := findFormerFlag(f.Name)
	return ok || renamedFlags[f.Name] != ""
}

// isUnschedulable reports whether f is --register-schedulable=false.
func (f UnsupportedFlag) isUnschedulable() bool { return f.Name == registerSchedulable && f.isEmpty }

// warnFormerFlags returns the warnings about the former flags in flags: one for each flag with an
// effect, and one for each group of ignored flags. inCluster reports whether podd runs as a node of
// a cluster.
func warnFormerFlags(flags []UnsupportedFlag, inCluster bool) (warnings []manifest.Problem) {
	ignoredNames := make([][]string, len(formerFlags)) // names by group
	for _, f := range flags {
		name := "--" + f.Name
		if current := renamedFlags[f.Name]; current != "" {
			warnings = append(warnings, origin{flag: name}.problem(manifest.Warning, "", "the kubelet has renamed this flag; use --"+current))
			continue
		}
		if f.isUnschedulable() && inCluster {
			warnings = append(warnings, origin{flag: name}.problem(manifest.Warning, "", "the kubelet no longer has this flag; podd creates the Node with spec.unschedulable; use --register-with-taints"))
			continue
		}
		for i, g := range formerFlags {
			if _, ok := g.format(f.Name); ok {
				ignoredNames[i] = append(ignoredNames[i], name)
			}
		}
	}
	for i, names := range ignoredNames {
		these := "this flag"
		if len(names) > 1 {
			these = "these flags"
		}
		warnings = append(warnings, newIgnoredWarning(names, "ignored, because the kubelet no longer has "+these+"; "+formerFlags[i].replacement)...)
	}
	return warnings
}
