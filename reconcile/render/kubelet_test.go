package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/refs"
	"podd/runtime"
	"podd/runtime/runtimetest/recording"
)

// seen is the time at which the manifests were read.
var seen = time.Unix(1, 0)

// TestKubelet renders the pods for which the requests of a kubelet of Kubernetes were
// recorded, and compares every field with the recording. Only the differences in kubeletDiffers are
// allowed. Pods that podd does not support are counted.
func TestKubelet(t *testing.T) {
	used := map[string]int{}
	for file, least := range map[string]int{"kubelet.jsonl.gz": 320, "kubelet-api.jsonl.gz": 115} {
		t.Run(file, func(t *testing.T) { compareRecording(t, file, least, used) })
	}
	for _, d := range kubeletDiffers {
		if used[d.why] == 0 {
			t.Errorf("kubeletDiffers: got no pod with the difference %s, want one; remove the row", d.field)
		}
	}
}

func compareRecording(t *testing.T, file string, least int, used map[string]int) {
	on, recorded := recording.Read(t, dir+"/"+file)
	n := Node{
		Name: on.Name, CgroupRoot: on.CgroupRoot, CgroupDriver: "cgroupfs",
		DNS: ParseResolvConf(on.ResolvConf), SeccompDir: "ROOT/seccomp", LogsDir: "LOGS", HostIPs: []string{"192.0.2.10"},
		HugePageSizes:      on.HugePages,
		SupportsSwapLimits: true, // as on the host of the recording
		Capacity:           Resources{MilliCPU: on.CPUs * 1000, Memory: on.Memory},
		Allocatable:        Resources{Memory: on.Memory - on.ReservedMemory},
		RuntimeClasses:     map[string]string{"vm": "kata", "heavy": "kata"}, // as in objects.yaml of the recorder
	}
	if on.Objects != "" { // a standalone kubelet does not use the features of the runtime
		n.Handlers = map[string]runtime.Handler{"": {RecursiveReadOnlyMounts: true}}
	}
	set := &manifest.Set{ObjectsBySource: map[string]manifest.Objects{"": decode.File([]byte(on.Objects), decode.Options{}).Objects}, CompleteSources: map[string]bool{"": true}}
	pods, differ, unserved := 0, map[string][]string{}, map[string]int{}
	for _, l := range recorded {
		f := decode.File(withClass(l.Manifest), decode.Options{NodeName: n.Name, Now: seen})
		if len(f.Pods) == 0 {
			for _, p := range f.Problems {
				unserved[p.FieldPath]++
			}
			continue
		}
		pods++
		k := compared{Pod: f.Pods[0], Node: n, Refs: refs.Resolve(f.Pods[0], set, "salt", nil), api: on.Objects != ""}
		for _, d := range k.compare(t, l) {
			if why := kubeletWhy(d); why != "" {
				used[why]++
				continue
			}
			differ[d] = append(differ[d], string(l.Manifest))
		}
	}
	for _, d := range slices.SortedFunc(maps.Keys(differ), func(a, b string) int { return len(differ[b]) - len(differ[a]) }) {
		t.Errorf("got %d pods with an unexpected difference: %s; the first is\n\t%s", len(differ[d]), d, differ[d][0])
	}
	if pods < least {
		t.Errorf("got %d compared pods, want at least %d", pods, least)
	}
	t.Logf("%d pods; rejected as not supported: %v", pods, unserved)
}

// withClass adds a RuntimeClass to pods with an overhead, because podd requires a RuntimeClass for
// an overhead and a standalone kubelet does not. The class is not part of the configs.
func withClass(pod []byte) []byte {
	return bytes.Replace(pod, []byte(`"overhead":`), []byte(`"runtimeClassName":"vm","overhead":`), 1)
}

// A compared is a pod whose configs are compared with the recording, as podd decodes it.
type compared struct {
	*manifest.Pod
	Node
	Refs *refs.Resolved
	api  bool // the kubelet got the pod from an API server
}

