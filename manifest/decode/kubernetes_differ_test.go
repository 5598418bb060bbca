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

// coarser tells, by what podd calls a field, what Kubernetes calls it: where it
// names one that holds it, or leaves an index out, podd names the very field.
var coarser = []struct {
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
	{regexp.MustCompile(`(spec\.initContainers)\[\d+\](\.ports\[\d+\]\.hostPort)$`), "$1[0]$2"}, // always the first
}

// several is a source of a volume that has another one: Kubernetes names each
// but the first, podd the volume.
var several = regexp.MustCompile(`^(spec\.volumes\[\d+\])\.\w+$`)

func severalAt(fields map[string]bool, volume string) bool {
	for field := range fields {
		if m := several.FindStringSubmatch(field); m != nil && m[1] == volume {
			return true
		}
	}
	return false
}

// coarse is what a field may be called, podd's own name first.
func coarse(field string) []string {
	names := []string{field}
	for _, c := range coarser {
		for _, name := range names {
			if other := c.ours.ReplaceAllString(name, c.theirs); !slices.Contains(names, other) {
				names = append(names, other)
			}
		}
	}
	return names
}

// consequences are errors of Kubernetes that follow from another one, or from
// a field that podd does not serve; the cause alone is what there is to mend.
var consequences = []struct{ field, cause string }{
	{"spec.resources.containers[][ephemeral-storage].limits", "spec.resources.limits"},
	{"spec.resources.containers[][example.com/gpu].limits", "spec.resources.limits"},
	{"spec.containers[].volumeMounts[].name", "spec.volumes"},
	{"spec.containers[].volumeDevices[].name", "spec.volumes"},
	{"spec.volumes[].name", "spec.volumes[].ephemeral"},
	{"spec.volumes[].projected.path", "spec.volumes[].projected.sources[].serviceAccountToken"},
	{"spec.volumes[].persistentDisk.pdName", "spec.volumes[].gcePersistentDisk"},
	{"spec.volumes[].persistentDisk.partition", "spec.volumes[].gcePersistentDisk"},
	{"spec.volumes[].name", "spec.volumes[].iscsi"},
	{"spec.nodeName", "spec.schedulingGates"},
	{"spec.hostNetwork", "spec.securityContext.windowsOptions"},
	{"spec.hostNetwork", "spec.containers[].securityContext.windowsOptions"},
	{"spec.", "spec.os.name"}, // what Windows has not
}

// follows says that an error is a consequence. A request that was made from a
// limit is as wrong as the limit.
func follows(field string, theirs map[string]bool, unserved []string) bool {
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
		if slices.ContainsFunc(unserved, func(f string) bool { return isCause(c.cause, f) }) {
			return true
		}
	}
	return false
}

// exception is a field of which podd thinks otherwise, and why.
type exception struct {
	field, why string
	whole      bool // what is in the field, too
}

