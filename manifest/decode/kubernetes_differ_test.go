package decode

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"podd/manifest/manifesttest/kubernetes"
)

// lessPrecise maps the name of a field in errors of podd to its name in errors of Kubernetes. It
// contains the fields for which Kubernetes is less precise: its error names the parent of the field,
// or omits an index.
var lessPrecise = []struct {
	ours   *regexp.Regexp
	theirs string
}{
	{regexp.MustCompile(`^(metadata\.(?:labels|annotations)|spec\.nodeSelector)\[.*$`), "$1"},
	{regexp.MustCompile(`^metadata\.annotations\[(.*)\]$`), "metadata.annotations.$1"},
	{regexp.MustCompile(`^(metadata\.finalizers)\[\d+\]$`), "$1"},
	{regexp.MustCompile(`^(metadata\.annotations)\[(scheduler[^]]*)\](.*)$`), "$1.$2$3"},
	{regexp.MustCompile(`^(spec\.dnsConfig)\.nameservers$`), "$1"},
	{regexp.MustCompile(`^(spec\.dnsConfig\.options\[\d+\])\.name$`), "$1"},
	{regexp.MustCompile(`^spec\.shareProcessNamespace$`), "spec.securityContext.shareProcessNamespace"},
	{regexp.MustCompile(`^spec\.host(PID|IPC)$`), "spec.Host$1"},
	{regexp.MustCompile(`^(spec\.tolerations\[\d+\])\.value$`), "$1.operator"},
	{regexp.MustCompile(`^(spec\.tolerations\[\d+\])\.tolerationSeconds$`), "$1.effect"},
	{regexp.MustCompile(`(\.downwardAPI)\.items\[\d+\]`), "$1"},
	{regexp.MustCompile(`(\.fieldRef)\.fieldPath$`), "$1"},
	{regexp.MustCompile(`(\.fieldRef)\.apiVersion$`), "$1.fieldPath"},
	{regexp.MustCompile(`(\.securityContext)\.allowPrivilegeEscalation$`), "$1"},
	{regexp.MustCompile(`(\.envFrom)\[\d+\]$`), "$1"},
	{regexp.MustCompile(`(\.httpHeaders)\[\d+\]\.name$`), "$1"},
	{regexp.MustCompile(`(\.csi)\.nodePublishSecretRef(\.name)$`), "$1$2"},
	{regexp.MustCompile(`(\.iscsi)\.initiatorName$`), "$1.initiatorname"},
	{regexp.MustCompile(`(\.volumeMounts)\[\d+\](\.(?:mountPropagation|recursiveReadOnly|subPath|subPathExpr))$`), "$1$2"},
	{regexp.MustCompile(`(\.volumeClaimTemplate\.metadata)\.uid$`), "$1.uID"},
	{regexp.MustCompile(`(\.volumeClaimTemplate\.spec\.accessModes)\[\d+\]$`), "$1"},
	{regexp.MustCompile(`(\.volumeClaimTemplate\.spec\.resources)\.requests(\[storage\])$`), "$1$2"},
	{regexp.MustCompile(`(\.volumeClaimTemplate\.metadata\.(?:labels|annotations))\[.*\]$`), "$1"},
	{regexp.MustCompile(`(\.resources\.(?:limits|requests))\[.*\]$`), "$1"},
	{regexp.MustCompile(`^spec\.(containers\[\d+\])\.resources\.limits\[(.*)\]$`), "spec.resources.$1[$2].limits"},
	{regexp.MustCompile(`(\.resizePolicy)\[\d+\]\.(?:resourceName|restartPolicy)$`), "$1"},
	{regexp.MustCompile(`(\.projected)\.sources\[\d+\]\..*\.path$`), "$1"},
	{regexp.MustCompile(`(\.projected)\.sources\[\d+\]\.downwardAPI\.items\[\d+\]$`), "$1"},
	{regexp.MustCompile(`(spec\.initContainers)\[\d+\](\.ports\[\d+\]\.hostPort)$`), "$1[0]$2"}, // Kubernetes always names the first container
}

// volumeSource matches a source of a volume. If a volume has several sources, Kubernetes names
// all except the first, and podd names the volume.
var volumeSource = regexp.MustCompile(`^(spec\.volumes\[\d+\])\.\w+$`)