// compare returns the differences of the configs of one pod.
func (k compared) compare(t *testing.T, l recording.Pod) (list []string) {
	t.Helper()
	if handler := manifest.RuntimeClassHandler(&k.Pod.Object.Spec, k.RuntimeClasses); k.api && handler != l.Handler {
		list = append(list, fmt.Sprintf("handler: kubelet %q, podd %q", l.Handler, handler))
	}
	differing("sandbox", l.Sandbox, k.neutral(t, sandbox(t, k.Pod, k.Node, 0)), &list)
	rendered := map[string]map[string]any{}
	spec := &k.Pod.Object.Spec
	for _, all := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range all {
			c, err := Container(k.input(&all[i]))
			if err != nil {
				list = append(list, "podd cannot render: "+err.Error())
				continue
			}
			rendered[all[i].Name] = k.neutral(t, c)
		}
	}
	for _, theirs := range l.Containers {
		name := theirs["metadata"].(map[string]any)["name"].(string)
		if rendered[name] != nil {
			differing("container", theirs, rendered[name], &list)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// input returns the input of Container with the paths of the recording.
func (k compared) input(c *v1.Container) ContainerInput {
	home := "ROOT/pods/" + string(k.UID)
	in := ContainerInput{
		Pod: k.Pod, Container: c, Node: k.Node, Refs: k.Refs, Image: "sha256:feed", ImageUser: &runtime.ImageUser{}, UserIDs: hostIDs,
		HostsFile:      home + "/etc-hosts",
		TerminationLog: home + "/containers/" + c.Name + "/TERMINATION", Volumes: map[string]string{}, SubPaths: map[int]string{},
	}
	spec := &k.Pod.Object.Spec
	if !spec.HostNetwork {
		in.PodIPs = []string{"10.88.0.3", "fd00::3"}
	}
	for i := range spec.Volumes {
		in.Volumes[spec.Volumes[i].Name] = k.volume(home, &spec.Volumes[i])
	}
	for i, m := range c.VolumeMounts {
		if m.SubPath != "" || m.SubPathExpr != "" {
			in.SubPaths[i] = fmt.Sprintf("%s/volume-subpaths/%s/%s/%d", home, m.Name, c.Name, i)
		}
	}
	return in
}

// volume returns the path of a volume in podd, as in the tests of package volume.
func (k compared) volume(home string, v *v1.Volume) string {
	plugin := "kubernetes.io~empty-dir"
	switch {
	case v.HostPath != nil:
		return v.HostPath.Path
	case v.PersistentVolumeClaim != nil:
		pv := k.Refs.Claim(v.PersistentVolumeClaim.ClaimName).Volume.Spec
		if pv.Local != nil {
			return pv.Local.Path
		}
		return pv.HostPath.Path
	case v.Ephemeral != nil:
		plugin = "podd~ephemeral"
	case v.DownwardAPI != nil:
		plugin = "kubernetes.io~downward-api"
	case v.Projected != nil:
		plugin = "kubernetes.io~projected"
	case v.ConfigMap != nil:
		plugin = "kubernetes.io~configmap"
	case v.Secret != nil:
		plugin = "kubernetes.io~secret"
	}
	return home + "/volumes/" + plugin + "/" + v.Name
}

// neutral returns a config with the placeholders of the recording. The name of a pod from a file
// ends with the name of the node; the name of a pod from an API server does not.
func (k compared) neutral(t *testing.T, config any) map[string]any {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	words := []string{string(k.UID), "UID", seen.Format(time.RFC3339Nano), "SEEN", fmt.Sprintf(`"host_id":%d`, hostIDs.First), `"host_id":65536`}
	if k.api {
		words = append(words, k.Key.Name, k.ManifestKey().Name)
	}
	var tree map[string]any
	if err := json.Unmarshal([]byte(strings.NewReplacer(words...).Replace(string(text))), &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// differing appends the names of the fields that differ to list. Variables are compared by name.
func differing(path string, theirs, ours any, list *[]string) {
	if empty(theirs) && empty(ours) || reflect.DeepEqual(theirs, ours) {
		return
	}
	a, isMap := theirs.(map[string]any)
	b, areMaps := ours.(map[string]any)
	if isMap && (areMaps || ours == nil) || areMaps && theirs == nil {
		keys := map[string]bool{}
		for _, m := range []map[string]any{a, b} {
			for key := range m {
				keys[key] = true
			}
		}
		for key := range keys {
			differing(path+"."+key, a[key], b[key], list)
		}
		return
	}
	x, isList := theirs.([]any)
	y, areLists := ours.([]any)
	if isList && (areLists || ours == nil) && strings.HasSuffix(path, ".envs") {
		differing(path, byKey(x), byKey(y), list)
		return
	}
	if strings.HasSuffix(path, ".dns_config.options") { // in any order
		byText := func(a, b any) int { return strings.Compare(shown(a), shown(b)) }
		x, y = slices.SortedFunc(slices.Values(x), byText), slices.SortedFunc(slices.Values(y), byText)
	}
	if isList && areLists && len(x) == len(y) {
		for i := range x {
			differing(path+"[]", x[i], y[i], list)
		}
		return
	}
	*list = append(*list, fmt.Sprintf("%s: kubelet %s, podd %s", path, shown(theirs), shown(ours)))
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

func byKey(list []any) map[string]any {
	out := map[string]any{}
	for _, item := range list {
		out[item.(map[string]any)["key"].(string)] = item
	}
	return out
}

func shown(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// kubeletDiffers contains the intended differences, with their reasons.
var kubeletDiffers = []struct {
	field *regexp.Regexp
	why   string
}{
	{regexp.MustCompile(`^(sandbox|container)\.(annotations\.podd/|labels\.podd\.)`), "podd's own, by which it recognizes its pods; no manifest can set them"},
	{regexp.MustCompile(`^sandbox\.port_mappings: kubelet .*, podd .*"container_port":15000`), "the host ports of sidecars are mapped, too"},
	{regexp.MustCompile(`^container\.envs\.IP\.value: kubelet null, podd "192\.0\.2\.10"$`), "a pod with the host network has the host's address, which a kubelet gets only from an API server"},
	{regexp.MustCompile(`^sandbox\.annotations\.kubernetes\.io/config\.(source: kubelet "api", podd "file"|hash: kubelet null, podd "UID")$`), "podd has every pod from a manifest, while a pod from an API server is not a static pod for the kubelet"},
	{regexp.MustCompile(`^container\.envs\.KUBERNETES_[A-Z0-9_]+\.(key|value): .* podd null$`), "there is no API server for pods"},
	{regexp.MustCompile(`^container\.mounts\[\]\.host_path: kubelet "ROOT/pods/UID/volumes/kubernetes\.io~local-volume/fast", podd "/srv/fast"$`), "a local volume is mounted from its own path, so that no bind mount of it can be left over"},
	{regexp.MustCompile(`^container\.mounts\[\]\.host_path: kubelet "ROOT/pods/UID/volume-subpaths/(disk|fast)/main/0", podd "ROOT/pods/UID/volume-subpaths/v/main/0"$`), "a part of a claim is mounted below its volume's name in the pod, as a part of any other volume is"},
	{regexp.MustCompile(`^container\.devices\[\]\.host_path: kubelet "ROOT/pods/UID/volumeDevices/kubernetes\.io~local-volume/raw", podd "/dev/raw"$`), "a device has its own path, because a link or loop device could be left over"},
	{regexp.MustCompile(`^container\.envs\.E\.value: kubelet "default", podd null$`), "an API server gives every pod a service account, and a pod from a manifest has none"},
	{regexp.MustCompile(`^(sandbox\.linux\.cgroup_parent: kubelet "/podd-requests/kubepods/burstable/podUID", podd "/podd-requests/kubepods/podUID"|container\.linux\.resources\.oom_score_adj: kubelet 999, podd -997)$`), "pod-level requests have the same defaults as in an API server, while a kubelet sets none since Kubernetes 1.37"},
	{regexp.MustCompile(`^container\.mounts\[\]\.host_path: kubelet "/srv/a[0-9]+-v", podd "ROOT/pods/UID/volumes/podd~ephemeral/v"$`), "an ephemeral claim is a directory of its pod, because there is no provisioner"},
}

// kubeletWhy returns the reason of an intended difference, or "" if the difference is not intended.
func kubeletWhy(difference string) string {
	for _, d := range kubeletDiffers {
		if d.field.MatchString(difference) {
			return d.why
		}
	}
	return ""
}