// stricter are the fields where podd refuses what Kubernetes takes.
var stricter = []exception{
	{"metadata.uid", "it names a directory", false},
	{"metadata.annotations[kubernetes.io/config.mirror]", "a mirror is not run; Kubernetes wants a nodeName beside it", false},
	{"spec.priority", "not validation but admission compares it with the class", false},
	{"spec.priorityClassName", "not validation but admission looks it up", false},
	{"spec.overhead", "not validation but admission wants its class beside it", false},
	{"spec.hostAliases[].ip", "leading zeros mean octal to some who read the file", false},
	{"spec.dnsConfig.nameservers[]", "leading zeros mean octal to some who read the file", false},
	{"spec.containers[].ports[].hostIP", "what is no address is found out only by the runtime", false},
	{"spec.initContainers[].ports[].hostIP", "what is no address is found out only by the runtime", false},
	{"spec.containers[].volumeDevices[].devicePath", "a volume that is mounted at two places counts for one there", false},
	{"spec.volumes[].nfs.server", "no server can have such a name", false},
	{"spec.imagePullSecrets[].name", "no Secret can have such a name", false},
	{"spec.volumes[].configMap.name", "no ConfigMap can have such a name", false},
	{"spec.volumes[].secret.secretName", "no Secret can have such a name", false},
	{"spec.volumes[].projected.sources[].configMap.name", "no ConfigMap can have such a name", false},
	{"spec.volumes[].projected.sources[].secret.name", "no Secret can have such a name", false},
	{"spec.volumes[].configMap.items[].path", "no file can have so long a name", false},
	{"spec.volumes[].secret.items[].path", "no file can have so long a name", false},
	{"spec.volumes[].downwardAPI.items[].path", "no file can have so long a name", false},
	{"spec.volumes[].projected.sources[].configMap.items[].path", "no file can have so long a name, and two paths can be one", false},
	{"spec.volumes[].projected.sources[].secret.items[].path", "no file can have so long a name, and two paths can be one", false},
	{"spec.volumes[].projected.sources[].downwardAPI.items[].path", "no file can have so long a name, and two paths can be one", false},
	{"spec.volumes[].projected.sources[]", "a source of nothing is a mistake", false},
	{"spec.volumes[].image.reference", "no image has a blank at the edge of its name", false},
	{"spec.volumes[].persistentVolumeClaim.claimName", "no claim can have such a name", false},
	{"spec.volumes[].hostPath.path", "it would be relative to where the runtime was started", false},
	{"spec.volumes[].emptyDir.medium", "the kubelet finds out when it mounts it", false},
	{"spec.securityContext.sysctls[].name", "two names can be one, with dots and with slashes", false},
	{"spec.securityContext.seccompProfile.localhostProfile", "it must not name the directory of the profiles", false},
	{"spec.containers[].securityContext.seccompProfile.localhostProfile", "it must not name the directory of the profiles", false},
	{"spec.containers[].restartPolicyRules", "its gate is off, and Kubernetes drops them in silence", false},
	{"spec.initContainers[].restartPolicyRules", "its gate is off, and Kubernetes drops them in silence", false},
	{"spec.containers[].volumeMounts[].mountPath", "two paths can be one, /a and /a/", false},
}

// laxer are those where podd takes what Kubernetes refuses.
var laxer = []exception{
	{"spec.affinity.podAffinity", "it has no effect, so that nobody looks into it", true},
	{"spec.affinity.podAntiAffinity", "it has no effect, so that nobody looks into it", true},
	{"spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", "it has no effect, so that nobody looks into it", true},
	{"spec.topologySpreadConstraints", "it has no effect, so that nobody looks into it", true},
	{"spec.resources.claims", "an empty list is as if it were not written", false},
	{"spec.volumes[].image.pullPolicy", "1.34 has a default for it only behind a feature gate", false},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.metadata.ownerReferences", "an empty list is as if it were not written", false},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.metadata.finalizers", "an empty list is as if it were not written", false},
	{"spec.volumes[].ephemeral.volumeClaimTemplate.metadata.managedFields", "an empty list is as if it were not written", false},
}

// find names the exception that a field is one of, or is in.
func find(list []exception, field string) string {
	for _, e := range list {
		if f := anyIndex(field); f == e.field || e.whole && within(f, e.field) {
			return e.field
		}
	}
	return ""
}

// emptied says that a case is about a text without content, which podd takes as
// one that is not there.
func emptied(c *kubernetes.Case, field string) bool {
	if len(c.Set) == 0 {
		return false
	}
	last := c.Set[len(c.Set)-1]
	return last.Value == "" && slices.Contains(coarse(dotted(last.Path)), field)
}

// dotted writes a path as errors do.
func dotted(path []string) string {
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

// anyIndex makes one field of those that differ by where they are in a list.
func anyIndex(field string) string { return index.ReplaceAllString(field, "[]") }

func counted(list map[string]int) string {
	var b strings.Builder
	for _, key := range slices.SortedFunc(maps.Keys(list), func(a, b string) int { return list[b] - list[a] }) {
		fmt.Fprintf(&b, "\n%6d %s", list[key], key)
	}
	return b.String()
}
