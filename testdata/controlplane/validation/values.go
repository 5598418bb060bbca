package main

import (
	"reflect"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// mapKeys are keys for maps such as labels. Most of them are invalid.
var mapKeys = []string{"", "a b", "Example.COM/a", "example.com/a", "/a", "a/b/c", "kubernetes.io/a", "example.com/" + strings.Repeat("k", 64)}

var resourceNames = []string{
	"cpu", "memory", "ephemeral-storage", "storage", "pods", "hugepages-2Mi", "hugepages-", "hugepages-3Mi",
	"example.com/gpu", "kubernetes.io/gpu", "requests.example.com/gpu", "limits.cpu", "unknown",
}

// texts are values for every string field.
var texts = []any{
	"", "a", "A", "a b", "a/b", "../b", "a/..", "/a", "a:b", "-a", "a.b", "a_b", "1", "$(A)", "é", " a",
	strings.Repeat("a", 16), strings.Repeat("a", 64), strings.Repeat("a", 300), strings.Repeat("a", 5000),
}

// textsByField contains additional valid and invalid values for string fields, by the name of the
// field.
var textsByField = map[string][]any{
	"ip":                {"10.0.0.1", "010.0.0.1", "::1", "::ffff:10.0.0.1", "fe80::1%eth0", "10.0.0", "10.0.0.1/8"},
	"nameservers":       {"10.0.0.1", "010.0.0.1", "::1", "fe80::1%eth0"},
	"hostIP":            {"10.0.0.1", "010.0.0.1", "::1", "::ffff:10.0.0.1", "0.0.0.0"},
	"image":             {"a:b@c", "a\t", "A/b", "registry.example/a:b", "registry.example/a@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "registry.example/a:b@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", strings.Repeat("0a", 32)},
	"fieldPath":         fieldPaths(),
	"resource":          {"limits.cpu", "limits.memory", "limits.ephemeral-storage", "requests.cpu", "requests.memory", "requests.ephemeral-storage", "limits.hugepages-2Mi", "requests.hugepages-2Mi", "requests.hugepages-", "limits.example.com/gpu", "cpu"},
	"path":              {"a/b", "a/../b", "..a", "a/..b", "..", ".", "./a", "/", "a//b", "a/", strings.Repeat("a/", 2100)},
	"subPath":           {"a/b", "..a", "..", ".", "/a"},
	"subPathExpr":       {"a/$(A)", "$(B)", "../$(A)"},
	"mountPath":         {"/a", "a", "/", "/a:b", "/a/../b", "C:\\a"},
	"devicePath":        {"/dev/a", "dev/a", "/dev/../a"},
	"apiVersion":        {"v1", "v2"},
	"prefix":            {"A_", "1A", "a.b", "a=b", "A B"},
	"priorityClassName": {"system-node-critical", "system-cluster-critical", "other"},
	"value":             {"true", strings.Repeat("v", 63), strings.Repeat("v", 65)},
	"level":             {"s0:c1,c2"},
	"name":              {"sha256", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies", "net/ipv4/tcp_syncookies", "kernel.shmmax", "net.core.somaxconn", "kernel.msgmax", "fs.mqueue.msg_max", "linux", "windows"},
	"searches":          {".", "a.", "a_b.c", "a..b"},
	"effect":            {"NoSchedule", "PreferNoSchedule", "NoExecute"},
	"signerName":        {"example.com/a", "example.com/", "a"},
	"keyType":           {"RSA3072", "RSA4096", "ECDSAP256", "ED25519"},
	"hostname":          {strings.Repeat("a", 63), "a.b"},
	"conditionType":     {"example.com/a", "Ready"},
	"topologyKey":       {"kubernetes.io/hostname", "zone"},
	"localhostProfile":  {"a/b.json", "../b", strings.Repeat("p", 4096), strings.Repeat("p", 4097)},
	"stopSignal":        {"SIGTERM", "SIGKILL", "TERM", "SIGRTMIN+1"},
	"runAsUserName":     {`a\b`, "NT AUTHORITY\\SYSTEM", "a\\b\\c"},
	"schedulerName":     {"default-scheduler"},
	"key":               {"a.b-c_d", "metadata.name", "..", ".a", "..a"},
}

// valuesByType contains the constants of a type. Each field of the type is set to all of them.
var valuesByType = map[reflect.Type]string{
	reflect.TypeFor[v1.RestartPolicy]():                           "Always OnFailure Never",
	reflect.TypeFor[v1.ContainerRestartPolicy]():                  "Always OnFailure Never",
	reflect.TypeFor[v1.ContainerRestartRuleAction]():              "Restart",
	reflect.TypeFor[v1.DNSPolicy]():                               "ClusterFirst ClusterFirstWithHostNet Default None",
	reflect.TypeFor[v1.PullPolicy]():                              "Always IfNotPresent Never",
	reflect.TypeFor[v1.Protocol]():                                "TCP UDP SCTP tcp",
	reflect.TypeFor[v1.TaintEffect]():                             "NoSchedule PreferNoSchedule NoExecute",
	reflect.TypeFor[v1.TolerationOperator]():                      "Exists Equal Lt",
	reflect.TypeFor[v1.NodeSelectorOperator]():                    "In NotIn Exists DoesNotExist Gt Lt",
	reflect.TypeFor[metav1.LabelSelectorOperator]():               "In NotIn Exists DoesNotExist",
	reflect.TypeFor[v1.UnsatisfiableConstraintAction]():           "DoNotSchedule ScheduleAnyway",
	reflect.TypeFor[v1.NodeInclusionPolicy]():                     "Honor Ignore",
	reflect.TypeFor[v1.PreemptionPolicy]():                        "Never PreemptLowerPriority",
	reflect.TypeFor[v1.HostPathType]():                            "DirectoryOrCreate Directory FileOrCreate File Socket CharDevice BlockDevice",
	reflect.TypeFor[v1.StorageMedium]():                           "Memory HugePages HugePages-2Mi HugePages-",
	reflect.TypeFor[v1.MountPropagationMode]():                    "None HostToContainer Bidirectional",
	reflect.TypeFor[v1.RecursiveReadOnlyMode]():                   "Disabled IfPossible Enabled",
	reflect.TypeFor[v1.TerminationMessagePolicy]():                "File FallbackToLogsOnError",
	reflect.TypeFor[v1.URIScheme]():                               "HTTP HTTPS http",
	reflect.TypeFor[v1.Capability]():                              "ALL CAP_SYS_ADMIN SYS_ADMIN",
	reflect.TypeFor[v1.ProcMountType]():                           "Default Unmasked",
	reflect.TypeFor[v1.SeccompProfileType]():                      "Unconfined RuntimeDefault Localhost",
	reflect.TypeFor[v1.AppArmorProfileType]():                     "Unconfined RuntimeDefault Localhost",
	reflect.TypeFor[v1.PodFSGroupChangePolicy]():                  "Always OnRootMismatch",
	reflect.TypeFor[v1.SupplementalGroupsPolicy]():                "Merge Strict",
	reflect.TypeFor[v1.PodSELinuxChangePolicy]():                  "Recursive MountOption",
	reflect.TypeFor[v1.ResourceName]():                            "cpu memory storage",
	reflect.TypeFor[v1.ResourceResizeRestartPolicy]():             "NotRequired RestartContainer",
	reflect.TypeFor[v1.OSName]():                                  "linux windows",
	reflect.TypeFor[v1.PersistentVolumeAccessMode]():              "ReadWriteOnce ReadOnlyMany ReadWriteMany ReadWriteOncePod",
	reflect.TypeFor[v1.PersistentVolumeMode]():                    "Filesystem Block",
	reflect.TypeFor[v1.AzureDataDiskCachingMode]():                "None ReadOnly ReadWrite",
	reflect.TypeFor[v1.AzureDataDiskKind]():                       "Shared Dedicated Managed",
	reflect.TypeFor[v1.ContainerRestartRuleOnExitCodesOperator](): "In NotIn",
}

func fieldPaths() []any {
	var list []any
	for _, p := range strings.Fields(`metadata.name metadata.namespace metadata.uid metadata.labels metadata.annotations
		metadata.labels['a'] metadata.labels['a/b/c'] metadata.labels[''] metadata.annotations['A.b/C'] metadata.labels['A.b/C']
		metadata.annotations['a/b/c'] metadata.name['a'] metadata.labels[a] spec.nodeName spec.host spec.serviceAccountName spec.hostname status.hostIP
		status.hostIPs status.podIP status.podIPs status.phase limits.cpu`) {
		list = append(list, p)
	}
	return list
}

// values returns the values for a field with this type and name.
func values(t reflect.Type, name string) []any {
	switch {
	case t == reflect.TypeFor[resource.Quantity]():
		return []any{"0", "1", "-1", "1m", "100u", "1.5", "1Mi", "1Gi", "1Ki", "1e3", "10E", "", "1x", 2}
	case t == reflect.TypeFor[intstr.IntOrString]():
		return []any{0, 1, 65535, 65536, -1, "", "http", "80", "HTTP", "a--b", "-a", "0123456789abcdef"}
	case hasCustomDecoder(t):
		return nil
	case t.Kind() == reflect.Bool:
		return []any{true, false}
	case t.Kind() == reflect.String:
		if words, ok := valuesByType[t]; ok {
			out := []any{"", "unknown"}
			for _, w := range strings.Fields(words) {
				out = append(out, w)
			}
			return out
		}
		return append(append([]any{nil}, texts...), textsByField[name]...)
	}
	out := []any{-1, 0, 1, 2, 5, 100, 256, 511, 512, 65535, 65536, 2147483647}
	if t.Bits() == 64 {
		out = append(out, 2147483648, 4294967296, 1<<45)
	}
	return out
}