func hasSeveralSources(fields map[string]bool, volume string) bool {
	for field := range fields {
		if m := volumeSource.FindStringSubmatch(field); m != nil && m[1] == volume {
			return true
		}
	}
	return false
}

// kubernetesNames returns the names that a field can have in errors of Kubernetes. The first
// is the name in podd.
func kubernetesNames(field string) []string {
	names := []string{field}
	for _, c := range lessPrecise {
		for _, name := range names {
			if other := c.ours.ReplaceAllString(name, c.theirs); !slices.Contains(names, other) {
				names = append(names, other)
			}
		}
	}
	return names
}

// consequences lists errors of Kubernetes that result from another error or an unsupported field.
// podd reports only the cause.
var consequences = []struct{ field, cause string }{
	{"spec.resources.containers[][ephemeral-storage].limits", "spec.resources.limits"},
	{"spec.resources.containers[][example.com/gpu].limits", "spec.resources.limits"},
	{"spec.containers[].volumeMounts[].name", "spec.volumes"},
	{"spec.containers[].volumeDevices[].name", "spec.volumes"},
	{"spec.volumes[].name", "spec.volumes[].ephemeral"},
	{"spec.volumes[].projected.path", "spec.volumes[].projected.sources[].serviceAccountToken"},
	{"spec.volumes[].persistentDisk.pdName", "spec.volumes[].gcePersistentDisk"},
	{"spec.volumes[].persistentDisk.partition", "spec.volumes[].gcePersistentDisk"},
	{"spec.nodeName", "spec.schedulingGates"},
	{"spec.hostNetwork", "spec.securityContext.windowsOptions"},
	{"spec.hostNetwork", "spec.containers[].securityContext.windowsOptions"},
	{"spec.", "spec.os.name"}, // fields that Windows does not have
}

// isConsequence reports whether the error of Kubernetes about field is caused by another error
// or by an unsupported field. For example, a request that was set from an invalid limit is
// invalid because of the limit.
func isConsequence(field string, theirs map[string]bool, unsupported []string) bool {
	if theirs[strings.Replace(field, ".requests[", ".limits[", 1)] && strings.Contains(field, ".requests[") {
		return true
	}
	isCause := func(cause, f string) bool { return f != field && within(anyIndex(f), cause) }
	for _, c := range consequences {
		if c.field != anyIndex(field) && !(c.field == "spec." && strings.HasPrefix(field, c.field)) {
			continue
		}
		for f := range theirs {
			if isCause(c.cause, f) {
				return true
			}
		}
		if slices.ContainsFunc(unsupported, func(f string) bool { return isCause(c.cause, f) }) {
			return true
		}
	}
	return false
}

// exception is a field that podd validates differently on purpose.
type exception struct {
	field, reason string
	whole         bool // also applies to all fields below field
}

// stricter lists the fields where podd refuses values that Kubernetes accepts.
var stricter = []exception{
	{"metadata.uid", "it is the name of a directory", false},
	{"metadata.annotations[kubernetes.io/config.mirror]", "podd does not run mirror pods; Kubernetes requires a nodeName with it", false},
	{"spec.priority", "Kubernetes compares it with the class in admission, not in validation", false},
	{"spec.priorityClassName", "Kubernetes looks it up in admission, not in validation", false},
	{"spec.overhead", "Kubernetes requires the RuntimeClass in admission, not in validation", false},
	{"spec.containers[].ports[].hostIP", "otherwise only the runtime would report an invalid address", false},
	{"spec.initContainers[].ports[].hostIP", "otherwise only the runtime would report an invalid address", false},
	{"spec.containers[].volumeDevices[].devicePath", "Kubernetes counts a volume that is mounted at two paths only once", false},
	{"spec.volumes[].nfs.server", "no server can have such a name", false},
	{"spec.volumes[].iscsi.targetPortal", "it is an argument of iscsiadm, and part of the names of files", false},
	{"spec.volumes[].iscsi.portals[]", "it is an argument of iscsiadm, and part of the names of files", false},
	{"spec.volumes[].iscsi.iscsiInterface", "it is an argument of iscsiadm, and the name of a file", false},
	{"spec.volumes[].iscsi.secretRef.name", "no Secret can have such a name", false},
	{"spec.volumes[].iscsi.fsType", "it is part of the name of a program that podd runs", false},
	{"spec.volumes[].fc.targetWWNs[]", "no target can have such a name", false},
	{"spec.volumes[].fc.wwids[]", "no link of udev can have such a name", false},
	{"spec.volumes[].fc.fsType", "it is part of the name of a program that podd runs", false},
	{"spec.imagePullSecrets[].name", "no Secret can have such a name", false},
	{"spec.volumes[].configMap.name", "no ConfigMap can have such a name", false},
	{"spec.volumes[].secret.secretName", "no Secret can have such a name", false},
	{"spec.volumes[].projected.sources[].configMap.name", "no ConfigMap can have such a name", false},
	{"spec.volumes[].projected.sources[].secret.name", "no Secret can have such a name", false},
	{"spec.volumes[].configMap.items[].path", "no file can have a name of this length", false},
	{"spec.volumes[].secret.items[].path", "no file can have a name of this length", false},
	{"spec.volumes[].downwardAPI.items[].path", "no file can have a name of this length", false},
	{"spec.volumes[].projected.sources[].configMap.items[].path", "no file can have a name of this length, and two spellings can be the same path", false},
	{"spec.volumes[].projected.sources[].secret.items[].path", "no file can have a name of this length, and two spellings can be the same path", false},
	{"spec.volumes[].projected.sources[].downwardAPI.items[].path", "no file can have a name of this length, and two spellings can be the same path", false},
	{"spec.volumes[].projected.sources[].clusterTrustBundle.path", "no file can have a name of this length", false},
	{"spec.volumes[].projected.sources[]", "an empty source is a mistake", false},
	{"spec.volumes[].image.reference", "the name of an image cannot begin or end with a space", false},
	{"spec.volumes[].persistentVolumeClaim.claimName", "no claim can have such a name", false},
	{"spec.volumes[].hostPath.path", "it would be relative to the working directory of the runtime", false},
	{"spec.volumes[].emptyDir.medium", "the kubelet reports it only when it mounts the volume", false},
	{"spec.securityContext.sysctls[].name", "with dots and slashes, two spellings can be the same name", false},
	{"spec.securityContext.seccompProfile.localhostProfile", "it must not be the directory of the profiles itself", false},
	{"spec.containers[].securityContext.seccompProfile.localhostProfile", "it must not be the directory of the profiles itself", false},
	{"spec.containers[].volumeMounts[].mountPath", "two spellings can be the same path: /a and /a/", false},
}

// laxer lists the fields where podd accepts values that Kubernetes refuses.
var laxer = []exception{
	{"spec.affinity.podAffinity", "it has no effect, so podd does not validate it", true},
	{"spec.affinity.podAntiAffinity", "it has no effect, so podd does not validate it", true},
	{"spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", "it has no effect, so podd does not validate it", true},
	{"spec.topologySpreadConstraints", "it has no effect, so podd does not validate it", true},
	{"spec.resources.claims", "an empty list counts as not set", false},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.metadata.ownerReferences", "an empty list counts as not set", false},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.metadata.finalizers", "an empty list counts as not set", false},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.metadata.managedFields", "an empty list counts as not set", false},
}

// findException returns the field of the exception in list that applies to field; "" if there is none.
func findException(list []exception, field string) string {
	for _, e := range list {
		if f := anyIndex(field); f == e.field || e.whole && within(f, e.field) {
			return e.field
		}
	}
	return ""
}

// isEmptyString reports whether a case sets field to an empty string. podd treats such a field
// as not set.
func isEmptyString(c *kubernetes.Case, field string) bool {
	if len(c.Set) == 0 {
		return false
	}
	last := c.Set[len(c.Set)-1]
	return last.Value == "" && slices.Contains(kubernetesNames(fieldPath(last.Path)), field)
}

// fieldPath returns a path as it is written in errors.
func fieldPath(path []string) string {
	var b strings.Builder
	for i, step := range path {
		if _, err := strconv.Atoi(step); err == nil {
			b.WriteString("[" + step + "]")
			continue
		}
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(step)
	}
	return b.String()
}

var index = regexp.MustCompile(`\[[0-9]+\]|\.[0-9]+\b`)

// anyIndex removes the indexes from a field.
func anyIndex(field string) string { return index.ReplaceAllString(field, "[]") }

func formatCounts(list map[string]int) string {
	var b strings.Builder
	for _, key := range slices.SortedFunc(maps.Keys(list), func(a, b string) int { return list[b] - list[a] }) {
		fmt.Fprintf(&b, "\n%6d %s", list[key], key)
	}
	return b.String()
}
